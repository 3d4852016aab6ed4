"""Tables whose rows hold examples, as what predictions are written beside."""

from __future__ import annotations

from pathlib import Path

from unrolled.core.task import Rows
from unrolled.data.bags import bags_are_cells
from unrolled.data.files.csv_table import Headerless
from unrolled.data.files.tables import Table
from unrolled.data.reading import Reading
from unrolled.data.sources.labelled_table import table_in
from unrolled.data.sources.long_table import steps_of


def rows_of(table: Table | None) -> Rows | None:
    """A table whose rows are examples; None: there is none."""
    return None if table is None else Rows(table, named=not isinstance(table, Headerless))


def rows_in(path: Path) -> Rows | None:
    return rows_of(table_in(path))


def labelled_rows(path: Path, reading: Reading, each: bool) -> Rows | None:
    """The same of examples with targets: a series of a long table stands in several rows, where `each` step is
    predicted for or the whole; so do the instances of a bag."""
    found = rows_in(path)
    if found is not None and reading.bag is not None and not bags_are_cells(found.table, reading):
        bags = reading.updated({"id": reading.bag, "time": None})
        return found._replace(steps=lambda: steps_of(found.table, bags)[1])
    if found is None or reading.layout != "long":
        return found
    return found._replace(steps=lambda: steps_of(found.table, reading)[1], each=each)
