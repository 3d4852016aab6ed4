"""`tune.json`: what was decided before the first trial of a search. Its runs and table are those of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unrolled.core.config import Record
from unrolled.core.errors import DataError
from unrolled.runs.storage import atomic, formats
from unrolled.runs.trust import is_path, saved
from unrolled.tuning.config import Range, TuneConfig

FILE = "tune.json"


class Search(Record):
    """A search."""

    asked: TuneConfig
    model: str
    space: list[Range]
    first: dict[str, Any]
    """What is drawn first: the defaults."""
    at_once: int
    """Trials that are proposed together."""
    trials: int
    steps: int | None = None
    """Steps of a trial that is not stopped early; None: `seconds`."""
    seconds: float | None = None
    used: float = 0.0
    """Seconds of the time budget that are used."""


def write_search(folder: Path, search: Search) -> None:
    body = formats.numbered(search.model_dump(mode="json"))
    atomic.write_text(folder / FILE, formats.json_text(formats.with_check(body), str(folder / FILE)))


def read_search(folder: Path) -> Search:
    """What was decided; it may come from anybody."""
    if not (folder / FILE).exists():
        raise DataError(f"{folder} is not a search for settings: it has no {FILE}")
    values = formats.read_checked(folder / FILE, within=folder)
    with saved(folder / FILE):
        search = Search.parse(values)
    if any(is_path(each.key) for each in search.space):
        raise DataError(f"{folder / FILE}: searches for a path; nothing is opened because a file names it")
    return search
