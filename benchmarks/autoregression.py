"""AR(32) on a million points: `python -m benchmarks.autoregression [--points 1000000] [--order 32]`.

Time and memory of the closed form, against the same least squares on the lagged matrix in numpy (which must give equal
weights) and, where it is installed, against statsmodels. Every way runs in a process of its own, so that its peak
memory is its own; the memory counted is what is added to that of the series. The figures are kept in
benchmarks/results/autoregression.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results" / "autoregression.json"
GOALS = {"time": 500.0, "memory": 60.0}  # the least ratios statsmodels / ours

Numbers = NDArray[np.float64]


def series(points: int) -> Numbers:
    """x_t = 0.5 x_{t-1} - 0.3 x_{t-2} + noise."""
    noise = np.random.default_rng(0).standard_normal(points + 64)
    response = [1.0, 0.5]
    while len(response) < 64:
        response.append(0.5 * response[-1] - 0.3 * response[-2])
    return 3 + np.convolve(noise, response, mode="valid")[:points]


def ours(x: Numbers, order: int) -> Numbers:
    from unrolled.layers.counting.autoregression import least_squares

    W, b = least_squares([x[:, None]], 1, slice(0, 1), order)
    return np.append(W.ravel(), b)


def lagged(x: Numbers, order: int) -> Numbers:
    columns = [*(x[k : len(x) - order + k] for k in range(order)), np.ones(len(x) - order)]
    return np.linalg.lstsq(np.stack(columns, axis=1), x[order:], rcond=None)[0]


def statsmodels(x: Numbers, order: int) -> Numbers:
    from statsmodels.tsa.ar_model import AutoReg

    found = np.asarray(AutoReg(x, lags=order).fit().params)  # the constant, then the newest lag first
    return np.append(found[:0:-1], found[0])


WAYS: dict[str, Callable[[Numbers, int], Numbers]] = {"ours": ours, "lagged": lagged, "statsmodels": statsmodels}


def measure(way: str, points: int, order: int, repeats: int) -> dict[str, Any]:
    """Best milliseconds, megabytes beyond the series, and the weights."""
    x = series(points)
    solve = WAYS[way]
    solve(x[: 10 * order + 100], order)  # imports and libraries are loaded before memory is read
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        weights = solve(x, order)
        best = min(best, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    added = (peak - before) / 1024
    return {"way": way, "ms": round(1e3 * best, 3), "megabytes": round(added, 1), "weights": weights.tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--order", type=int, default=32)
    parser.add_argument("--one", choices=[*WAYS], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.points, asked.order, repeats=20 if asked.one == "ours" else 2)))
        return
    ways = list(WAYS)
    if importlib.util.find_spec("statsmodels") is None:
        ways.remove("statsmodels")
        print("statsmodels is not installed, so it is left out: pip install statsmodels")
    size = ["--points", str(asked.points), "--order", str(asked.order)]
    found = {}
    for way in ways:
        command = [sys.executable, "-m", "benchmarks.autoregression", "--one", way, *size]
        found[way] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    weights = {way: np.array(row.pop("weights")) for way, row in found.items()}
    own = found["ours"]
    for way, row in found.items():
        row["difference"] = float(np.abs(weights[way] - weights["ours"]).max())
        row["time_ratio"] = round(row["ms"] / own["ms"], 1)
        row["memory_ratio"] = round(row["megabytes"] / max(own["megabytes"], 0.1), 1)
        print(f"{way:12} {row['ms']:10.1f} ms {row['megabytes']:8.1f} MB  time x{row['time_ratio']:<8} "
              f"memory x{row['memory_ratio']:<8} largest difference of weights {row['difference']:.1e}")  # fmt: skip
    size_of = {"points": asked.points, "order": asked.order, "threads": os.environ.get("OMP_NUM_THREADS")}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(size_of | {"goals": GOALS, "ways": list(found.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
