"""Which columns of a table are series along time, and what is known beside them. Imports no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from unrolled.core.config import Config
from unrolled.data.reading import Name, Names, names_of

CALENDAR = ("minute", "hour", "weekday", "day", "week", "month")


def _known(value: object) -> object:
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    for name in names if isinstance(names, list | tuple) else ():
        if name not in CALENDAR:
            raise ValueError(f"invalid value '{name}': expected some of {', '.join(CALENDAR)}")
    return names


class SeriesReading(Config):
    """Where the values, the times and the covariates of series are."""

    target: Names | None = None
    """the columns to forecast, with commas between them; none: all columns of numbers that nothing else uses"""

    time: Name | None = None
    """the column of time stamps; none: the one with a usual name (date, time, month, ...), or the rows as they are"""

    time_format: str | None = Field(None, min_length=2)
    """how time stamps are written, in the signs of strptime such as %d/%m/%Y; none: told by the stamps"""

    id: Name | None = None
    """the column that tells the series of a long table apart"""

    past: Names | None = None
    """columns that are known up to the present only (past covariates)"""

    future: Names | None = None
    """columns that are known for the future too (known-future covariates); rows without a target may follow the data"""

    static: Names | None = None
    """columns with one value for each series (static covariates): numbers, or classes"""

    calendar: Annotated[tuple[str, ...], BeforeValidator(_known)] = ()
    """parts of the calendar as inputs: minute, hour, weekday, day, week, month"""

    spacing: Literal["regular", "irregular"] = "regular"
    """steps of one length, where steps that are left out are missing values; or any, with the gaps as an input"""

    channels: Literal["separate", "joint"] = "separate"
    """several columns to forecast as series of their own, or as one series of vectors"""

    def uses(self) -> dict[str, str]:
        """What the columns that are named are used for."""
        named = {"target": self.target, "time": self.time, "series": self.id, "past covariate": self.past,
                 "known-future covariate": self.future, "static covariate": self.static}  # fmt: skip
        return {name: use for use, wanted in named.items() for name in names_of(wanted)}
