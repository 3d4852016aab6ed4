"""`tune.json`: what was decided before the first trial of a search. Its runs and table are those of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from unrolled.core.config import Record
from unrolled.core.errors import DataError
from unrolled.runs.storage import atomic, formats
from unrolled.runs.trust import is_path, saved
from unrolled.tuning.config import MOST, MOST_TRIALS, Range, TuneConfig

FILE = "tune.json"


class Search(Record):
    """A search."""

    asked: TuneConfig
    model: str
    space: list[Range] = Field(min_length=1, max_length=MOST)
    first: dict[str, Any]
    """What is drawn first: the defaults."""
    at_once: int = Field(ge=1, le=MOST_TRIALS)
    """Trials that are proposed together."""
    trials: int = Field(ge=1, le=MOST_TRIALS)
    steps: int | None = Field(None, ge=1)
    """Steps of a trial that is not stopped early; None: `seconds`."""
    seconds: float | None = Field(None, gt=0)
    used: float = Field(0.0, ge=0)
    """Seconds of the time budget that are used."""

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("a trial has a number of steps or of seconds")
        return self


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
