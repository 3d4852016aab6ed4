"""Figures of a run as a table: the model beside its baselines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from unrolled.core.errors import listed
from unrolled.core.metric import metrics_in
from unrolled.pictures.letters import title_words
from unrolled.pictures.screen import Screen
from unrolled.report.ranking import disagreements
from unrolled.report.words import units_words
from unrolled.runs.card import not_beaten
from unrolled.runs.results import beside_baselines
from unrolled.training.progress import short_number

WIDE = 1000  # columns: more than any table needs
ROOM = 90  # columns from which a comparison shows all that it has


def print_result(run: Any) -> None:
    """The last split of a run (test, or valid when there is no test) against the baselines."""
    split, rows = beside_baselines(run.config.model, run.result)
    own = rows[run.config.model]
    print_figures(f"{run.path}: {split} data, {own['tokens']:,} {run.task.UNIT}", rows, run.task)
    say = Screen(file=sys.stdout, highlight=False, soft_wrap=True).print
    beaten_by = not_beaten(run.result, split)
    if beaten_by:
        say(f"{run.config.model} does not beat {listed(beaten_by)} here.")
    for sentence in disagreements(rows, run.task.metrics()):
        say(sentence)
    if own.get("unknown_share"):
        share = f"{own['unknown_share']:.2%}"
        say(f"{share} of the tokens are <unknown>, which are easier to predict than what they replace.")
    steps = run.result.get("steps", 0)
    trained = run.result.get("trained_parameters")
    some = "" if trained is None else f" ({trained:,} of them trained)"
    say(f"{run.result['parameters']:,} parameters{some}, {steps:,} steps, {run.result['seconds']:.0f} s in all")
    if steps and run.result["horizon"] is not None and run.config.budget.steps is None:
        late = f" --schedule-steps {run.result['horizon']}" if run.result["horizon"] != steps else ""
        again = f"--recipe {run.path}/recipe.toml" if run.result.get("recipe") else f"--steps {steps}{late}"
        say(f"Reproduce this run with: {again}")


def print_figures(title: str, rows: dict[str, dict[str, float]], task: Any) -> None:
    """One row per model, the best last; one column per model where so many figures would not fit."""
    metric = task.ranks_by
    names = [metric.name, *(name for name in task.FIGURES if name != metric.name)]
    shown = [name for name in names if any(name in figures for figures in rows.values())]
    ranked = sorted(rows.items(), key=lambda row: metric.loss(row[1][metric.name]), reverse=True)
    cells = [[f"{figures[name]:.4f}" if name in figures else "" for name in shown] for _, figures in ranked]
    headings, models = [title_words(name) for name in shown], [label for label, _ in ranked]
    console = Screen(file=sys.stdout)
    table = _grid(title, "model", headings, models, cells)
    if console.measure(table, options=console.options.update(width=WIDE)).maximum > console.width:
        table = _grid(title, "metric", models, headings, [list(column) for column in zip(*cells, strict=True)])
    console.print(table)
    for name, how in task.how_measured().items():
        Screen(file=sys.stdout, highlight=False, soft_wrap=True).print(f"{name}: {how}")


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
    """The table of a comparison, ranked on validation data, and what may be said of it."""
    console = Screen(file=to, highlight=False)
    columns = _columns(found)
    shown = _that_fit(path, found, columns, console)
    console.print(_comparison_grid(path, found, shown, console.width))
    say = Screen(file=to, highlight=False, soft_wrap=True).print
    say(found["verdict"])
    beaten = [row for row in found["rows"] if row["beaten_by"]]
    if beaten:
        say("↓ does not beat a baseline: " + "; ".join(f"{r['label']} ({', '.join(r['beaten_by'])})" for r in beaten))
    for row in found["rows"]:
        for what in (row.get("not_trained"), row["failed"], row.get("stopped")):
            if what:
                say(f"{row['label']}: {what}")
                break
    ended = ENDED if any(row.get("stopped") for row in found["rows"]) else ""
    say(f"{LEGEND}{ended}{DEPTH if 'depth' in shown else ''}")
    if left_out := [name for name in columns if name not in shown]:
        say(f"Columns left out for lack of width: {', '.join(left_out)}; see the report, or use a wider terminal.")
    say(f"Report: {path}/report.html")


Cell = Callable[[dict[str, Any]], str]
LEGEND = (
    "▸ selected on validation data (★ and significantly better than every other row); · baseline; "
    "field: receptive field, how many positions reach an output"
)
ENDED = "; × stopped early in the race, with less training time than the others"
DEPTH = "; depth: serial depth, the steps that must run one after another on a training sequence"
LEAST = ("depth", "MB", "positions/s", "steps", "µs/tick", "field", "train s", "params")  # left out first, in turn


def _comparison_grid(path: Any, found: dict[str, Any], columns: dict[str, Cell], width: int) -> Table:
    split = "test" if found["split"] == "test" else "validation"
    about = ", ".join(filter(None, [f"{split} data", units_words(found)]))
    table = Table(
        title=f"{path}: {found['task']} on {found['data']}; {about}", title_justify="left", box=SIMPLE_HEAD,
        padding=(0, 0),
    )  # fmt: skip
    table.add_column("model", no_wrap=True)
    for heading in columns:
        words = heading if width >= ROOM else "\n".join(heading.rsplit(" ", 1))
        table.add_column(words, justify="right", no_wrap=True)
    for row in found["rows"]:
        cells = [cell(row) for cell in columns.values()]
        name = (
            _mark(row, found) + row["label"] + (" ↓" if row["beaten_by"] else "") + (" ×" if row.get("stopped") else "")
        )
        table.add_row(name, *cells, style="dim" if row["kind"] == "baseline" else "")
    return table


def _mark(row: dict[str, Any], found: dict[str, Any]) -> str:
    if row["label"] == found["winner"]:
        return "★ "
    return "▸ " if row["label"] == found.get("selected") else "· " if row["kind"] == "baseline" else "  "


def _that_fit(path: Any, found: dict[str, Any], columns: dict[str, Cell], console: Screen) -> dict[str, Cell]:
    """The columns that the terminal has room for: metrics that rank nothing go first, then costs, never the score."""
    ranking = [metric.name for metric in metrics_in(found, found["score"])]
    others = [title_words(name) for name in found["figures"] if name not in ranking]
    beside = [title_words(name) for name in ranking[1:]]
    shown = dict(columns)
    for name in [*reversed(others), *LEAST, *reversed(beside)]:
        grid = _comparison_grid(path, found, shown, console.width)
        grid.title = None
        if console.measure(grid, options=console.options.update(width=WIDE)).maximum <= console.width:
            break
        shown.pop(name, None)
    return shown


def _columns(found: dict[str, Any]) -> dict[str, Cell]:
    """All that there is to show of a row, by heading."""

    def number(key: str, form: str = ",.0f") -> Cell:
        return lambda row: "" if row[key] is None else format(row[key], form)

    def figure(key: str) -> Cell:
        return lambda row: format(row["figures"][key], ".3f") if key in row["figures"] else ""

    score = title_words(found["score"])
    columns: dict[str, Cell] = {score: number("score", ".4f"), "95 % interval": _interval}
    if found["split"] == "test":
        before = f"{found['folds']} folds" if found.get("folds") else "valid"
        columns = {before: number("valid", ".4f"), f"test {score}": number("score", ".4f"), "95 % interval": _interval}
    if len(found["seeds"]) > 1:
        columns["± seeds"] = number("spread", ".4f")
    others = [name for name in found["figures"] if name != found["score"]]
    columns |= {title_words(name): figure(name) for name in others if any(name in r["figures"] for r in found["rows"])}
    return columns | {
        "params": _parameters, "train s": number("training_seconds", ".1f"), "steps": _steps,
        "positions/s": number("tokens_per_second"), "µs/tick": number("tick_microseconds"),
        "MB": number("memory_megabytes"), "field": _field, "depth": number("serial_depth"),
    }  # fmt: skip


def _steps(row: dict[str, Any]) -> str:
    """Nothing where a model is fitted in closed form."""
    return f"{row['steps']:,}" if row.get("steps") else ""


def _parameters(row: dict[str, Any]) -> str:
    return "" if row["parameters"] is None else short_number(row["parameters"]).replace(" ", "")


def _interval(row: dict[str, Any]) -> str:
    return "" if row["interval"] is None else "–".join(f"{edge:.3f}" for edge in row["interval"])


def _field(row: dict[str, Any]) -> str:
    return "" if row["score"] is None else "all" if row["receptive_field"] is None else f"{row['receptive_field']:,}"
