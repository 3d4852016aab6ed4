"""Runs the command line as a user does, in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_unrolled(
    *words: object, code: int = 0, cwd: Path | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """`unrolled WORDS`; the exit code must be `code`, and a failure must never show a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "unrolled.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        input=stdin,
        env=os.environ | {"COLUMNS": "160", "TERM": "dumb"},
        timeout=240,
    )
    assert done.returncode == code, f"exit {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done
