"""Runs the command line as a user does, in its own process.

The processes are forked from a server that has loaded torch and the package already, so that a test does not wait for
that again; each has its own folder, environment, streams and exit code. A trial may be disturbed (tests/faults): killed
at a file call or by a signal, refused a write, short of time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.faults import workers
from tests.faults.calls import Fault, disturb

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.preload"])
SECONDS = 240.0
LOOK = 0.02  # seconds between two looks at the memory of a trial


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # minus the number of a signal where one ended it
    out: str
    err: str
    seconds: float
    peak: int  # bytes of memory, with what the server had loaded (about 350 MB)
    names: tuple[str, ...]  # of the file calls that were counted; of a killed process of those before its end
    worker_names: tuple[str, ...]  # those of the processes that it began
    opened: frozenset[str]  # every path that was opened, apart from the interpreter's own
    late: bool = False  # it took too long and was killed
    processor: float = 0.0  # seconds of it and of the processes that it began; 0 where it was killed

    @property
    def calls(self) -> int:
        """How many file calls were counted."""
        return len(self.names)


def attempt(
    *words: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    stdout: str | Path | None = None,
    seconds: float = SECONDS,
    fault: Fault | None = None,
    after: tuple[float, int] | None = None,
    forked: bool = False,
    code: str | None = None,
) -> Ended:
    """`unrolled WORDS` to its end, whatever that is. `after`: a signal is sent so many seconds after its start.

    `forked`: the processes of a comparison are forked from it, so that they need not load everything again. `code`:
    this Python is run instead of the command line.
    """
    place = Path(cwd or Path.cwd())
    around = os.environ | {"COLUMNS": "160", "TERM": "dumb"} | dict(env or {})
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err", "told")]
        streams[0].write_bytes(stdin)
        given = [streams[0], Path(stdout) if stdout else streams[1], *streams[2:]]
        process = PROCESSES.Process(
            target=_child, args=([str(word) for word in words], str(place), around, given, fault, forked, code)
        )
        begin = time.monotonic()
        process.start()
        late, peak = _watch(process, begin, seconds, after, streams[3])
        took = time.monotonic() - begin
        out, err, told = (_text(path) for path in streams[1:])
    lines = told.splitlines()
    opened = frozenset(json.loads(line) for line in lines if line.startswith('"'))
    closing: dict[str, float] = next((json.loads(line) for line in lines if line.startswith("{")), {})
    names = [tuple(line.split()[1] for line in lines if line.startswith(place)) for place in ("command ", "worker ")]
    assert process.exitcode is not None
    peak, processor = max(peak, int(closing.get("peak", 0))), closing.get("processor", 0.0)
    return Ended(process.exitcode, out, err, took, peak, *names, opened, late, processor)


def run_unrolled(
    *words: object, code: int = 0, cwd: Path | None = None, stdin: str | None = None, forked: bool = False
) -> subprocess.CompletedProcess[str]:
    """`unrolled WORDS`; the exit code must be `code`, and a failure must never show a traceback."""
    ended = attempt(*words, cwd=cwd, stdin=(stdin or "").encode(), forked=forked)
    if ended.late:
        raise TimeoutError(f"unrolled {' '.join(map(str, words))} took more than {SECONDS} s")
    assert ended.code == code, f"exit {ended.code}, not {code}\n{ended.out}\n{ended.err}"
    assert "Traceback" not in ended.err
    return subprocess.CompletedProcess([str(word) for word in words], code, ended.out, ended.err)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""


def _watch(process: Any, begin: float, seconds: float, after: tuple[float, int] | None, told: Path) -> tuple[bool, int]:
    """Wait for the end, which comes by force after `seconds`; whether it did, and the most memory that was seen."""
    peak, started = 0, begin + seconds
    while not wait([process.sentinel], timeout=LOOK):
        now = time.monotonic() - begin
        peak = max(peak, _memory(process.pid))
        if after is not None and told.exists() and told.stat().st_size:
            started = min(started, time.monotonic())  # a signal before that would end the server's part of it
        if after is not None and time.monotonic() >= started + after[0]:
            with suppress(ProcessLookupError):
                os.kill(process.pid, after[1])
            after = None
        if now >= seconds:
            process.kill()
            process.join()
            return True, peak
    process.join()
    return False, peak


def _memory(pid: int) -> int:
    """The most bytes a living process has had; 0 where that is not told."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return 0


def _child(
    words: list[str],
    cwd: str,
    env: dict[str, str],
    streams: list[Path],
    fault: Fault | None,
    forked: bool,
    code: str | None,
) -> None:
    """What the command line, or `code`, does in a process of its own."""
    from unrolled.cli.main import main

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, path in enumerate(streams[:3]):
        kept = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(kept, number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["unrolled", *words]
    told = os.open(streams[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    roots = [cwd, *([env["UNROLLED_CACHE"]] if "UNROLLED_CACHE" in env else [])]
    calls = disturb(fault, roots, told)
    if forked:
        workers.fork_instead(calls)
    os.write(told, b"begin\n")
    try:
        main() if code is None else exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
    finally:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(each.ru_utime + each.ru_stime for each in used)
        calls.close({"peak": used[0].ru_maxrss * 1024, "processor": seconds})
        with suppress(OSError):
            sys.stdout.flush()
