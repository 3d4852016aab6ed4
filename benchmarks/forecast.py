"""Forecasts of hourly data: `python -m benchmarks.forecast [PIECE ...]`, such as `ett-96-gru` or `ett-720-linear-map`.

ETTh1 by the protocol of Zeng et al. (2023): twelve months to train, four to validate, four to test, z-scores by the
training months, all seven channels, a look-back of 336, every window (stride 1). The settings of trained models were
chosen on validation data: point forecasts and squared errors, relative to the last value, 64 units. Figures, curves and
settings go to benchmarks/results/forecast-PIECE.json. Data is found through UNROLLED_DATA.
"""

from __future__ import annotations

import csv
import gzip
import tempfile
import time as clock
from pathlib import Path
from typing import Any

from benchmarks.pieces import Pieces, run_pieces, trained
from benchmarks.reproduce import DataSet, find

ETT = DataSet(
    "ett/ETTh1.csv.gz",
    "3c56c865b8f6fc9b760a07f055ff8a993d3cf2a747235dc382b98821ed35f029",
    "ETT-small/ETTh1.csv of the GitHub repository zhouhaoyi/ETDataset, packed with gzip",
)
ROWS = 14_400  # twenty months of thirty days
LOOKBACK = 336
PUBLISHED = {  # mean squared errors of z-scores: LTSF-Benchmark.md of the GitHub repository cure-lab/LTSF-Linear
    96: {"N-linear": 0.374, "D-linear": 0.375, "FEDformer": 0.376, "Autoformer": 0.449, "Informer": 0.865},
    192: {"N-linear": 0.408, "D-linear": 0.405, "FEDformer": 0.420, "Autoformer": 0.500, "Informer": 1.008},
    336: {"N-linear": 0.429, "D-linear": 0.439, "FEDformer": 0.459, "Autoformer": 0.521, "Informer": 1.107},
    720: {"N-linear": 0.440, "D-linear": 0.472, "FEDformer": 0.506, "Autoformer": 0.514, "Informer": 1.181},
}
GOALS = {(96, "linear-map"): 0.376, (720, "linear-map"): 0.46} | {(96, m): 0.45 for m in ("lstm", "gru", "tcn")}
POINT = {"distribution": "point", "evaluate_every": 100}
SETTINGS: dict[str, dict[str, Any]] = {
    "linear-map": {},
    "gru": {**POINT, "steps": 800, "d_state": 64},
    "lstm": {**POINT, "steps": 800, "d_state": 64, "lr": 2e-3},
    "tcn": {**POINT, "steps": 400, "widths": [32] * 7},
}


def twenty_months(folder: Path) -> Path:
    """The rows that the protocol uses, as a file."""
    place = folder / "ETTh1.csv"
    with gzip.open(find(ETT), "rt") as packed, place.open("w") as file:
        rows = csv.reader(packed)
        csv.writer(file).writerows(row for row, _ in zip(rows, range(ROWS + 1)))
    return place


def ett(horizon: int, model: str, time: str = "15m") -> dict[str, Any]:
    """One model at one horizon, through the public interface."""
    settings = {"horizon": horizon, "lookback": LOOKBACK, "split": "60/20/20", "season": 24, "threads": 1}
    before = clock.process_time()
    with tempfile.TemporaryDirectory() as folder:
        place = twenty_months(Path(folder))
        _, kept = trained(place, "forecast", model, time, settings | SETTINGS[model], Path(folder))
    kept["processor_seconds"] = round(clock.process_time() - before, 1)
    months = f"ETTh1, horizon {horizon}, look-back {LOOKBACK}"
    return {
        "protocol": months, "horizon": horizon, "published": PUBLISHED[horizon], "goal": GOALS.get((horizon, model)),
        **kept,
    }  # fmt: skip


PIECES: Pieces = {
    f"ett-{horizon}-linear-map": (lambda horizon=horizon, **given: ett(horizon, "linear-map", **given))
    for horizon in PUBLISHED
}
PIECES |= {
    f"ett-96-{model}": (lambda model=model, **given: ett(96, model, **given)) for model in ("gru", "lstm", "tcn")
}


if __name__ == "__main__":
    run_pieces(PIECES, "forecast", __doc__)
