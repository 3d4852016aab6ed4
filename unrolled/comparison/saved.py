"""A finished comparison: its table, and its runs as they were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from unrolled.core.errors import UnrolledError
from unrolled.pictures.letters import title_words
from unrolled.pictures.notebook import fragment
from unrolled.report.group import groups_of
from unrolled.report.plots import pictures_of
from unrolled.report.read import read_comparison
from unrolled.report.scores import table_of
from unrolled.report.words import score_words
from unrolled.results import Row, Table
from unrolled.runs.run import Run, load, own_file_for
from unrolled.runs.selection import read_table
from unrolled.runs.summary import source_words

MOST_PLOTS = 2  # that a notebook shows; the report has all


class Comparison:
    """A finished comparison: its table, and its runs as they were saved."""

    def __init__(self, path: str | Path, own_file: str | Path | None = None, trained_on: Any = None) -> None:
        self.path, self.own_file, self.trained_on = Path(path), own_file, trained_on
        self.table = cast(Table, read_table(self.path))

    @property
    def rows(self) -> list[Row]:
        """The rows of the table, in the order of their scores on validation data."""
        return list(self.table["rows"])

    @property
    def best(self) -> Run:
        """The model with the best score on validation data, opened."""
        return load(self.path, own_file=self.own_file, trained_on=self.trained_on)

    def run(self, folder: str) -> Run:
        path = self.path / folder
        return load(path, own_file=own_file_for(path, self.own_file), trained_on=self.trained_on)

    def __repr__(self) -> str:
        scores = ", ".join(f"{row['label']} {score_words(row.get('score')) or 'none'}" for row in self.rows)
        metric = f"{self.table.get('split', 'test')} {title_words(self.table['score'])}"
        return "\n  ".join([*self._lines(), f"{metric}: {scores}"])

    def _repr_html_(self) -> str | None:
        """Its table and the plots of quality against cost; None, and `repr` is shown, where the directory is gone."""
        try:
            (group,) = groups_of([read_comparison(self.path)])
        except UnrolledError:
            return None
        return fragment([*self._lines(), *group.notes], [table_of(group), *pictures_of(group)[:MOST_PLOTS]])

    def _lines(self) -> list[str]:
        """What it is, and what may be said of it."""
        first = f"Comparison {self.path}: task {self.table['task']} on {source_words(self.table['data'])}"
        return [first, self.table.get("verdict", "")]
