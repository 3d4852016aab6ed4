"""Columns of numbers as the condition of texts: vectors (x - mean) / deviation of training, which start any decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE
from unrolled.core.config import Record
from unrolled.core.errors import UsageError
from unrolled.core.front import option
from unrolled.data.examples import Examples, ragged
from unrolled.data.files.cell_values import as_number
from unrolled.data.prepared import Prepared

SMALL = 1e-6  # of a deviation


class NumberCondition(Record):
    """The columns, and what is typical of them."""

    names: list[str]
    mean: list[float]
    deviation: list[float]

    def vector(self, words: str | None) -> NDArray[np.float32]:
        """[1, C] of numbers as they are typed: 3,41.5 or size=3,age=41.5."""
        parts = [each.strip() for each in (words or "").split(",")] if words else []
        named = dict(each.split("=", 1) for each in parts if "=" in each)
        values = [named[name] for name in self.names] if sorted(named) == sorted(self.names) else parts
        if len(values) != len(self.names) or (named and values is parts):
            usage = ",".join(f"{name}={mean:.4g}" for name, mean in zip(self.names, self.mean))
            raise UsageError(f"this run needs {option('condition')} {usage}; found {words or 'nothing'}")
        return self._scaled([values])

    def _scaled(self, rows: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        numbers = np.array([[as_number(each, option("condition")) for each in row] for row in rows])
        return ((numbers - np.array(self.mean)) / np.array(self.deviation)).astype(np.float32)

    def example(self) -> str:
        return ",".join(f"{mean:.4g}" for mean in self.mean)

    def words(self, vector: NDArray[Any]) -> str:
        """What `vector` takes, of a vector [1, C]."""
        numbers = vector[0] * np.array(self.deviation) + np.array(self.mean)
        return ",".join(f"{value:.9g}" for value in numbers)

    def in_vectors(self, section: Examples, labels: Sequence[str]) -> Examples:
        """A section whose conditions are vectors, not the numbers of the labels that they were read as."""
        table = self._scaled([label.split(",") for label in labels])  # [L, C]
        rows = [table[int(k)][None] for k in section.columns[SOURCE]]
        columns = {name: column for name, column in section.columns.items() if name != SOURCE}
        return replace(section, fields={**section.fields, SOURCE: ragged(rows)}, columns=columns)


def fitted(names: list[str], train: Examples, labels: Sequence[str]) -> NumberCondition:
    """Mean and deviation over the examples of training."""
    table = np.array([[float(each) for each in label.split(",")] for label in labels])  # [L, C]
    rows = table[np.asarray(train.columns[SOURCE], np.int64)]
    deviation = np.where(rows.std(axis=0) > SMALL, rows.std(axis=0), 1.0)
    return NumberCondition(names=names, mean=rows.mean(axis=0).tolist(), deviation=deviation.tolist())


def in_vectors(found: Prepared, names: list[str], known: NumberCondition | None) -> tuple[NumberCondition, Prepared]:
    """The condition, fitted unless it is known, and prepared data whose conditions are vectors."""
    labels = found.told["labels"] or []
    condition = known or fitted(names, found.sections["train"], labels)
    sections = {split: condition.in_vectors(section, labels) for split, section in found.sections.items()}
    return condition, replace(found, sections=sections)
