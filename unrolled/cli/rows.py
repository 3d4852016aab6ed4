"""`unrolled predict RUN table.csv -o out.csv`: the user's own rows, with the answers in columns behind them.

The table is read twice side by side, once for its cells and once for the examples in them, some rows at a time; so one
of any size passes. The series of a long table are held, for their rows may be mixed.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.streams import json_words
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.storage import atomic

if TYPE_CHECKING:
    from unrolled.core.task import Given, Rows, Task
    from unrolled.core.verb import Result

Out = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--out",
        help="Output file: .csv or .tsv for the rows of DATA with the predictions in additional columns, or .jsonl.",
    ),
]
QuoteFormulas = Annotated[
    bool,
    typer.Option(
        "--quote-formulas",
        help="In a .csv or .tsv file, put ' before every cell that a spreadsheet would run as a formula (cells "
        "that start with =, +, -, @, a tab or a line end and are not numbers).",
    ),
]
INPUTS = ("text", "source")  # what the rows hold already
LINES = 256  # that are written at a time
SIGNS = {".csv": ",", ".tsv": "\t"}
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?%?")


def write(
    out: str,
    data: str,
    found: Iterator[tuple[Given, Result]],
    task: Task | None,
    quote_formulas: bool = False,
    rows: Callable[[Result], list[Result]] | None = None,
) -> None:
    """All results into a file, which is there only when it is complete; `rows` makes rows of their own of a result."""
    path = Path(out)
    if path.suffix not in (*SIGNS, ".jsonl"):
        raise UsageError(f"-o {out}: unknown output format; the file name must end in .csv, .tsv or .jsonl")
    if quote_formulas and path.suffix == ".jsonl":
        raise UsageError("--quote-formulas applies only to .csv and .tsv files")
    if path.is_dir():
        raise UsageError(f"-o {out}: this is a folder; name a file")
    if data != "-" and path.exists() and path.samefile(data):
        raise UsageError(f"-o {out}: this is the input file; name another one")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder '{path.parent}'; create it first")
    if path.suffix == ".jsonl":
        named = ({**given.names, **line} for given, line in found)
        texts: Iterator[str] = (
            json_words({k: v for k, v in line.items() if k != "source"}, encoding="utf-8") + "\n" for line in named
        )
    else:
        lines = (line for _, line in found)
        cells = _rows(data, lines, task) if rows is None else _own_rows(row for line in lines for row in rows(line))
        texts = _csv(map(_quoted, cells) if quote_formulas else cells, SIGNS[path.suffix])
    atomic.write_chunks(path, _blocks(texts))


def _blocks(texts: Iterator[str]) -> Iterator[bytes]:
    """Lines, many at a time."""
    while some := list(itertools.islice(texts, LINES)):
        yield "".join(some).encode("utf-8", "backslashreplace")


def _csv(rows: Iterable[list[Any]], sign: str) -> Iterator[str]:
    """The lines of a table."""
    line = io.StringIO()
    writer = csv.writer(line, delimiter=sign, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _quoted(row: list[Any]) -> list[Any]:
    """A row whose cells a spreadsheet shows and does not run; numbers are what they were."""
    return [f"'{c}" if isinstance(c, str) and FORMULA.match(c) and not NUMBER.fullmatch(c) else c for c in row]


def _by_row(rows: Rows, said: Iterator[Result]) -> Iterator[Result]:
    """Predictions for series as those for their steps, in the order of the rows: each its own, or that of the series.

    Rows are read when all predictions are there, before which every column of the run was found.
    """
    assert rows.steps is not None
    found = list(said)
    for k, step in rows.steps():
        if rows.each:
            own = {name: value[step] for name, value in found[k].items()}
            yield {name: value[0] if len(value) == 1 else value for name, value in own.items()}
        else:
            yield found[k]


def _own_rows(found: Iterator[Result]) -> Iterator[list[Any]]:
    """Rows that have names for their cells, the names first."""
    for number, row in enumerate(found):
        if number == 0:
            yield list(row)
        yield [_cell(value) for value in row.values()]


def _rows(data: str, said: Iterator[Result], task: Task | None) -> Iterator[list[Any]]:
    """The rows of a table with the predictions in columns behind; the header, where it has one, first."""
    rows = None if data == "-" or task is None else task.rows_in(Path(data))
    if rows is None:
        raise UsageError(
            f"'{data}' is not a table, so its rows cannot be copied; write a .jsonl file, or give a .csv file"
        )
    if rows.steps is not None:
        said = _by_row(rows, said)
    names = rows.table.columns()
    added: list[str] = []
    cells = rows.table.rows(names)
    for number, line in enumerate(said, start=1):
        if not added:
            added = [name for name in line if name not in INPUTS]
            if taken := [name for name in added if name in names]:
                raise UsageError(
                    f"{data}: there is already a column '{taken[0]}', which is the name of the prediction; rename it"
                )
            if rows.named:
                yield [*names, *added]
        row = next(cells, None)
        if row is None:
            raise _unlike(data, number)
        yield [*(_cell(cell) for cell in row[1]), *(_cell(line[name]) for name in added)]
    if next(cells, None) is not None:
        raise _unlike(data, None)


def _unlike(data: str, number: int | None) -> DataError:
    where = "fewer examples than rows" if number is None else f"no row for example {number}"
    return DataError(f"{data}: found {where}, so predictions cannot be matched with rows; write a .jsonl file instead")


def _cell(value: Any) -> Any:
    """Lists, mappings and truth values as JSON, everything else as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | tuple | bool) else value
