"""Memory does not grow with the corpus: anonymous memory is measured in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

MEASURE = """
import sys
import numpy as np
from unrolled.core.batch import TARGET
from unrolled.data.examples import Examples, Ragged

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024  # MB
"""

SAMPLE = (
    MEASURE
    + """
from unrolled.data.sampler import StreamRows, Windows, stream_batches
before = anonymous()
tokens = np.memmap(sys.argv[1], "uint16", mode="r")
section = Examples({TARGET: Ragged(tokens, (np.array([0, len(tokens)]),))}, is_stream=True)
rows, windows = StreamRows(section, 64, 256, 300), Windows(section, 64, 256)
for step in range(0, rows.steps_per_epoch, rows.steps_per_epoch // 60):
    rows.batch(step)
    windows.batch(step)
batches = stream_batches(section, 64, 256)
for _ in range(60):
    next(batches)
print(anonymous() - before)
"""
)

PREPARE = (
    MEASURE
    + """
from unrolled.data.config import DataConfig
from unrolled.data.prepare import prepare
prepare(sys.argv[1], DataConfig(tokens=sys.argv[3]))
before = anonymous()
data = prepare(sys.argv[2], DataConfig(tokens=sys.argv[3]))
assert len(data.sections["train"].values(TARGET)) > 1_000_000
print(anonymous() - before)
"""
)


def megabytes(program: str, *arguments: str) -> float:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_batches_of_a_large_token_file_take_little_memory(tmp_path):
    path = tmp_path / "tokens"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)  # sparse: a hundred million tokens that take no disk
    assert megabytes(SAMPLE, str(path)) < 40


def test_preparing_a_large_text_takes_little_memory(tmp_path):
    line = "The quick brown fox jumps over the lazy dog, %d times a day.\n"
    (tmp_path / "small.txt").write_text("".join(line % i for i in range(20_000)))
    with (tmp_path / "large.txt").open("w") as file:
        for _ in range(30):
            file.write("".join(line % i for i in range(20_000)))
    assert megabytes(PREPARE, str(tmp_path / "small.txt"), str(tmp_path / "large.txt"), "char") < 40
