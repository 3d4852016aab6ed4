"""Memory must not grow with a table: `python -m benchmarks.large_tables [labelled|pairs] [MEGABYTES ...]`.

Writes parquet files of the given sizes (labelled texts, and pairs), trains on each for a few steps through the public
interface, and records the largest anonymous memory (RssAnon of /proc) that the process had. Each size runs in its own
process, in a temporary folder that is removed; a file of 5 GB needs about 25 GB of disk for a while.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_memory

SIZES = {"labelled": (300, 5000), "pairs": (300, 2000)}  # megabytes of the file
MOST = 1500  # megabytes of anonymous memory
ROWS = 50_000  # that are made at once
LENGTHS = {"labelled": (200, 30), "pairs": (15, 15)}  # words in a text, the mean, at first and at second
VOCABULARY = 20_000
SETTINGS: dict[str, dict[str, Any]] = {
    "labelled": {"task": "classify", "model": "dan", "column": "text", "target": "label"},
    "pairs": {"task": "translate", "model": "seq2seq"},
}
QUICK = {"steps": 20, "evaluate_every": 20, "evaluate_tokens": 20_000, "tokens": "word", "vocabulary": 5000,
         "max_length": 400, "too_long": "truncate", "split": "99.8/0.1/0.1", "batch_size": 16}  # fmt: skip


def texts(random: np.random.Generator, words: list[str], n: int, mean: int) -> list[str]:
    """n texts of about so many words, of which few are frequent, as in a language."""
    lengths = random.integers(mean // 2, mean * 3 // 2 + 1, n)
    drawn = (random.pareto(1.1, int(lengths.sum())) * 20).astype(np.int64) % len(words)
    found = np.split(drawn, np.cumsum(lengths)[:-1])
    return [" ".join(map(words.__getitem__, each.tolist())) for each in found]


def write(kind: str, path: Path, megabytes: int) -> int:
    """A table of random texts; how many rows it has."""
    import polars

    random, rows, parts = np.random.default_rng(0), 0, []
    words = ["".join(random.choice(list("etaoinshrdlu"), size)) + str(i) for i, size in
             enumerate(random.integers(2, 8, VOCABULARY))]  # fmt: skip
    while sum(part.stat().st_size for part in parts) < megabytes * 10**6:
        first = texts(random, words, ROWS, LENGTHS[kind][0])
        if kind == "labelled":
            frame = polars.DataFrame({"text": first, "label": random.choice(["good", "bad", "so so"], ROWS)})
        else:
            frame = polars.DataFrame({"source": first, "target": texts(random, words, ROWS, LENGTHS[kind][1])})
        parts.append(path.with_name(f"part{len(parts):05d}.parquet"))
        frame.write_parquet(parts[-1], compression="uncompressed")
        rows += ROWS
    polars.scan_parquet(parts).sink_parquet(path, compression="uncompressed")
    for part in parts:
        part.unlink()
    return rows


def train(kind: str, path: Path) -> dict[str, float | str]:
    """Peak anonymous memory for one table."""
    os.environ["UNROLLED_CACHE"] = f"{path.parent}/cache"
    import unrolled

    begun = time.monotonic()
    with peak_memory() as peak:
        unrolled.train(path, out=path.parent / "run", settings=QUICK, **SETTINGS[kind])
    seconds = round(time.monotonic() - begun, 1)
    return {"table": kind, "peak_anonymous_megabytes": round(peak[0]), "seconds": seconds}


def measured(kind: str, megabytes: int) -> dict[str, float | str]:
    """The same in a process of its own, with what the file is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        begin = [sys.executable, "-m", "benchmarks.large_tables"]
        written = subprocess.run(
            [*begin, "--write", kind, str(path), str(megabytes)], check=True, stdout=subprocess.PIPE
        )
        found = subprocess.run([*begin, "--train", kind, str(path)], check=True, stdout=subprocess.PIPE)
        about = {"file_megabytes": round(path.stat().st_size / 1e6), "rows": int(written.stdout)}
        return {**json.loads(found.stdout), **about}


def main() -> None:
    asked = sys.argv[1:]
    if asked[:1] == ["--write"]:
        print(write(asked[1], Path(asked[2]), int(asked[3])))
        return
    if asked[:1] == ["--train"]:
        print(json.dumps(train(asked[1], Path(asked[2]))))
        return
    results = []
    for kind in asked[:1] or list(SIZES):
        for size in map(int, asked[1:] or SIZES[kind]):
            results.append(measured(kind, size))
            print(results[-1], flush=True)
    if not asked:
        place = Path(__file__).parent / "results" / "large_tables.json"
        place.write_text(json.dumps(results, indent=1) + "\n")
    if any(float(result["peak_anonymous_megabytes"]) > MOST for result in results):
        sys.exit(f"more than {MOST} MB of anonymous memory")


if __name__ == "__main__":
    main()
