"""What a request made is freed with it: nothing waits for the garbage collector, which may come late in a server."""

from __future__ import annotations

import gc
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from torch import Tensor

BODIES: dict[str, tuple[str, bytes]] = {
    "text": ("/v1/completions", json.dumps({"model": "next-token", "prompt": "the ", "seed": 1}).encode()),
    "stream": ("/v1/completions", json.dumps({"model": "next-token", "prompt": "a", "stream": True}).encode()),
    "verb": ("/runs/next-token/score", json.dumps({"inputs": ["the cat"]}).encode()),
    "refused by the run": ("/runs/classify/score", json.dumps({"inputs": ["the cat"]}).encode()),
    "too long for the run": ("/v1/completions", json.dumps({"model": "next-token", "prompt": "a" * 5000}).encode()),
    "no JSON": ("/v1/completions", b"{"),
    "too large": ("/v1/completions", b" " * 3 * 2**20),
}


@contextmanager
def cycles() -> Iterator[list[Any]]:
    """What only the garbage collector could have freed after a block."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        time.sleep(0.3)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("kind", BODIES)
def test_nothing_of_a_request_waits_for_the_garbage_collector(kind: str, address: str) -> None:
    where, body = BODIES[kind]

    def send() -> None:
        client = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
        client.request("POST", where, body, {"Content-Type": "application/json"})
        client.getresponse().read()
        client.close()

    send()  # loads the run
    with cycles() as found:
        for _ in range(5):
            send()
    ours = [each for each in found if type(each).__module__.startswith(("unrolled.serve", "unrolled.decode"))]
    assert ours == []
    assert [each for each in found if isinstance(each, Tensor)] == []
    assert sum(len(each) for each in found if isinstance(each, bytes | bytearray)) < 1000
