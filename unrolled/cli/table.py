"""Figures of a run as a table: the model beside its baselines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unrolled.core.errors import listed
from unrolled.report.words import title_words
from unrolled.runs.card import not_beaten
from unrolled.training.progress import short_number

WIDE = 1000  # columns: more than any table needs
ROOM = 90  # columns from which a comparison shows all that it has


def print_result(run: Any) -> None:
    """The last split of a run (test, or valid when there is no test) against the baselines."""
    split = "test" if "test" in run.result else "valid"
    rows = {name: figures[split] for name, figures in run.result.get("baselines", {}).items()}
    own = rows[run.config.model] = run.result[split]
    print_figures(f"{run.path}: {split} data, {own['tokens']:,} {run.task.UNIT}", rows, run.task)
    say = Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=True).print
    beaten_by = not_beaten(run.result, split)
    if beaten_by:
        say(f"{run.config.model} does not beat {listed(beaten_by)} here.")
    if own.get("unknown_share"):
        say(f"{own['unknown_share']:.2%} of the tokens are <unknown>: they cost less than spelling them out.")
    steps = run.result.get("steps", 0)
    trained = run.result.get("trained_parameters")
    some = "" if trained is None else f" ({trained:,} of them trained)"
    say(f"{run.result['parameters']:,} parameters{some}, {steps:,} steps, {run.result['seconds']:.0f} s in all")
    if steps and run.result["horizon"] is not None and run.config.budget.steps is None:
        late = f" --horizon {run.result['horizon']}" if run.result["horizon"] != steps else ""
        say(f"The same weights again: --steps {steps}{late}")


def print_figures(title: str, rows: dict[str, dict[str, float]], task: Any) -> None:
    """One row per model, the best last; one column per model where so many figures would not fit."""
    shown = [name for name in task.FIGURES if any(name in figures for figures in rows.values())]
    ranked = sorted(rows.items(), key=lambda row: -row[1][task.SCORE])
    cells = [[f"{figures[name]:.4f}" if name in figures else "" for name in shown] for _, figures in ranked]
    headings, models = [title_words(name) for name in shown], [label for label, _ in ranked]
    console = Console(file=sys.stdout)
    table = _grid(title, "model", headings, models, cells)
    if console.measure(table, options=console.options.update(width=WIDE)).maximum > console.width:
        table = _grid(title, "figure", models, headings, [list(column) for column in zip(*cells, strict=True)])
    console.print(table)
    for name, how in task.how_measured().items():
        Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=True).print(f"{name}: {how}")


def _grid(title: str, corner: str, columns: list[str], names: list[str], cells: list[list[str]]) -> Table:
    """A name and numbers in each row."""
    table = Table(title=title, title_justify="left")
    table.add_column(corner, no_wrap=corner == "model")
    for heading in columns:
        table.add_column(heading, justify="right")
    for name, row in zip(names, cells, strict=True):
        table.add_row(name, *row)
    return table


def print_comparison(path: Any, found: dict[str, Any], to: Any) -> None:
    """The table of a comparison: best first, baselines marked, and what can be said for sure."""
    console = Console(file=to, highlight=False)
    columns = _columns(found, console.width)
    title = f"{path}: {found['task']} on {found['data']}, {found['split']} data"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0))
    table.add_column("model", no_wrap=True)
    for heading in columns:
        words = heading if console.width >= ROOM else "\n".join(heading.rsplit(" ", 1))
        table.add_column(words, justify="right", no_wrap=True)
    for row in found["rows"]:
        mark = "★ " if row["label"] == found["winner"] else "· " if row["kind"] == "baseline" else "  "
        name = mark + row["label"] + (" ↓" if row["beaten_by"] else "")
        cells = [cell(row) for cell in columns.values()]
        table.add_row(name, *cells, style="dim" if row["kind"] == "baseline" else "")
    console.print(table)
    say = Console(file=to, highlight=False, markup=False, soft_wrap=True).print
    say(found["verdict"])
    beaten = [row for row in found["rows"] if row["beaten_by"]]
    if beaten:
        say("↓ does not beat a baseline: " + "; ".join(f"{r['label']} ({', '.join(r['beaten_by'])})" for r in beaten))
    for row in found["rows"]:
        if row["failed"]:
            say(f"{row['label']}: {row['failed']}")
    depth = "; depth: steps of training that wait for one another" if "depth" in columns else ""
    say(f"· a baseline; sees: how many positions reach an output{depth}")
    say(f"The page to look at: {path}/report.html")


Cell = Callable[[dict[str, Any]], str]


def _columns(found: dict[str, Any], width: int) -> dict[str, Cell]:
    """What is shown of a row, by heading; a narrow terminal gets less of it."""

    def number(key: str, form: str = ",.0f") -> Cell:
        return lambda row: "" if row[key] is None else format(row[key], form)

    def figure(key: str) -> Cell:
        return lambda row: format(row["figures"][key], ".3f") if key in row["figures"] else ""

    columns: dict[str, Cell] = {title_words(found["score"]): number("score", ".4f"), "95 % interval": _interval}
    if found.get("folds"):
        columns = {f"{found['folds']} folds": number("valid", ".4f"), **columns}
    if len(found["seeds"]) > 1:
        columns["± seeds"] = number("spread", ".4f")
    if width >= 120:
        others = [name for name in found["figures"] if name != found["score"]][:2]
        columns |= {title_words(name): figure(name) for name in others}
    columns |= {"weights": _weights, "train s": number("training_seconds", ".1f")}
    if width >= ROOM:
        columns["tokens/s"] = number("tokens_per_second")
    columns["µs/tick"] = number("tick_microseconds")
    if width >= ROOM:
        columns["MB"] = number("memory_megabytes")
    columns["sees"] = _sees
    return columns | {"depth": number("serial_depth")} if width >= ROOM else columns


def _weights(row: dict[str, Any]) -> str:
    return "" if row["parameters"] is None else short_number(row["parameters"]).replace(" ", "")


def _interval(row: dict[str, Any]) -> str:
    return "" if row["interval"] is None else "–".join(f"{edge:.3f}" for edge in row["interval"])


def _sees(row: dict[str, Any]) -> str:
    return "" if row["score"] is None else "all" if row["receptive_field"] is None else f"{row['receptive_field']:,}"
