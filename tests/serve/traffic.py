"""What clients do to a server, well and badly: each kind of request checks that it gets what it should.

`make soak` runs it: `python -m tests.serve.traffic --minutes 30 --requests 10000 --connections 32` serves the saved
runs of the tests in a process of its own, sends requests until both numbers are reached, and ends with 1 if anything
was lost, failed or differed from the library, or if the memory of the server grew.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
from websockets.sync.client import connect

import unrolled
from benchmarks.server_process import ROOT, serving

RUNS = ROOT / "tests" / "fixtures" / "runs"
WRITERS = ("next-token", "next-token-tied")
SEEDS = 25
REFUSED = {400, 404, 405, 408, 409, 413, 415, 422, 429}
POST = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
GARBAGE = (
    b"\x00" * 100,
    b"GET / HTTP/9.9\r\n\r\n",
    POST + b"-1\r\n\r\n",
    b"\x16\x03\x01" + bytes(range(200)),
)
BAD = (
    b"", b"{", b"[]", b"null", b"\xff", b'{"model": NaN}', b'{"a": ' + b"[" * 50_000,
    b'{"model": "next-token", "prompt": 5}', b'{"model": "../x", "prompt": ""}',
)  # fmt: skip
GROWTH = 1.05  # of the memory from the first third to the last
JSON = {"Content-Type": "application/json"}


def asked(seed: int) -> dict[str, Any]:
    """One of the requests whose texts are known."""
    prompts = ("", "a", "the ", "calcecal")
    return {"prompt": prompts[seed % 4], "seed": seed, "max_tokens": 30, "temperature": 1.2}


def known_texts() -> dict[tuple[str, int], str]:
    """What the library writes, alone."""
    runs = {name: unrolled.load(RUNS / name) for name in WRITERS}
    return {(n, seed): run.generate(**asked(seed))[0]["text"] for n, run in runs.items() for seed in range(SEEDS)}


class Client:
    """One connection that sends requests of all kinds, one after another."""

    def __init__(self, address: str, known: dict[tuple[str, int], str], seed: int) -> None:
        self.address, self.known, self.random = address, known, random.Random(seed)
        self.http = httpx.Client(base_url=address, timeout=120)
        kinds: list[tuple[int, Callable[[], str]]] = [
            (6, self.whole), (4, self.streamed), (2, self.verb), (2, self.session), (1, self.live), (2, self.leaves),
            (1, self.reads_slowly), (2, self.malformed), (1, self.huge), (1, self.garbage), (1, self.half),
        ]  # fmt: skip
        self.kinds = [kind for times, kind in kinds for _ in range(times)]

    def one(self) -> str:
        """Send one request; what it was and how it ended. A request that is refused because many wait is repeated."""
        kind = self.random.choice(self.kinds)
        return f"{kind.__name__}: {kind()}"

    def _known(self) -> tuple[dict[str, Any], str]:
        name, seed = self.random.choice(WRITERS), self.random.randrange(SEEDS)
        return {"model": name, **asked(seed)}, self.known[name, seed]

    def _sent(self, method: str, path: str, **more: Any) -> httpx.Response:
        while True:
            answer = self.http.request(method, path, **more)
            if answer.status_code != 429:
                return answer
            time.sleep(0.05)

    def whole(self) -> str:
        body, text = self._known()
        answer = self._sent("POST", "/v1/completions", json=body)
        return _same(answer.json()["choices"][0]["text"], text) if answer.status_code == 200 else _failed(answer)

    def streamed(self) -> str:
        body, text = self._known()
        with self.http.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
            if answer.status_code != 200:
                return "refused" if answer.status_code == 429 else f"FAILED {answer.status_code}"
            lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
        if lines[-1] != "[DONE]":
            return "FAILED without an end"
        return _same("".join(json.loads(line)["choices"][0]["text"] for line in lines[:-1]), text)

    def verb(self) -> str:
        place, body = self.random.choice([
            ("classify/predict", {"inputs": ["abab", "ba"]}), ("next-token/score", {"inputs": ["the cat"]}),
            ("forecast/forecast", {"inputs": [[float(k % 7) for k in range(40)]], "horizon": 2}),
            ("next-token/inspect/surprise", {"input": "the cat"}), ("next-token/embed", {"inputs": ["the cat"]}),
        ])  # fmt: skip
        answer = self._sent("POST", f"/runs/{place}", json=body)
        return "fine" if answer.status_code == 200 else _failed(answer)

    def session(self) -> str:
        opened = self._sent("POST", "/runs/next-token/sessions", json={})
        if opened.status_code != 201:
            return _failed(opened)
        place = f"/runs/next-token/sessions/{opened.json()['id']}"
        for _ in range(self.random.randrange(1, 4)):
            answer = self._sent("POST", f"{place}/push", json={"rows": ["the ", "a"]})
            if answer.status_code != 200:
                return _failed(answer)
        if self.random.random() < 0.5:
            return "left open"  # until it is closed because nobody uses it
        return "fine" if self._sent("DELETE", place).status_code == 200 else "FAILED to close"

    def live(self) -> str:
        with connect(self.address.replace("http", "ws") + "/runs/next-token/live", open_timeout=60) as socket:
            socket.send('{"push": "the "}')
            found = json.loads(socket.recv(timeout=60))
            if self.random.random() < 0.5:
                socket.send("[")
                socket.recv(timeout=60)
        return "fine" if "results" in found else "refused" if "busy" in str(found) else f"FAILED {found}"

    def leaves(self) -> str:
        """Disconnects in the middle of a stream or while it waits."""
        body, _ = self._known()
        with suppress(httpx.ReadTimeout), httpx.Client(timeout=httpx.Timeout(30, read=0.05)) as client:  # noqa: SIM117
            with client.stream("POST", f"{self.address}/v1/completions", json={**body, "stream": True}) as answer:
                next(answer.iter_raw(), None)
        return "left"

    def reads_slowly(self) -> str:
        body, _ = self._known()
        found = b""
        with self.http.stream("POST", "/v1/completions", json={**body, "stream": True}) as answer:
            if answer.status_code != 200:
                return "refused" if answer.status_code == 429 else f"FAILED {answer.status_code}"
            for chunk in answer.iter_raw(chunk_size=64):
                found += chunk
                time.sleep(0.005)
        return "fine" if found.rstrip().endswith(b"[DONE]") else "FAILED without an end"

    def malformed(self) -> str:
        return _refused(self.http.post("/v1/completions", content=self.random.choice(BAD), headers=JSON))

    def huge(self) -> str:
        try:
            return _refused(self.http.post("/v1/completions", content=b" " * 3 * 2**20, headers=JSON))
        except (httpx.WriteError, httpx.ReadError):
            return "cut off"

    def garbage(self) -> str:
        """Bytes that are no HTTP."""
        with suppress(ConnectionError), self._raw() as one:
            one.sendall(self.random.choice(GARBAGE))
            one.shutdown(socket.SHUT_WR)
            answer = one.recv(100)
            return f"FAILED {answer!r}" if answer and not answer.startswith(b"HTTP/1.1 4") else "refused"
        return "cut off"

    def half(self) -> str:
        """A body of which a part arrives, and then nobody is there."""
        with suppress(ConnectionError), self._raw() as one:
            one.sendall(POST + b"1000\r\n\r\n{")
        return "left"

    def _raw(self) -> socket.socket:
        where = urlsplit(self.address)
        return socket.create_connection((where.hostname, where.port), timeout=60)


def _same(found: str, text: str) -> str:
    return "fine" if found == text else f"FAILED: {found!r} is not {text!r}"


def _failed(answer: httpx.Response) -> str:
    return f"FAILED {answer.status_code} {answer.text[:200]}"


def _refused(answer: httpx.Response) -> str:
    small = answer.status_code in REFUSED and len(answer.content) < 4000
    return "refused" if small else f"FAILED {answer.status_code} {answer.text[:200]}"


def send(address: str, known: dict[tuple[str, int], str], requests: int, connections: int, seconds: float = 0.0,
         watch: Callable[[int], None] = lambda done: None) -> Counter[str]:  # fmt: skip
    """Send at least so many requests for at least so long; how often each kind ended in which way."""
    ended: Counter[str] = Counter()
    lock, until = threading.Lock(), time.monotonic() + seconds

    def work(number: int) -> None:
        client = Client(address, known, number)
        with client.http:
            while sum(ended.values()) < requests or time.monotonic() < until:
                try:
                    how = client.one()
                except Exception as error:  # what was lost
                    how = f"FAILED: {type(error).__name__} {error}"[:300]
                with lock:
                    ended[how] += 1

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(connections)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
        watch(sum(ended.values()))
    return ended


def gauges(address: str) -> dict[str, float]:
    """The values of `/metrics` without labels."""
    lines = httpx.get(f"{address}/metrics", timeout=60).text.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if line[0] != "#") if "{" not in name}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    known, began = known_texts(), time.monotonic()
    held_at: list[tuple[int, float]] = []  # requests that were done, and MiB of memory
    with serving(RUNS, "--session-seconds", "20") as (_, address):

        def watch(done: int) -> None:
            if len(held_at) < (time.monotonic() - began) / 5:
                held_at.append((done, gauges(address)["unrolled_process_resident_bytes"] / 2**20))

        ended = send(address, known, options.requests, options.connections, 60 * options.minutes, watch)
        time.sleep(30)  # sessions that were left open are closed
        last = gauges(address)
    memory, third = [mib for _, mib in held_at], len(held_at) // 3
    grown = max(memory[-third:]) / max(memory[:third]) if third else 1.0
    print("requests and MiB:", ", ".join(f"{done}: {mib:.0f}" for done, mib in held_at[:: max(1, third // 5)]))
    for how, times in sorted(ended.items()):
        print(f"{times:6} {how}")
    failed = sum(times for how, times in ended.items() if "FAILED" in how)
    held = {name: last[f"unrolled_{name}"] for name in ("sessions", "requests_in_progress", "unexpected_total")
            if f"unrolled_{name}" in last}  # fmt: skip
    print(f"{sum(ended.values())} requests in {time.monotonic() - began:.0f} s, {failed} failed; memory "
          f"{max(memory[:third] or [0]):.0f} MiB in the first third, {max(memory[-third:] or [0]):.0f} "
          f"in the last; at the end {held}")  # fmt: skip
    fine = not failed and grown <= GROWTH and not held["sessions"] and not held.get("unexpected_total")
    return 0 if fine and held["requests_in_progress"] == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
