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
