"""A real server in a thread, on a free port of this machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from unrolled.core import front
from unrolled.serve import log, start
from unrolled.serve.limits import Limits

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


@contextmanager
def serving(paths: list[Path], token: str | None = None, train: Path | None = None, **limits: Any) -> Iterator[str]:
    """The address of a server of some runs; in `train` visitors of its page may compare models."""
    before, known = front.reader(), Limits.parse(limits)
    log.silence(True)
    app = start.make([str(path) for path in paths], known, token=token, train=None if train is None else str(train))
    server, taken = start.server(app, known), start.listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        taken.close()
        log.silence(False)
        front.speak_to(before)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving([RUNS], seconds=20) as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=30) as found:
        yield found


@pytest.fixture
def served() -> Callable[..., Any]:
    return serving
