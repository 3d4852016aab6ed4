"""The cells of a row as a step of a series and as a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.data.files.cell_values import (
    as_class,
    as_classes,
    as_number,
    as_series,
    as_words,
    is_gap,
)
from unrolled.data.reading import Answers, Reading


def step_value(cell: Any, missing: str, place: str, column: str) -> float:
    """A number of a series; NaN where it is missing and gaps are to be filled."""
    if missing != "error" and is_gap(cell):
        return float("nan")
    return as_number(cell, f"{place}, column '{column}'")


def answer_of(cells: Sequence[Any], target: list[str], answers: Answers, reading: Reading, place: str) -> Any:
    """The answer in the target columns of one row."""
    if answers == "none":
        return None
    if answers == "numbers":
        return np.array([as_number(cell, f"{place}, column '{name}'") for name, cell in zip(target, cells)])
    here = f"{place}, column '{target[0]}'"
    if answers == "classes":
        return as_classes(cells[0], reading.class_separator, here)
    if answers == "tags":
        return as_words(cells[0], here)
    return as_series(cells[0], here) if answers == "series" else as_class(cells[0], here)
