"""Inputs without answers, to predict for: found as training found them, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Any

from unrolled.core.errors import Misused
from unrolled.data.files.cell_values import in_brief
from unrolled.data.files.in_memory import table_of, values_of
from unrolled.data.labelled import Bag, Labelled, LabelledSource
from unrolled.data.reading import Kind, Reading
from unrolled.data.sources.open_labelled import open_labelled


def inputs_of(source: Any, reading: Reading, kind: Kind, bags: bool = False) -> Iterable[Labelled]:
    """The inputs of whatever holds examples, by the columns that a saved run read; a list of bare inputs has none."""
    inputs_only = reading.updated({"group": None, "part": None})
    if isinstance(source, str | PathLike) or table_of(source) is not None:
        return open_labelled(source, inputs_only, "none")
    if isinstance(source, Mapping):
        if alone := next((name for name, value in source.items() if isinstance(value, str)), None):
            raise Misused(f"'{alone}' is a single text, not a column: give rows in a list, [{{...}}]")
        return open_labelled(source, inputs_only, "none")
    if isinstance(source, tuple) and len(source) in (1, 2) and not isinstance(source[0], str):
        return open_labelled(source, bare(inputs_only), "none")
    values = values_of(source)
    if kind == "series" and not bags and values and not any(isinstance(value, str) for value in values):
        return open_labelled((values,), bare(inputs_only), "none")
    return labelled(values)


def bare(reading: Reading) -> Reading:
    """The reading without names of columns or arrays, for what has none."""
    return reading.updated({"column": None, "target": None})


def labelled(values: Sequence[Any], first: int = 1) -> list[Labelled]:
    """Inputs from Python as examples without answers."""
    return [Labelled(value, None, f"example {i}", None, "all") for i, value in enumerate(values, start=first)]


def _brief(value: Any) -> str:
    return f"{len(value)} instances: {in_brief(value[0], 60)}" if isinstance(value, Bag) else in_brief(value)


def first_labelled(opened: LabelledSource, n: int) -> list[dict[str, Any]]:
    """The first examples for people: what is read, what is to be predicted, where it is."""
    return [
        {"input": _brief(each.input), "target": in_brief(each.answer), "place": each.place}
        for each in islice(opened, n)
    ]
