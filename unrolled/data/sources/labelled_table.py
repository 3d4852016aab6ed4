"""Labelled examples in tables: csv, tsv, jsonl, json, parquet, data frames and lists of dicts.

| layout | a row is | input |
|---|---|---|
| cells | an example | the cell of one column: a text, a list of words, a list of numbers |
| wide | an example | a series along the row, one column a step |
| long | a step | the rows of one id, one column a channel |
| vector | an example | one step, one column a channel |

With a column of bags a row (long: a series) is an instance of one; where its cells are lists, each is a bag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, MissingColumn, Misused, UsageError, some
from unrolled.core.front import option
from unrolled.data.bags import (
    are_vectors,
    as_bag,
    bags_are_cells,
    first_instance,
    numbers_among,
    vector_or_series,
)
from unrolled.data.files.cell_values import (
    as_class,
    as_series,
    as_text,
    as_words,
    is_gap,
    is_number,
    kind_of,
    shown,
)
from unrolled.data.files.column_kinds import (
    FEWEST,
    class_at_an_end,
    kind_of_cells,
    kinds_in,
    labelled_pair,
    names_before_numbers,
    number_beside_steps,
    obvious_text,
    target_beside,
)
from unrolled.data.files.csv_table import CsvTable
from unrolled.data.files.missing_values import fill
from unrolled.data.files.table_form import is_table_of_numbers
from unrolled.data.files.tables import ListTable, Table, frame_table
from unrolled.data.files.text_file import TextFile
from unrolled.data.formats import open_table, reader_of
from unrolled.data.given_splits import given_part
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Answers, Kind, Names, Reading, as_names, names_of
from unrolled.data.sources.long_table import read_long
from unrolled.data.sources.row_values import answer_of, step_value
from unrolled.data.sources.rows_as_steps import order_by_content, target_of_steps

INPUTS = ("text", "sentence", "review", "sequence", "tokens", "words", "x", "input", "document", "message")
LETTERS = ("x", "input", "sequence")  # of these, what columns of numbers are called too
TARGETS: dict[str, tuple[str, ...]] = {
    "class": ("label", "class", "target", "y", "category", "language", "sentiment", "answer", "labels"),
    "classes": ("labels", "classes", "label", "categories", "tags", "target", "y", "answer"),
    "numbers": ("target", "y", "value", "answer", "score", "label"),
    "tags": ("tags", "labels", "pos_tags", "ner_tags", "tag", "target"),
    "series": ("clean", "target", "y"),
}
IDS = ("id", "series", "series_id", "sequence_id", "sample_id", "case_id", "recording")
LOOKED_AT = 1000  # rows, to find out whether ids come again
ROWS = 300  # to find out whether the first is a header
TIMES = ("time", "t", "step", "tick", "timestamp", "datetime", "date")
KNOWN = frozenset({*INPUTS, *IDS, *TIMES, *(name for names in TARGETS.values() for name in names)})


def table_in(path: Path, file: TextFile | None = None) -> Table | None:
    """A table in a file, by its ending or, where no reader claims that, by its content; numbers without a header line
    get the column names 1, 2, 3, ... None: it is no table."""
    file = file or TextFile(path)
    table = open_table(path, file)
    if reader_of(path) is None and is_table_of_numbers(list(islice(file.lines(), ROWS))):
        table = CsvTable(file, ",")
    if isinstance(table, CsvTable) and lacks_header(table.first_rows(ROWS)):
        return table.without_header()
    return table


def lacks_header(rows: list[list[str]]) -> bool:
    """Whether the first row is one like others: numbers alone, a number above numbers, or a class that comes again.

    >>> lacks_header([["ham", "see you soon"], *([["spam", "win now"], ["ham", "see you"]] * 5)])
    True
    """
    first, below = (rows[0], rows[1:]) if rows else ([], [])
    if len(first) > 1 and all(is_number(cell) for cell in first):
        return True
    if len(first) < 2 or len(below) < FEWEST or KNOWN & {cell.strip().lower() for cell in first}:
        return False
    if any(len(row) != len(first) for row in below):
        return False
    columns = [[row[i] for row in below] for i in range(len(first))]
    kinds = [kind_of_cells(cells) for cells in columns]
    comes_again = any(kind.is_names and cell in cells for cell, cells, kind in zip(first, columns, kinds))
    return comes_again or (len(first) == 2 and any(k.numbers and is_number(cell) for cell, k in zip(first, kinds)))


def open_rows(source: Any, reading: Reading, answers: Answers) -> LabelledSource:
    """A list of dicts, or a data frame of any library that narwhals knows."""
    if isinstance(source, list):
        if not source or not isinstance(source[0], dict):
            raise Misused('examples in a list are dicts with named values, such as {"text": ..., "label": ...}')
        return open_columns(ListTable(source), reading, answers)
    return open_columns(frame_table(source, "examples", "a list of dicts, arrays (x, y)"), reading, answers)


def open_columns(table: Table, reading: Reading, answers: Answers) -> LabelledSource:
    """A table by its columns: which layout, which columns, what kind of input."""
    names = table.columns()
    _there(table, names, "bag", reading.bag)
    if lists := bags_are_cells(table, reading):
        reading = reading.updated({"column": as_names([str(reading.bag)])})
    elif reading.bag is not None and names_of(reading.column) == [reading.bag]:  # found in lists, before
        reading = reading.updated({"column": None})
    target = _targets(table, names, reading, answers)
    reading, unused = _with_order(table, reading, target, answers)
    apart_by = {"group": reading.group, "part": reading.part, "id": reading.id, "reading.time": reading.time,
                "bag": None if lists else reading.bag}  # fmt: skip
    for setting, wanted in apart_by.items():
        _there(table, names, setting, wanted)
    apart = {*apart_by.values(), *unused}
    others = [name for name in names if name not in apart and name not in target]
    if reading.column is None and reading.layout in ("auto", "wide", "vector"):
        reading, others = _without_names(table, reading, others)
    layout: str = reading.layout
    if layout == "auto":
        layout = "cells" if lists else _layout(table, reading, others, answers)
    inputs = _inputs(table, reading, others, layout)
    kind: Kind = "series"
    if layout == "cells":
        first = next(table.rows(inputs), (0, ("",)))[1][0]
        kind = _kind_of(first_instance(first) if lists else first, answers)
    settled = reading.updated({"column": as_names(inputs), "target": as_names(target), "layout": layout})

    def read() -> Iterator[Labelled]:
        if layout == "cells" or lists:
            return _cells(table, inputs, target, settled, answers, kind)
        if layout in ("wide", "vector"):
            return _wide(table, inputs, target, settled, answers)
        return read_long(table, inputs, target, settled, answers)

    typed = not isinstance(table, CsvTable)
    source = LabelledSource(table.name, kind, answers, read, table.notes, settled, typed, bags=lists)
    if reading.column is None:
        source.notes[f"{table.name}: the input is {_listed(inputs)}, chosen by name and content"] = None
    if reading.target is None and target:
        by = "by name" if {name.lower() for name in target} & {*TARGETS[answers]} else "by its content"
        left = [name for name in others if name not in inputs] if (layout, answers) == ("cells", "class") else []
        also = [name for name, kind in kinds_in(table, left).items() if kind.is_names]
        other = f"; {_listed(also)} could be it too: {option('target')} changes that" if also else ""
        source.notes[f"{table.name}: the target is {_listed(target)}, chosen {by}{other}"] = None
    return source


def _there(table: Table, names: Sequence[str], setting: str, wanted: str | None) -> None:
    if wanted is not None and wanted not in names:
        raise MissingColumn(table.name, wanted, option(setting), names)


def _named(table: Table, names: Sequence[str], setting: str, wanted: Names) -> list[str]:
    """One column by its whole name, or several."""
    found = names_of(wanted, names)
    for name in found:
        _there(table, names, setting, name)
    return found


def _targets(table: Table, names: list[str], reading: Reading, answers: Answers) -> list[str]:
    if answers == "none":  # a column of answers that the table has all the same is not an input
        return [name for name in names_of(reading.target, names) if name in names]
    if reading.target is not None:
        found = _named(table, names, "target", reading.target)
        if len(found) > 1 and answers not in ("numbers", "series"):
            raise UsageError(f"{table.name}: {answers} must be in one column, not in {_listed(found)}")
        return found
    by_name = {name.lower(): name for name in reversed(names)}
    guess = next((by_name[name] for name in TARGETS[answers] if name in by_name), None)
    inputs = names_of(reading.column, names)
    taken = {*inputs, reading.group, reading.part, reading.id, reading.time, reading.bag}
    left = [name for name in names if name not in taken and name.lower() not in INPUTS]
    if guess is None and len(left) == 1 and len(names) > 1:
        guess = left[0]
    if guess is None and (by_content := target_by_content(table, reading)):
        guess = by_content[0]
    if guess is None or guess in inputs:
        known = f"it has {some(names)}"
        raise UsageError(f"{table.name}: name the column of the target with {option('target')}; {known}")
    return [guess]


def target_by_content(table: Table, reading: Reading) -> tuple[str, str] | None:
    """The column of classes or of numbers beside the only column of texts, and which they are; None: there is none."""
    names = table.columns()
    inputs = names_of(reading.column, names)
    taken = {reading.group, reading.part, reading.id, reading.time, reading.bag}
    free = [name for name in names if name not in taken and name not in inputs and name.lower() not in IDS]
    kinds = kinds_in(table, [*inputs, *free])
    by_name = {name.lower(): name for name in reversed(free)}
    text = inputs[0] if len(inputs) == 1 else next((by_name[name] for name in INPUTS if name in by_name), None)
    text = text or obvious_text(kinds)
    if text is None and not inputs and (last := class_at_an_end(kinds) or target_of_steps(table, free, TIMES)):
        return last, "class"
    if text is None and not inputs and (last := number_beside_steps(kinds)):
        return last, "numbers"
    if text is None and len(free) == 2 and (pair := labelled_pair(kinds[free[0]], kinds[free[1]])):
        return free[pair[0]], pair[1]
    return None if text is None or not kinds[text].is_various else target_beside(text, kinds, free)


def _with_order(table: Table, reading: Reading, target: list[str], answers: Answers) -> tuple[Reading, list[str]]:
    """With the columns that identify the series of a long table and order them, and columns that are then not used.

    They are called so, or their content tells. Names alone do not: a table of texts has an id too, and one of numbers
    along each row may number its rows.
    """
    if reading.id is not None or reading.time is not None or reading.layout not in ("auto", "long"):
        return reading, []
    taken = {*target, reading.part, *names_of(reading.column, table.columns())}
    free = {name.lower(): name for name in reversed(table.columns()) if name not in taken}
    id_, time = (next((free[name] for name in names if name in free), None) for names in (IDS, TIMES))
    channels = [name for name in free.values() if name not in (id_, time, reading.group)]
    if reading.column is not None:
        channels = _named(table, table.columns(), "column", reading.column)
    if reading.layout == "auto" and not _are_steps(table, id_, time, channels, answers):
        return (reading, []) if answers == "none" else order_by_content(table, reading, target, TIMES)
    found = {"id": id_, "time": time}
    for name, what in ((id_, "identifies the series"), (time, "orders their steps")):
        if name is not None:
            table.notes[f"{table.name}: column {name} {what}, chosen by name"] = None
    return reading.updated(found), []


def _without_names(table: Table, reading: Reading, others: list[str]) -> tuple[Reading, list[str]]:
    """Columns of numbers without those of names before them; rows of one name after each other are a group."""
    kinds = kinds_in(table, others)
    names = names_before_numbers(kinds)
    if not names:
        return reading, others
    group = None if reading.group is not None else next((name for name in names if kinds[name].in_runs), None)
    if group is not None:
        table.notes[f"{table.name}: rows of one name in column {group} stay in one split"] = None
    if unused := [name for name in names if name not in (group, reading.group)]:
        table.notes[f"{table.name}: not used, because they name the rows: {_listed(unused)}"] = None
    return reading.updated({"group": reading.group or group}), [name for name in others if name not in {*names}]


def _are_steps(table: Table, id_: str | None, time: str | None, channels: list[str], answers: Answers) -> bool:
    """Whether rows hold single numbers, and are steps: each with an answer, or several at times of one id."""
    first = next(table.rows(channels), (0, ()))[1]
    if not all(is_number(cell) or is_gap(cell) for cell in first):
        return False
    if answers == "series":
        return True
    if id_ is None or time is None:
        return False
    ids = [cells[0] for _, cells in islice(table.rows([id_]), LOOKED_AT)]
    return len(set(ids)) < len(ids)


def _layout(table: Table, reading: Reading, others: list[str], answers: Answers) -> str:
    """By what was named, else by what stands in the first row."""
    if reading.id is not None or reading.time is not None:
        return "long"
    if reading.bag is not None and are_vectors(table, reading, others, INPUTS):
        return "vector"
    if answers == "series":
        first = next(table.rows(others), (0, ()))[1]
        return "cells" if any(isinstance(cell, list | tuple) for cell in first) else "long"
    if reading.column is not None:
        return "cells" if len(names_of(reading.column, others)) == 1 else "wide"
    if any(name.lower() in INPUTS and name.lower() not in LETTERS for name in others) or len(others) <= 1:
        return "cells"
    first = next(table.rows(others), (0, ("",)))[1]
    return "wide" if all(is_number(cell) or is_gap(cell) for cell in first) else "cells"


def _inputs(table: Table, reading: Reading, others: list[str], layout: str) -> list[str]:
    if reading.column is not None:
        names = table.columns()
        found = _named(table, names, "column", reading.column)
        if taken := [name for name in found if name not in others]:
            raise UsageError(f"{table.name}: column '{taken[0]}' cannot be the input and have another use too")
        if layout == "cells" and len(found) > 1:
            wide = f"or use {option('layout', 'wide')}"
            raise UsageError(f"{table.name}: a text must be in one column, not in {_listed(found)}; {wide}")
        return found
    if layout in ("wide", "vector"):
        others = [name for name in others if name.lower() not in IDS]  # a number of the row is no step of a series
    if layout == "vector":
        others = numbers_among(table, others)
    if layout != "cells":
        if not others:
            raise UsageError(f"{table.name}: no column is left for the series; it has {_listed(table.columns())}")
        return others
    by_name = {name.lower(): name for name in reversed(others)}
    guess = next((by_name[name] for name in INPUTS if name in by_name), others[0] if len(others) == 1 else None)
    guess = guess or obvious_text(kinds_in(table, [name for name in others if name.lower() not in IDS]))
    if guess is None:
        known = f"it has {_listed(others)}"
        raise UsageError(f"{table.name}: name the column of the input with {option('column')}; {known}")
    return [guess]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6])
    return f"column{'s' if len(names) > 1 else ''} {shown}{f' and {len(names) - 6} more' if len(names) > 6 else ''}"


def _kind_of(cell: Any, answers: Answers) -> Kind:
    if answers == "tags":
        return "words"
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, list | tuple):
        inner = cell[0] if cell else 0.0
        return "words" if isinstance(inner, str) else "series"
    return "text"


# ---- rows


def _cells(
    table: Table, inputs: list[str], target: list[str], reading: Reading, answers: Answers, kind: Kind
) -> Iterator[Labelled]:
    vectors = partial(vector_or_series, wide=reading.layout == "wide")
    instance = vectors if kind == "series" else partial(_input, kind=kind)
    for number, (value, *answer), extras in _with_extras(table, [*inputs, *target], reading):
        place = table.place(number)
        here = f"{place}, column '{inputs[0]}'"
        content = as_bag(value, here, instance) if [reading.bag] == inputs else _input(value, here, kind)
        yield Labelled(content, answer_of(answer, target, answers, reading, place), place, **extras)


def _wide(table: Table, inputs: list[str], target: list[str], reading: Reading, answers: Answers) -> Iterator[Labelled]:
    vector = reading.layout == "vector"
    for number, cells, extras in _with_extras(table, [*inputs, *target], reading):
        place = table.place(number)
        steps = np.array([step_value(cell, reading.missing, place, name) for name, cell in zip(inputs, cells)])
        values = fill(steps[None] if vector else steps[:, None], reading.missing, place)  # [1, D] or [T, 1]
        yield Labelled(values, answer_of(cells[len(inputs) :], target, answers, reading, place), place, **extras)


def _with_extras(
    table: Table, columns: list[str], reading: Reading
) -> Iterator[tuple[int, tuple[Any, ...], dict[str, Any]]]:
    """The rows of some columns, with the group, the part and the bag of each."""
    bag = None if reading.bag in columns else reading.bag
    wanted = {"group": (reading.group, as_class), "part": (reading.part, given_part), "bag": (bag, as_class)}
    named = [(what, name, read) for what, (name, read) in wanted.items() if name is not None]
    if not named:
        yield from ((number, cells, {}) for number, cells in table.rows(columns))
        return
    for number, cells in table.rows([*columns, *(name for _, name, _ in named)]):
        place = table.place(number)
        extras = {
            what: read(cell, f"{place}, column '{name}'")
            for (what, name, read), cell in zip(named, cells[len(columns) :])
        }
        yield number, cells[: len(columns)], extras


def _input(cell: Any, here: str, kind: Kind) -> Any:
    if kind == "words":
        return as_words(cell, here)
    if kind == "series":
        return as_series(cell, here)
    if not isinstance(cell, str) or not cell.strip():
        what = "an empty cell" if is_gap(cell) or isinstance(cell, str) else f"{kind_of(cell)} ({shown(cell)})"
        raise DataError(f"{here}: found {what}, expected text; fill it in, or remove the row")
    return as_text(cell, here)
