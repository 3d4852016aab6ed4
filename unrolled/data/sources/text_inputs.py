"""Texts of other data than that of training: to continue, to score, to evaluate; found as in training."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError
from unrolled.core.task import Given
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import kind_of
from unrolled.data.files.in_memory import is_standard_input, table_of, values_of
from unrolled.data.files.joined_columns import number_columns
from unrolled.data.files.tables import Example, Table, has_names
from unrolled.data.formats import open_table
from unrolled.data.sources.text import TableSource, open_source

AT_ONCE = 256  # examples that are read together


def bound(source: Any, config: DataConfig, column: str | None) -> DataConfig:
    """How other data than that of training is read: tables by the column that training read, where it has names."""
    named = column is not None and config.column is None and _table(source) is not None
    return config.updated({"part": None, **({"column": column} if named else {})})


def _table(source: Any) -> Table | None:
    """The table in a file or in memory whose columns have names; None: it is something else."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        table = open_table(path) if os.path.isfile(path) else None
    else:
        table = table_of(source)
    return table if table is not None and has_names(table) else None


def inputs_in(source: Any, config: DataConfig, column: str | None = None) -> Iterator[Example]:
    """Texts to continue or to score: bare in a list, or the lines or rows of data, by the columns of training."""
    config = config.updated({"part": None})
    table = _table(source)
    if table is not None:
        names = number_columns(config.condition) or [name for name in (config.condition,) if name is not None]
        there = bool(names) and set(names) <= set(table.columns())
        own = {"condition": config.condition if there else None, "examples": "rows"}
        return TableSource(table, bound(source, config, column).updated(own)).examples()
    if isinstance(source, str | os.PathLike) and os.path.exists(source):
        own = {"column": None, "condition": config.condition if config.condition == "file" else None}
        return open_source(source, config.updated({**own, "examples": "lines"})).examples()
    if isinstance(source, str | os.PathLike):  # built-in, or not there
        is_table = config.examples == "rows" or config.column is not None
        return open_source(source, config.updated({"examples": "auto" if is_table else "lines"})).examples()
    return (Example(_bare(value, i), None, i) for i, value in enumerate(values_of(source), start=1))


def _bare(value: Any, number: int) -> Any:
    if isinstance(value, str) or (hasattr(value, "__len__") and not isinstance(value, dict | tuple)):
        return value
    raise DataError(f"example {number}: found {kind_of(value)}, expected a text")


def read_inputs(source: Any, config: DataConfig, column: str | None) -> Iterator[list[Given]]:
    """The same, some at a time; `-` is standard input, a text a line."""
    lines = (Example(line.rstrip("\n"), None, number) for number, line in enumerate(sys.stdin, 1))
    found = lines if is_standard_input(source) else inputs_in(source, config, column)
    given = (Given(each.text, each.label, number=each.number) for each in found)
    return iter(lambda: list(islice(given, AT_ONCE)), [])
