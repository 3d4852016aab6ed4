"""Rows on equal terms: their metrics on the units that were measured for all of them, and how sure the score is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.comparison.statistics import Array, Sample, in_common
from unrolled.core.errors import DataError
from unrolled.core.metric import Metric
from unrolled.pictures.letters import title_words
from unrolled.runs.storage.directory import RunDirectory

Rows = Sequence[dict[str, Any]]
Units = dict[str, list[dict[str, Array]]]  # by label and seed: the tensors of units.safetensors
FEWER = "the same ones for all models, because generating predictions may take at most 15 % of the time of a run"


class Compared(NamedTuple):
    """The score of each row by unit, the units that all rows have, and what is to be said of them."""

    samples: dict[str, Sample]
    n_units: int
    notes: list[str]


def compare_units(
    rows: Rows, runs: Mapping[str, Sequence[RunDirectory]], metrics: Sequence[Metric], in_folds: bool
) -> Compared:
    """Enter the metrics into the rows.

    A run writes as many texts as it has time for, in an order that all share. So rows are compared on the units that
    were measured for all of them: otherwise they would differ by the examples too.
    """
    units = {label: [_units(run) for run in each] for label, each in runs.items()}
    if not units:
        return Compared({}, 0, [])
    tensors = next(iter(units.values()))[0]
    split = "test" if any(name.startswith("test.") for name in tensors) else "valid"
    shown = {metric: _samples(units, split, metric) for metric in metrics}
    for row in rows:
        if row["label"] in units:
            row["score"], row["spread"] = shown[metrics[0]][row["label"]].score, shown[metrics[0]][row["label"]].spread
            row["figures"] |= {metric.name: shown[metric][row["label"]].score for metric in metrics}
    if not in_folds:  # those are ranked by their folds
        _enter_validation(rows, units, metrics[0])
    n = next(iter(shown[metrics[0]].values())).statistics.shape[1]
    of = len(tensors[f"{split}.{metrics[0].name}"])
    said = f"{title_words(metrics[0].name)} is computed on {n:,} of {of:,} {split} examples, {FEWER}"
    return Compared(shown[metrics[0]], n, [said] if n < of else [])


def _units(run: RunDirectory) -> dict[str, Array]:
    return {name: tensor.numpy() for name, tensor in run.read_tensors("units.safetensors").items()}


def _samples(units: Units, split: str, metric: Metric) -> dict[str, Sample]:
    """The statistics of every row on the units that all have."""
    name = f"{split}.{metric.name}"
    for label, seeds in units.items():
        if any(name not in each for each in seeds):
            raise DataError(f"{label}: one of its runs has no {metric.name} per unit; train it again")
    return in_common({
        label: Sample(np.stack([each[name] for each in seeds]), metric.formula) for label, seeds in units.items()
    })  # fmt: skip


def _enter_validation(rows: Rows, units: Units, metric: Metric) -> None:
    """The score that ranks, on the validation units that all rows have."""
    for label, sample in _samples(units, "valid", metric).items():
        row = next(row for row in rows if row["label"] == label)
        row["valid_of_runs"], row["valid"] = sample.scores.tolist(), sample.score
