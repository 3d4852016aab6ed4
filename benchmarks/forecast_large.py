"""Many series, and many points: `python -m benchmarks.forecast_large [many-linear-map many-gru csv parquet]`.

many     2,000 windows of the channels of ETTh1 in one long table, of 240 to 700 hours, all of which hold one moment:
         what is later is test data of every series, so that no training span knows it. One model forecasts all.
csv      ten million points of one series (a daily curve and noise, minute by minute) in a .csv file
parquet  the same in a .parquet file

Each in a process of its own; the largest anonymous memory (RssAnon of /proc) is recorded. Figures go to
benchmarks/results/forecast-large-PIECE.json.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time as clock
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import anonymous_megabytes
from benchmarks.pieces import Pieces, run_pieces

SERIES, CUT = 2000, 11_520  # windows, and the row that all of them hold
POINTS = 10_000_000


def many(folder: Path) -> tuple[Path, dict[str, Any], str]:
    from benchmarks.forecast import ETT
    from benchmarks.reproduce import find

    with gzip.open(find(ETT), "rt") as file:
        header, *rows = csv.reader(file)
    random, place = np.random.default_rng(0), folder / "many.csv"
    with place.open("w") as file:
        file.write("id,time,value\n")
        for i in range(SERIES):
            d = 1 + i % (len(header) - 1)
            first, last = CUT - int(random.integers(200, 500)), CUT + int(random.integers(40, 200))
            file.writelines(f"s{i},{row[0]},{row[d]}\n" for row in rows[first:last])
    return place, {"horizon": 24, "season": 24, "test_from": rows[CUT][0], "stride": 24}, f"{SERIES:,} series"


def points(folder: Path, suffix: str) -> tuple[Path, dict[str, Any], str]:
    import polars

    t = np.arange(POINTS)
    values = np.sin(2 * np.pi * t / 1440) + 0.3 * np.random.default_rng(0).normal(size=POINTS)
    times = np.datetime64("2000-01-01T00:00", "us") + t * np.timedelta64(60_000_000, "us")
    frame, place = polars.DataFrame({"time": times, "value": values.round(4)}), folder / f"points.{suffix}"
    if suffix == "csv":
        frame.write_csv(place, datetime_format="%Y-%m-%d %H:%M")
    else:
        frame.write_parquet(place)
    return place, {"horizon": 24, "season": 1440, "lookback": 64}, f"{POINTS:,} points, {suffix}"


def train(place: str, model: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Figures of a run, with the memory that it took."""
    import unrolled.training.api  # so that what imports take is known

    base, peak, done = anonymous_megabytes(), [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            peak[0] = max(peak[0], anonymous_megabytes())
            clock.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = clock.process_time()
    out = Path(place).parent / "run"
    run = unrolled.train(place, "forecast", model, out, settings={"threads": 1, **settings}, progress=None)
    done.set()
    watcher.join()
    return {
        "model": model, "settings": settings, "score": run.result["test"]["mase"],
        "seasonal naive": run.result["baselines"]["seasonal naive"]["test"]["mase"],
        "coverage_80": run.result["test"]["coverage_80"], "seconds": clock.process_time() - before,
        "peak_megabytes": peak[0], "base_megabytes": base,
    }  # fmt: skip


def apart(kind: str, model: str, time: str | None = None) -> dict[str, Any]:
    """One of the data sets in a process of its own."""
    if time is not None:
        sys.exit("these pieces have their steps: they take no --time")
    with tempfile.TemporaryDirectory() as folder:
        place, settings, what = many(Path(folder)) if kind == "many" else points(Path(folder), kind)
        if model == "gru":
            settings |= {"steps": 300, "d_state": 32, "distribution": "point", "evaluate_every": 100}
        command = [sys.executable, "-m", "benchmarks.forecast_large", "--one", str(place), model, json.dumps(settings)]
        environment = os.environ | {"UNROLLED_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        return {"what": what, **json.loads(done.stdout.splitlines()[-1])}


PIECES: Pieces = {
    "many-linear-map": lambda **given: apart("many", "linear-map", **given),
    "many-gru": lambda **given: apart("many", "gru", **given),
    "csv": lambda **given: apart("csv", "linear-map", **given),
    "parquet": lambda **given: apart("parquet", "linear-map", **given),
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(train(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))))
    else:
        run_pieces(PIECES, "forecast-large", __doc__)
