"""Tables with a comma, or in .tsv files a tab, between cells; .data is how the UCI repository calls such files."""

from __future__ import annotations

from pathlib import Path

from unrolled.core.data_spec import ReaderSpec
from unrolled.data.files.csv_table import CsvTable
from unrolled.data.files.text_file import TextFile, unpacked


def open_csv(file: TextFile) -> CsvTable:
    is_tabbed = Path(unpacked(file.path.name.lower())).suffix == ".tsv"
    return CsvTable(file, "\t" if is_tabbed else ",")


READER = ReaderSpec(
    summary="a table: a header line, then one row per line",
    suffixes=(".csv", ".tsv", ".data"),
    gives="table",
    read=open_csv,
)
