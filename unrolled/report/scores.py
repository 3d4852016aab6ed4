"""The score table: which columns there is something to say in, and each row in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from unrolled.core.errors import listed
from unrolled.pictures.kinds import Table
from unrolled.pictures.letters import plain_number, rounded_number, title_words
from unrolled.report.group import Group
from unrolled.report.read import number
from unrolled.report.words import score_words, time_words, units_words


@dataclass(frozen=True)
class Column:
    title: str
    hint: str
    words: Callable[[dict[str, Any]], str]


@dataclass(frozen=True)
class Line:
    """A row in words: `place` says what it is (winner, selected, loser, baseline, failed, unfinished or model)."""

    label: str
    place: str
    remark: str
    cells: list[str]


SAID = ("winner", "selected", "baseline")  # places that one word is enough for
NOT_YET = "not run yet"  # what a comparison under way says of those that wait
COSTS = [
    Column("parameters", "number of trained parameters", lambda row: plain_number(row.get("parameters"))),
    Column("given", "time budget of a run; in a race, those that are stopped have less",
           lambda row: time_words(row.get("seconds_given")) if row.get("rung") else ""),
    Column("training", "time spent in training steps", lambda row: time_words(row.get("training_seconds"))),
    Column("steps", "optimiser steps", lambda row: plain_number(row.get("steps"))),
    Column("positions/s", "training positions per second", lambda row: plain_number(row.get("tokens_per_second"))),
    Column("µs per tick", "time per position when streaming", lambda row: _rounded(row.get("tick_microseconds"))),
    Column("memory", "peak memory during training", lambda row: _megabytes(row.get("memory_megabytes"))),
    Column("receptive field", "how many inputs reach an output", lambda row: _field(row)),
    Column("serial depth", "sequential steps for one training sequence",
           lambda row: plain_number(row.get("serial_depth"))),
]  # fmt: skip


def _rounded(value: Any) -> str:
    return rounded_number(number(value), 3)


def _megabytes(value: Any) -> str:
    return "" if number(value) is None else f"{_rounded(value)} MB"


def _field(row: dict[str, Any]) -> str:
    """`all` where a measured model sees the whole past; nothing where nobody said."""
    if "receptive_field" not in row or row.get("failed"):
        return ""
    return "all" if row["receptive_field"] is None else plain_number(row["receptive_field"])


def columns_of(group: Group) -> list[Column]:
    """The score first, then how sure it is, the other metrics, and the costs; no column that would be empty."""
    unit, split = title_words(group.score), group.table.get("split") or "test"
    seeds = group.table.get("seeds") or []
    hint = f"score on {split} data; {group.metric.better}"
    found = [Column(unit, hint, lambda row: score_words(row.get("score")))]
    if group.is_comparison and split == "test":
        found.insert(0, _validation(group))
    found.append(
        Column("± seeds", f"standard deviation over {len(seeds)} seeds", lambda row: score_words(row.get("spread")))
    )
    found.append(Column("95 % interval", f"over {units_words(group.table) or 'the examples'}", _interval))
    others = [name for name in group.table.get("figures") or [] if name != group.score]
    figures = [Column(title_words(name), f"on {split} data", partial(_figure, name=name)) for name in others]
    return [column for column in found + figures + COSTS if any(column.words(row) for row in group.rows)]


def _validation(group: Group) -> Column:
    """What ranks the rows."""
    if folds := group.table.get("folds"):
        hint = f"mean score of {folds}-fold cross-validation on the training data, which ranks the rows"
        return Column(f"{folds} folds", hint, lambda row: score_words(row.get("valid")))
    return Column(
        "validation", "score on validation data, which ranks the rows", lambda row: score_words(row.get("valid"))
    )


def _interval(row: dict[str, Any]) -> str:
    ends = row.get("interval")
    return " to ".join(score_words(end) for end in ends) if isinstance(ends, list) else ""


def _figure(row: dict[str, Any], name: str) -> str:
    figures = row.get("figures")
    return score_words(figures.get(name)) if isinstance(figures, dict) else ""


def lines_of(group: Group, columns: list[Column]) -> list[Line]:
    """Rows in the order of the table: best first, failed last; then runs that have no row yet."""
    found = []
    for row in group.rows:
        place, remark = _place(group, row)
        found.append(Line(row["label"], place, remark, [column.words(row) for column in columns]))
    named = {name for row in group.rows for name in row.get("runs") or []}
    for name, run in group.runs.items():
        if name not in named and not run.is_finished:
            steps = max((int(number(line.get("step")) or 0) for line in run.metrics), default=0)
            found.append(Line(name, "unfinished", f"unfinished, {steps:,} steps so far", [""] * len(columns)))
    return found


def table_of(group: Group) -> Table:
    """The score table as a picture, for a notebook."""
    columns = columns_of(group)
    lines, titles = lines_of(group, columns), [column.title for column in columns]
    said = [line.place if line.place in SAID else line.remark for line in lines]
    names = [f"{line.label} ({word})" if word else line.label for line, word in zip(lines, said)]
    rows: list[list[Any]] = [[name, *line.cells] for name, line in zip(names, lines)]
    return Table(title="Scores", columns=["model", *titles], rows=rows)


def _winner(group: Group) -> dict[str, Any] | None:
    """The row that the comparison calls the winner; nobody else does."""
    name = group.table.get("winner")
    return (
        next((row for row in group.table["rows"] if name in (row["label"], row.get("model"))), None) if name else None
    )


def _place(group: Group, row: dict[str, Any]) -> tuple[str, str]:
    if row.get("not_trained") and number(row.get("score")) is None:
        return "failed", str(row["not_trained"])
    if row.get("failed") and row["failed"] != NOT_YET:
        return "failed", f"failed: {row['failed']}"
    if number(row.get("score")) is None:
        return "unfinished", "unfinished"
    if row.get("kind") == "baseline":
        return "baseline", "baseline"
    loses = f"does not beat {listed(row['beaten_by'])}" if row.get("beaten_by") else ""
    loses = "; ".join(filter(None, [loses, str(row.get("stopped") or "")]))
    if row is _winner(group):
        return "winner", "; ".join(filter(None, ["winner: significantly better than every other model", loses]))
    if row["label"] == group.table.get("selected"):
        return "selected", "; ".join(filter(None, ["selected", loses]))
    return ("loser", loses) if loses else ("model", "")
