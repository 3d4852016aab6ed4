"""Training memory must not grow with the corpus: `python -m benchmarks.memory [MEGABYTES ...]`.

Writes text files of the given sizes, trains on each for a few steps through the public interface, and records the
largest anonymous memory (RssAnon of /proc) that the process had. Each size runs in its own process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZES = (10, 100, 1000)  # megabytes of text; the token file is twice that


def anonymous_megabytes() -> float:
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("RssAnon")).split()[1]) / 1024


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """The largest anonymous memory of this process within the block, in a list of one."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            peak[0] = max(peak[0], anonymous_megabytes())
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def train(megabytes: int, folder: str) -> dict[str, float]:
    """Peak anonymous memory and size of the token file for one corpus."""
    import os

    os.environ["UNROLLED_CACHE"] = f"{folder}/cache"
    import unrolled
    from unrolled.data import builtin_sets

    path = Path(folder) / "corpus.txt"
    piece = builtin_sets.asked("builtin:python-docs").read().encode("utf-8")
    with path.open("wb") as file:
        for _ in range(megabytes * 10**6 // len(piece) + 1):
            file.write(piece)
    before = time.monotonic()
    settings = {"steps": 40, "d_state": 128, "split": "99.9/0.1", "evaluate_tokens": 20_000}
    with peak_memory() as peak:
        unrolled.train(path, model="gru", out=f"{folder}/run", settings=settings)
    tokens = sum(file.stat().st_size for file in Path(folder, "cache").rglob("*") if file.is_file())
    return {
        "text_megabytes": round(path.stat().st_size / 1e6),
        "token_file_megabytes": round(tokens / 1e6),
        "peak_anonymous_megabytes": round(peak[0]),
        "seconds": round(time.monotonic() - before, 1),
    }


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        print(json.dumps(train(int(sys.argv[2]), sys.argv[3])))
        return
    results = []
    for size in map(int, sys.argv[1:] or SIZES):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.memory", "--one", str(size), folder]
            results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            print(results[-1], flush=True)
    place = Path(__file__).parent / "results" / "memory.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
