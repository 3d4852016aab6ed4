"""An LSTM on one channel of ETTh1, beside darts: `python -m benchmarks.forecast_speed [--repeat 3]`.

Both train the next step at every position of windows of 168 hours of OT, 32 windows a step, 64 units, one thread, in
float32, by squared errors. darts' RNNModel runs in an environment of its own, whose python is named by PEER_PYTHON. A
step takes (seconds of LONG steps - seconds of SHORT steps) / (LONG - SHORT) of whole training calls, so that no start
is counted, in seconds of the processor; processes alternate, and the best of each counts. Figures go to
benchmarks/results/forecast-speed.json.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LENGTH, UNITS, ROWS, BATCH = 168, 64, 8640, 32
SHORT, LONG = 20, 260  # within one epoch: darts makes no more steps than that


def values(place: str) -> list[float]:
    with gzip.open(place, "rt") as file:
        rows = csv.reader(file)
        at = next(rows).index("OT")
        return [float(row[at]) for row, _ in zip(rows, range(ROWS))]


def darts(place: str) -> dict[str, Any]:
    """Seconds of a training call by steps, in darts."""
    import logging

    import numpy as np
    import torch
    from darts import TimeSeries
    from darts import __version__ as version
    from darts.models import RNNModel

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    x = np.array(values(place), np.float32)
    series = TimeSeries.from_values((x - x.mean()) / x.std())
    found: dict[str, Any] = {"version": version}
    for steps in (SHORT, SHORT, LONG):  # the first also warms up
        quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False, "accelerator": "cpu"}
        model = RNNModel(
            input_chunk_length=LENGTH - 1, training_length=LENGTH, model="LSTM", hidden_dim=UNITS, n_rnn_layers=1,
            batch_size=BATCH, n_epochs=1, random_state=0, pl_trainer_kwargs={**quiet, "limit_train_batches": steps},
        )  # fmt: skip
        before = time.process_time()
        model.fit(series, verbose=False)
        found[str(steps)] = time.process_time() - before
    return found


def ours(place: str) -> dict[str, Any]:
    """The same here."""
    import numpy as np

    import unrolled

    x, found = np.array(values(place)), dict[str, Any]()
    settings = {
        "horizon": 24, "by": "rollout", "distribution": "point", "lookback": LENGTH, "season": 24, "threads": 1,
        "batch_size": BATCH, "d_state": UNITS, "d_embedding": 1, "evaluate_every": 10_000, "evaluate_tokens": 24,
        "stride": 10_000,
    }  # fmt: skip
    for steps in (SHORT, SHORT, LONG):  # the first also warms up
        with tempfile.TemporaryDirectory() as folder:
            before = time.process_time()
            unrolled.train(
                x, "forecast", "lstm", Path(folder) / "run", settings=settings | {"steps": steps}, progress=None,
                baselines={},
            )  # fmt: skip
            found[str(steps)] = time.process_time() - before
    return found


def per_step(found: dict[str, Any]) -> float:
    return float(found[str(LONG)] - found[str(SHORT)]) / (LONG - SHORT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("WHO", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps({"darts": darts, "ours": ours}[asked.one[0]](asked.one[1])))
        return
    from benchmarks.forecast import ETT
    from benchmarks.reproduce import RESULTS, find

    peer = os.environ.get("PEER_PYTHON")
    if peer is None:
        sys.exit("PEER_PYTHON is not set: name the python of an environment that has darts[torch]")
    place, here = str(find(ETT)), str(Path(__file__))
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "darts": []}
    for _ in range(asked.repeat):
        for who, python in (("ours", sys.executable), ("darts", peer)):
            command = [python, here, "--one", who, place]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            runs[who].append(json.loads(done.stdout.splitlines()[-1]))
            print(who, runs[who][-1], flush=True)
    best = {who: min(map(per_step, found)) for who, found in runs.items()}
    result = {
        "windows": f"{BATCH} x {LENGTH}", "units": UNITS, "threads": 1, "darts_version": runs["darts"][0]["version"],
        "ours_ms": 1000 * best["ours"], "darts_ms": 1000 * best["darts"], "ratio": best["darts"] / best["ours"],
        "goal": 1.5, "runs": runs,
    }  # fmt: skip
    (RESULTS / "forecast-speed.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"darts takes {result['ratio']:.2f} times as long")


if __name__ == "__main__":
    main()
