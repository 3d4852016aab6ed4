"""Runs the command line as a user does, in its own process.

The processes are forked from a server that has loaded torch and the package already, so that a test does not wait for
that again; each has its own folder, environment, streams and exit code.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([
    "torch", "sklearn.linear_model", "unrolled.cli.train", "unrolled.cli.compare", "unrolled.training.api",
    "unrolled.comparison.api", "unrolled.report.page",
])  # fmt: skip
SECONDS = 240


def run_unrolled(
    *words: object, code: int = 0, cwd: Path | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """`unrolled WORDS`; the exit code must be `code`, and a failure must never show a traceback."""
    asked = [str(word) for word in words]
    env = os.environ | {"COLUMNS": "160", "TERM": "dumb"}
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_text(stdin or "", encoding="utf-8")
        process = PROCESSES.Process(target=_child, args=(asked, str(cwd or Path.cwd()), dict(env), streams))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            raise TimeoutError(f"unrolled {' '.join(asked)} took more than {SECONDS} s")
        out, err = (path.read_text(encoding="utf-8") for path in streams[1:])
    assert process.exitcode == code, f"exit {process.exitcode}, not {code}\n{out}\n{err}"
    assert "Traceback" not in err
    return subprocess.CompletedProcess(asked, code, out, err)


def _child(words: list[str], cwd: str, env: dict[str, str], streams: list[Path]) -> None:
    """What the command line does in a process of its own."""
    from unrolled.cli.main import main

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, path in enumerate(streams):
        kept = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(kept, number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["unrolled", *words]
    try:
        main()
    finally:
        sys.stdout.flush()
