"""The trials of a search as lines: the best of them, which settings mattered, and what to do with the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.table import Table

from unrolled.pictures.letters import title_words
from unrolled.pictures.screen import Screen
from unrolled.report.words import score_words, setting_words, short_names
from unrolled.runs.selection import select

SHOWN = 10  # trials


def print_search(path: Path, found: dict[str, Any], to: TextIO) -> None:
    """The best trials of a search and what is known of its settings."""
    console, say = Screen(file=to, highlight=False), Screen(file=to, highlight=False, soft_wrap=True).print
    tuning, selected = found["tuning"], select(found)
    by_run = {trial["run"]: trial for trial in tuning["trials"]}
    names = short_names(each["key"] for each in tuning["space"])
    title = f"{path}: {tuning['model']} on {found['data']}, {title_words(found['score'])}; the best trials"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0))
    for heading in ("trial", "valid", found["split"], *names.values()):
        is_trial = heading == "trial"
        table.add_column(heading.replace("_", " "), justify="left" if is_trial else "right", no_wrap=is_trial)
    for row in found["rows"][:SHOWN]:
        settings = by_run[row["runs"][0]]["settings"] if row["runs"] else {}
        mark = "▸ " if selected is not None and row is selected.row else "  "
        cells = [setting_words(settings.get(name)) for name in names]
        table.add_row(mark + row["label"], score_words(row["valid"]), score_words(row["score"]), *cells)
    console.print(table)
    say(found["notes"][0])
    if tuning["importance"]:
        shares = [f"{names.get(name, name)} {share:.0%}" for name, share in tuning["importance"].items()]
        say(f"What mattered: {', '.join(shares)} ({tuning['importance_by']})")
    if selected is not None:
        say(f"Selected on validation data: {selected.run}; the directory opens as this run")
    say(f"Report: {path}/report.html")
