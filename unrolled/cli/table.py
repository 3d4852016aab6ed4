"""Figures of a run as a table: the model beside its baselines."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table


def print_result(run: Any) -> None:
    """The last split of a run (test, or valid when there is no test) against the baselines."""
    split = "test" if "test" in run.result else "valid"
    rows = {name: figures[split] for name, figures in run.result.get("baselines", {}).items()}
    own = rows[run.config.model] = run.result[split]
    print_figures(f"{run.path}: {split} data, {own['tokens']:,} tokens", rows, run.task)
    say = Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=True).print
    beaten_by = [name for name, figures in rows.items() if figures[run.task.SCORE] < own[run.task.SCORE]]
    if beaten_by:
        say(f"{run.config.model} does not beat {' and '.join(beaten_by)} here.")
    if own.get("unknown_share"):
        say(f"{own['unknown_share']:.2%} of the tokens are <unknown>: they cost less than spelling them out.")
    steps = run.result.get("steps", 0)
    say(f"{run.result['parameters']:,} parameters, {steps:,} steps, {run.result['seconds']:.0f} s in all")
    if steps and run.result["horizon"] is not None and run.config.budget.steps is None:
        late = f" --horizon {run.result['horizon']}" if run.result["horizon"] != steps else ""
        say(f"The same weights again: --steps {steps}{late}")


def print_figures(title: str, rows: dict[str, dict[str, float]], task: Any) -> None:
    """One row per model, the best last."""
    table = Table(title=title, title_justify="left")
    table.add_column("model")
    shown = [name for name in task.FIGURES if any(name in figures for figures in rows.values())]
    for name in shown:
        table.add_column(name.replace("_", " "), justify="right")
    for label, figures in sorted(rows.items(), key=lambda row: -row[1][task.SCORE]):
        table.add_row(label, *(f"{figures[name]:.4f}" if name in figures else "" for name in shown))
    Console(file=sys.stdout).print(table)


def print_comparison(path: Any, found: dict[str, Any], to: Any) -> None:
    """The table of a comparison: best first, baselines marked, and what can be said for sure."""
    several = len(found["seeds"]) > 1
    console = Console(file=to, highlight=False)
    shown = [name for name in found["figures"] if name != found["score"]][: max(0, (console.width - 110) // 20)]
    table = Table(title=f"{path}: {found['task']} on {found['data']}, {found['split']} data", title_justify="left")
    table.add_column("")
    table.add_column("model")
    titles = [found["score"], "95 % interval", *(["± seeds"] if several else []), *shown, "parameters", "train s"]
    for title in [*titles, "tokens/s", "µs/tick", "MB", "sees", "depth"]:
        table.add_column(title.replace("_", " "), justify="right")
    for row in found["rows"]:
        mark = "★" if row["label"] == found["winner"] else "·" if row["kind"] == "baseline" else ""
        name = f"{row['label']} ↓" if row["beaten_by"] else row["label"]
        table.add_row(mark, name, *_cells(row, shown, several), style="dim" if row["kind"] == "baseline" else "")
    console.print(table)
    say = Console(file=to, highlight=False, markup=False, soft_wrap=True).print
    say(found["verdict"])
    beaten = [row for row in found["rows"] if row["beaten_by"]]
    if beaten:
        say("↓ does not reach a baseline: " + "; ".join(f"{r['label']} ({', '.join(r['beaten_by'])})" for r in beaten))
    for row in found["rows"]:
        if row["failed"]:
            say(f"{row['label']}: {row['failed']}")
    say(f"· baselines; sees: positions that reach an output; depth: steps of training that wait. {path}/report.html")


def _cells(row: dict[str, Any], shown: list[str], several: bool) -> list[str]:
    def number(value: Any, form: str = ",.0f") -> str:
        return "" if value is None else format(value, form)

    low, high = row["interval"] or (None, None)
    between = "" if low is None else f"{low:.3f}–{high:.3f}"
    seeds = [number(row["spread"], ".4f")] if several else []
    figures = [number(row["figures"].get(name), ".3f") for name in shown]
    sees = "all" if row["receptive_field"] is None and row["score"] is not None else number(row["receptive_field"])
    return [
        number(row["score"], ".4f"), between, *seeds, *figures, number(row["parameters"]),
        number(row["training_seconds"], ".1f"), number(row["tokens_per_second"]), number(row["tick_microseconds"]),
        number(row["memory_megabytes"]), sees, number(row["serial_depth"]),
    ]  # fmt: skip
