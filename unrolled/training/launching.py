"""Who the processes of a run are: this one alone, some that it starts itself, or those that torchrun has started.

The first process prepares everything, as one by itself does. When the run directory holds its settings and its codec,
the others begin (`begin`); they prepare the same data from there and train along (following.py).
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, Protocol

from unrolled.core.errors import UsageError, needs_extra
from unrolled.core.front import option, reader
from unrolled.data.prepared import shared
from unrolled.runs.config import RunConfig
from unrolled.runs.run import Run
from unrolled.training.processes import NAME, RESTARTS, Launched, LostProcess, One, Order, Processes

PATIENCE = 60.0  # seconds that another process has to leave
LOOK = 0.1  # seconds between two looks at whether all processes are there


class Crew(Protocol):
    """The processes of a run before they train."""

    n: int

    def begin(self, order: Order) -> Processes:
        """Tell the others what to train."""
        ...

    def done(self, path: Path) -> None:
        """Tell them where the finished run is."""
        ...


class Alone:
    """Nobody else."""

    n = 1

    def begin(self, order: Order) -> Processes:
        return One()

    def done(self, path: Path) -> None: ...


def _distributed() -> ModuleType:
    try:
        from unrolled.training import distributed
    except ImportError as error:
        raise needs_extra(error, "distributed", "one run on several processes") from None
    return distributed


class Started:
    """Processes on this machine that this one starts: they load what they need while it prepares the data."""

    def __init__(self, n: int, threads: int) -> None:
        self.n, self.distributed = n, _distributed()
        told = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        words = [sys.executable, "-m", "unrolled.training.following", reader()]
        self.many: Processes | None = None
        self.others = [subprocess.Popen(words, stdin=subprocess.PIPE, env=told) for _ in range(1, n)]

    def begin(self, order: Order) -> Processes:
        port = _free_port()
        for rank, other in enumerate(self.others, 1):
            assert other.stdin is not None
            try:
                pickle.dump((rank, self.n, port, order), other.stdin)
                other.stdin.flush()  # it stays open: who reads its end knows that this process has ended
            except BrokenPipeError:
                raise _never_began(rank) from None
        self.many = self.distributed.of_order(order, self._connected(port, order["config"]["device"]))
        return self.many

    def _connected(self, port: int, device: str) -> Any:
        """The line to the others. It is waited for in a thread, because one that has ended would be waited for too."""
        found: SimpleQueue[Any] = SimpleQueue()

        def connect() -> None:
            try:
                found.put(self.distributed.connected(self.distributed.Here(0, self.n, port), device))
            except Exception as error:
                found.put(error)

        threading.Thread(target=connect, daemon=True).start()
        while True:
            with suppress(Empty):
                if isinstance(line := found.get(timeout=LOOK), Exception):
                    raise line
                return line
            for rank, other in enumerate(self.others, 1):
                if other.poll() is not None:
                    raise _never_began(rank)

    def done(self, path: Path) -> None: ...

    def end(self) -> None:
        if self.many is not None:
            self.many.close()
        for other in self.others:
            assert other.stdin is not None
            with suppress(BrokenPipeError):
                other.stdin.close()
            try:
                other.wait(0 if self.many is None else PATIENCE)
            except subprocess.TimeoutExpired:  # at once where it was never told what to do
                other.kill()
                other.wait()


def _never_began(rank: int) -> LostProcess:
    return LostProcess(f"process {rank} of this run ended before it began")


class Torchrun:
    """Processes that torchrun has started, of which this one is the first; they stay together until they end."""

    def __init__(self, n: int, device: str) -> None:
        self.n, self.distributed = n, _distributed()
        self.line = self.distributed.connected(device=device)
        self.many = self.distributed.Many(self.line)
        self.waits = 2  # times that they wait for a word: for an order, and for where the run is

    def begin(self, order: Order) -> Processes:
        self._tell(order)
        return self.distributed.of_order(order, self.line)

    def done(self, path: Path) -> None:
        while self.waits > 1:
            self._tell(None)
        self._tell(str(path))

    def end(self) -> None:
        """Where something went wrong, the others learn that there is nothing more."""
        with suppress(LostProcess):
            while self.waits:
                self._tell(None)

    def _tell(self, what: Any) -> None:
        self.waits -= 1
        self.many.first(lambda: what)


@contextmanager
def first_of(found: Launched | None, device: str) -> Iterator[Crew | None]:
    """The processes that torchrun has started, this one the first of them; None: it has not."""
    if found is None:
        yield None
        return
    crew = Torchrun(found.n, device)
    try:
        yield crew
    finally:
        crew.end()


@contextmanager
def crew_of(config: RunConfig, found: Crew | None) -> Iterator[Crew]:
    """The processes that train a run, until the block ends: those that were found, or as many as it asks for."""
    if config.processes == 1:
        yield found or Alone()
        return
    with shared():  # what the first prepares is there for the others
        if found is not None:
            yield found
            return
        crew = Started(config.processes, config.threads or 1)
        try:
            yield crew
        finally:
            crew.end()


def told_of(crew: Crew | None, run: Run) -> Run:
    """The run; the others that torchrun has started learn where it is."""
    if crew is not None:
        crew.done(run.path)
    return run


def followed(device: str) -> str:
    """What a process does that torchrun has started and that is not the first: it trains along. Where the run is."""
    from unrolled.training.following import ended, follow

    with_others = _distributed()
    many = with_others.Many(line := with_others.connected(device=device))
    order = many.first(lambda: None)
    code = 0 if order is None else ended(lambda: follow(with_others.of_order(order, line), order))
    if code:
        sys.exit(code)
    path = many.first(lambda: None)
    if path is None:
        sys.exit(1)  # the first process says why
    return str(path)


def begins_again(found: Launched, out: str | Path | None) -> bool:
    """Whether torchrun has started a run again that has begun, which is then resumed."""
    if out is None:
        raise UsageError(f"under torchrun the run needs a name, so that it is found again: add {option('out')}")
    return found.restarts > 0 and (Path(out) / "config.json").exists()


def require_restarts() -> None:
    """Under torchrun a process that has died is started again only if the others can find it."""
    most = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))
    if most and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):
        raise UsageError(
            f"torchrun with {most} restarts needs {RESTARTS}=1 in its environment, without which processes that it "
            "restarts wait for each other forever: set it, or let torchrun restart none"
        )


def number_of(asked: int | None, found: Launched | None) -> int:
    """How many processes there are, where some number is asked for and torchrun has perhaps started some."""
    if found is None:
        return asked or 1
    if asked not in (None, 1, found.n):
        raise UsageError(f"torchrun has started {found.n} processes: leave out {option(NAME, asked)}")
    return found.n


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
