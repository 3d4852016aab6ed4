"""Which columns of a table are series along time, and what is known beside them. Imports no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from unrolled.core.config import Config
from unrolled.data.reading import Name, Names, names_of

EPOCHS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}  # since 1970, of a second
FORMS = ("day-first", "month-first", *EPOCHS, "excel", "numbers")
CALENDAR = ("minute", "hour", "weekday", "day", "week", "month")


def _known(value: object) -> object:
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    for name in names if isinstance(names, list | tuple) else ():
        if name not in CALENDAR:
            raise ValueError(f"invalid value '{name}': expected some of {', '.join(CALENDAR)}")
    return names


def _form(value: object) -> object:
    if isinstance(value, str) and value not in FORMS and "%" not in value:
        raise ValueError(f"invalid value '{value}': expected a format such as %d/%m/%Y, or one of {', '.join(FORMS)}")
    return value


class SeriesReading(Config):
    """Where the values, the times and the covariates of series are."""

    target: Names | None = None
    """The columns to forecast, separated by commas; none: all columns of numbers that have no other use."""

    time: Name | None = None
    """The column of time stamps; none: the one with a usual name (date, time, month, ...), or the order of the rows."""

    time_format: Annotated[str, BeforeValidator(_form)] | None = None
    """Format of the time stamps: as in strptime, such as %d/%m/%Y; day-first or month-first; of numbers seconds,
    milliseconds, microseconds or nanoseconds since 1970, excel (days since 1900) or numbers (as they are); none:
    inferred and reported."""

    id: Name | None = None
    """The column that identifies the series of a long table."""

    past: Names | None = None
    """Columns that are known only up to the present (past covariates)."""

    future: Names | None = None
    """Columns that are also known for the future (known-future covariates); rows without a target may follow the
    data."""

    static: Names | None = None
    """Columns with one value per series (static covariates): numbers or classes."""

    calendar: Annotated[tuple[str, ...], BeforeValidator(_known)] = ()
    """Calendar features as inputs: minute, hour, weekday, day, week, month."""

    spacing: Literal["regular", "irregular"] = "regular"
    """Regular steps, where steps that are left out are missing values; or irregular ones, with the gaps as an input."""

    channels: Literal["separate", "joint"] = "separate"
    """Whether several target columns are separate series, or one series of vectors."""

    def uses(self) -> dict[str, str]:
        """What the columns that are named are used for."""
        named = {"target": self.target, "time": self.time, "series": self.id, "past covariate": self.past,
                 "known-future covariate": self.future, "static covariate": self.static}  # fmt: skip
        return {name: use for use, wanted in named.items() for name in names_of(wanted)}
