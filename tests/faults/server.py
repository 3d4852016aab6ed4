"""Disturbed trials of the command line, in forked processes (tests/commands.py)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.commands import Ended, attempt
from tests.faults.calls import Fault


def run(
    *words: object,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    seconds: float = 60.0,
    kill_at: int | None = None,
    kill_worker_at: int | None = None,
    full_at: int | None = None,
    full_worker_at: int | None = None,
    copies: Path | None = None,
    after: tuple[float, int] | None = None,
    stdout: str | Path | None = None,
) -> Ended:
    """`unrolled WORDS`, killed before its `kill_at`-th file call, out of room from its `full_at`-th on, or as it is.

    `copies`: what a kill before each of its file calls would leave is put there. `kill_worker_at`, `full_worker_at`:
    the first process of a comparison is killed or out of room, by the number of its own calls.
    """
    fault = Fault("kill", kill_at) if kill_at else Fault("full", full_at) if full_at else None
    if copies:
        fault = Fault("copy", copies=str(copies))
    if kill_worker_at:
        fault = Fault("kill", kill_worker_at, "worker")
    if full_worker_at:
        fault = Fault("full", full_worker_at, "worker")
    return attempt(
        *words, cwd=cwd, env=env, stdin=stdin, seconds=seconds, fault=fault, after=after, stdout=stdout, forked=True
    )  # fmt: skip
