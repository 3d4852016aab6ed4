"""`unrolled serve` in a process of its own, for benchmarks and trials."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).parents[1]
CODE = "from unrolled.cli.main import main; main()"


class Server(NamedTuple):
    """A server that listens."""

    process: subprocess.Popen[str]
    address: str


@contextmanager
def serving(
    *words: str | Path, threads: int | None = None, folder: Path | None = None, log: IO[str] | None = None
) -> Iterator[Server]:
    """`unrolled serve` with these words, on a free port; it runs in `folder`, its log goes to a file or nowhere."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    asked = [*map(str, words), "--port", "0", *([] if log else ["--quiet"])]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "serve", *asked], cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True,
        env=environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield Server(process, re.findall(r"http://[\d.:]+", process.stdout.readline())[0])
    finally:
        process.terminate()
        process.communicate()
