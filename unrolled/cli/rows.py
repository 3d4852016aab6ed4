"""`unrolled predict RUN table.csv -o out.csv`: the user's own rows, with the answers in columns behind them.

The table is read twice side by side, once for its cells and once for the examples in them, some rows at a time; so one
of any size passes. The series of a long table are held, for their rows may be mixed.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from unrolled.data.tables import Table

Out = Annotated[
    str | None,
    typer.Option(
        "-o", "--out", help="Write to this file: .csv or .tsv for the rows of DATA with the answers behind, or .jsonl."
    ),
]
SIGNS = {".csv": ",", ".tsv": "\t"}


def write(out: str, data: str, said: Iterator[dict[str, Any]], task: Any) -> None:
    """All answers into a file, which is there only when it is complete."""
    path = Path(out)
    if path.suffix not in (*SIGNS, ".jsonl"):
        raise UsageError(f"-o {out}: the ending must be .csv, .tsv or .jsonl, for it says what is written")
    if data != "-" and path.exists() and path.samefile(data):
        raise UsageError(f"-o {out}: this is the file that is read; name another one")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder '{path.parent}'; make it first")
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            if path.suffix == ".jsonl":
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in with_ids(data, said, task))
            else:
                csv.writer(file, delimiter=SIGNS[path.suffix], lineterminator="\n").writerows(_rows(data, said, task))
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def with_ids(data: str, said: Iterator[dict[str, Any]], task: Any) -> Iterator[dict[str, Any]]:
    """The answers to the series of a long table with the id of each; others as they are."""
    from unrolled.data.labelled_table import table_in
    from unrolled.data.long_table import steps_of

    table = table_in(Path(data)) if _is_long(data, task) and task.reading.id is not None else None
    if table is None:
        return said
    ids, _ = steps_of(table, task.reading)
    return ({task.reading.id: name, **line} for name, line in zip(ids, said, strict=True))


def _is_long(data: str, task: Any) -> bool:
    return data != "-" and getattr(getattr(task, "reading", None), "layout", None) == "long"


def _by_row(table: Table, said: Iterator[dict[str, Any]], task: Any) -> Iterator[dict[str, Any]]:
    """Answers to series as answers to their steps, in the order of the rows: each its own, or that of the series."""
    from unrolled.data.long_table import steps_of

    each = list(said)
    for k, step in steps_of(table, task.reading)[1]:
        if task.answers_are == "series":
            own = {name: value[step] for name, value in each[k].items()}
            yield {name: value[0] if len(value) == 1 else value for name, value in own.items()}
        else:
            yield each[k]


def _rows(data: str, said: Iterator[dict[str, Any]], task: Any) -> Iterator[list[Any]]:
    """The rows of a table with the answers in columns behind; the header, where it has one, first."""
    table, named = _table(data, task)
    if _is_long(data, task):
        said = _by_row(table, said, task)
    names = table.columns()
    added: list[str] = []
    cells = table.rows(names)
    for number, line in enumerate(said, start=1):
        if not added:
            added = [name for name in line if name != "text"]
            if taken := [name for name in added if name in names]:
                raise UsageError(f"{data}: there is a column '{taken[0]}' already; rename it, the answer is called so")
            if named:
                yield [*names, *added]
        row = next(cells, None)
        if row is None:
            raise _unlike(data, number)
        yield [*(_cell(cell) for cell in row[1]), *(_cell(line[name]) for name in added)]
    if next(cells, None) is not None:
        raise _unlike(data, None)


def _table(data: str, task: Any) -> tuple[Table, bool]:
    """The table in a file, as the task reads it, and whether its columns have names."""
    from unrolled.data.labelled_table import Headerless, table_in

    table = None if data == "-" else getattr(task, "table_in", table_in)(Path(data))
    if table is None:
        raise UsageError(f"'{data}' is no table whose rows could be kept; write a .jsonl file, or give a .csv file")
    return table, not isinstance(table, Headerless)


def _unlike(data: str, number: int | None) -> DataError:
    where = "fewer examples than rows" if number is None else f"no row for example {number}"
    return DataError(f"{data}: found {where}, so answers cannot stand beside rows; write a .jsonl file instead")


def _cell(value: Any) -> Any:
    """Lists, mappings and truth values as JSON, everything else as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | tuple | bool) else value
