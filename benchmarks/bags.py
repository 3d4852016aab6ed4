"""Bags of sequences and of vectors: `python -m benchmarks.bags [PIECE ...]`.

    motifs   400 bags of 1,000 sequences, a motif in 1 % of those of half of the bags; four seeds, two poolings
    rare     400 bags of 10,000 sequences, a motif in 0.1 %
    musk1    92 molecules as bags of 2 to 40 vectors, mean of five 10-fold cross-validations (needs UNROLLED_DATA)
    large    200 bags of 50,000 sequences: memory

Each piece is kept as benchmarks/results/bags-PIECE.json. Settings were chosen before the test data was looked at; of
musk1 nothing is chosen on the folds: the weights are those of the last step, and validation data is the training data.
"""

from __future__ import annotations

import csv
import re
import resource
import tempfile
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pieces import Pieces, place, run_pieces, trained

POOLINGS = ("hopfield", "attention")
READER = {"form": "plain", "widths": [32], "kernel": 7, "d_embedding": 16, "readout": "max"}
MOTIF = re.compile("LD.S.GT")
FOLDS, TIMES = 10, 5
MUSK = {"bag": "b", "d_state": 128, "n_layers": 2, "d_embedding": 128, "lr": 1e-3,
        "weight_decay": 0.05, "batch_size": 8, "steps": 400, "evaluate_every": 400}  # fmt: skip


def motifs(time: str = "15m") -> dict[str, Any]:
    own = {"instances": 400, "batch_size": 16, "steps": 500, "evaluate_every": 50}
    runs = [_of_motifs("builtin:motifs", {**own, "pooling": pooling, "seed": seed}, time)
            for seed in range(4) for pooling in POOLINGS]  # fmt: skip
    return {"protocol": "400 bags of 1,000 sequences, 1 % with the motif, split 60/20/20", "runs": runs}


def rare(time: str = "30m") -> dict[str, Any]:
    own = {"instances": 2000, "batch_size": 16, "steps": 400, "evaluate_every": 50}
    source = "builtin:motifs,instances=10000,witness=0.001"
    runs = [_of_motifs(source, {**own, "pooling": pooling}, time) for pooling in POOLINGS]
    return {"protocol": "400 bags of 10,000 sequences, 0.1 % with the motif, split 60/20/20", "runs": runs}


def _of_motifs(source: str, own: dict[str, Any], time: str) -> dict[str, Any]:
    begun, before = clock.process_time(), clock.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = {**READER, **own, "split": "60/20/20"}
        known = None if own.get("seed", 0) == 0 and own["pooling"] == POOLINGS[0] else {}
        run, kept = trained(source, "classify", "tcn", time, settings, Path(folder), known)
        kept["processor_seconds"] = round(clock.process_time() - begun)
        kept["seconds"] = round(clock.perf_counter() - before)
        kept["top"] = list(_tops(run, source))
    return kept


def _tops(run: Any, source: str) -> Iterator[float]:
    """Of new positive bags, the share of the instances with the largest weights, as many as have the motif, that do."""
    from unrolled.data.builtin_sets import asked

    found = asked(source)
    fresh = found._replace(settings=found.settings.updated({"seed": 1, "examples": 20}))
    for bag in list(fresh.read())[1::2]:
        has = [bool(MOTIF.search(text)) for text in bag.input]
        weights = run.inspect("attention", bag.input).arrays["weights"].numpy()
        largest = np.argsort(-weights, kind="stable")[: sum(has)]
        yield float(np.mean([has[i] for i in largest]))


def musk1() -> dict[str, Any]:
    with open(place("musk1/clean1.data"), encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    bags, x, y = (
        np.array([row[0] for row in rows]),
        np.array([row[2:-1] for row in rows], float),
        [row[-1] for row in rows],
    )
    names, first = np.unique(bags, return_index=True)
    labels = np.array(y)[first]
    begun, found = clock.process_time(), dict[str, list[list[float]]]()
    for again in range(TIMES):
        for test in _folds(labels, again):
            held = np.isin(bags, names[test])
            for label, accuracy in _on_fold(x, np.array(y), bags, held, again):
                found.setdefault(label, [[] for _ in range(TIMES)])[again].append(accuracy * len(test))
        print(again, {label: sum(each[again]) / len(names) for label, each in found.items()}, flush=True)
    accuracy = {label: [sum(fold) / len(names) for fold in each] for label, each in found.items()}
    return {"protocol": f"musk1, {TIMES} times {FOLDS} folds", "settings": MUSK, "accuracy": accuracy,
            "mean": {label: float(np.mean(each)) for label, each in accuracy.items()},
            "processor_seconds": round(clock.process_time() - begun)}  # fmt: skip


def _folds(y: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Equal shares of the bags of each class."""
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(np.flatnonzero(y == each)) for each in np.unique(y)])
    return (np.sort(order[fold::FOLDS]) for fold in range(FOLDS))


def _on_fold(
    x: np.ndarray, y: np.ndarray, bags: np.ndarray, held: np.ndarray, seed: int
) -> Iterator[tuple[str, float]]:
    import unrolled
    from unrolled.training.progress import Quiet

    splits = {"train": ~held, "valid": ~held, "test": held}  # no weights are chosen: validation data is training data
    data = {f"{name}_{split}": each[own] for split, own in splits.items() for name, each in zip("xyb", (x, y, bags))}
    for pooling in POOLINGS:
        known = None if pooling == POOLINGS[0] else {}
        with tempfile.TemporaryDirectory() as folder:
            run = unrolled.train(
                data, task="classify", model="memoryless", out=Path(folder) / "run", baselines=known,
                settings={**MUSK, "pooling": pooling, "seed": seed}, progress=Quiet(),
            )  # fmt: skip
            yield pooling, run.result["test"]["accuracy"]
            for label, figures in run.result["baselines"].items():
                yield label, figures["test"]["accuracy"]


def large(time: str = "10m") -> dict[str, Any]:
    own = {"instances": 1000, "batch_size": 8, "steps": 20, "evaluate_every": 20, "pooling": "hopfield"}
    source = "builtin:motifs,examples=200,instances=50000,witness=0.001"
    with tempfile.TemporaryDirectory() as folder:
        begun = clock.process_time()
        kept = trained(source, "classify", "tcn", time, {**READER, **own}, Path(folder), {})[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"protocol": "200 bags of 50,000 sequences, 20 steps and all metrics", "peak_megabytes": round(peak),
            "processor_seconds": round(clock.process_time() - begun), "run": kept}  # fmt: skip


PIECES: Pieces = {"motifs": motifs, "rare": rare, "musk1": musk1, "large": large}

if __name__ == "__main__":
    run_pieces(PIECES, "bags", __doc__)
