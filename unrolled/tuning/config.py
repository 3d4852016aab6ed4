"""What a search for settings is asked to do: one schema for the command line, Python and `tune.json`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from unrolled.core.config import Record
from unrolled.runs.values import Seconds

TRIALS = 24  # that a time budget is divided among
MOST, MOST_TRIALS = 64, 10_000  # settings and trials of a search
POWERS = 32  # of two, at most, by which a default is multiplied
STEPS = 1000  # of a trial, where only their number is given


class TuneConfig(Record):
    """How long to search, and for what."""

    time: Seconds | None = Field(None, json_schema_extra={"flag": "--budget"})
    """Time for the whole search, such as 30m or 2h. [default: 30m, unless --trials or --steps is given]"""
    trials: int | None = Field(None, ge=1, le=MOST_TRIALS)
    """Number of trials; without a time budget each has --steps, and the search is exactly reproducible."""
    steps: int | None = Field(None, ge=1)
    """Optimiser steps of a trial that is not stopped early, without a time budget. [default: 1000]"""
    search: str | None = None
    """Settings to search, such as lr,d_state or lr=0.0001..0.1,reset=after|before. [default: learning rate, weight
    decay, batch size, dropout and the sizes of the model, as far as they are not given]"""
    seed: int = Field(0, ge=0, lt=2**31)
    """Random seed of the search and of every trial."""
    jobs: int | None = Field(None, ge=1)
    """Number of trials at the same time; they are proposed together. [default: one per core, up to 4]"""

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if self.time is not None and self.steps is not None:
            raise ValueError("give a time budget or the steps of a trial, not both")
        return self

    @property
    def settled(self) -> dict[str, Any]:
        """The measures with what is meant where they are not given."""
        if self.time is None and self.trials is None and self.steps is None:
            return {"time": 1800.0, "trials": TRIALS, "steps": None}
        steps = None if self.time is not None else self.steps or STEPS
        return {"time": self.time, "trials": self.trials or TRIALS, "steps": steps}


class Range(Record):
    """The values that a setting may have in a search."""

    key: str
    """Its name with its group, such as optimiser.lr or model.d_state."""
    kind: Literal["number", "integer", "power", "choice"]
    """A power of two is what the default is multiplied with."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    unit: int = 1
    """The default that a power of two multiplies."""
    values: list[str | bool | int | float] = []

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.kind == "choice" and not self.values:
            raise ValueError(f"there is no value of {self.key} to choose")
        if self.low > self.high or (self.log and self.low <= 0):
            raise ValueError(f"the range of {self.key} is empty")
        if self.kind == "power" and max(-self.low, self.high) > POWERS:
            raise ValueError(f"the range of {self.key} is too wide")
        return self

    @property
    def name(self) -> str:
        """Its own word."""
        return self.key.split(".")[-1]

    def value(self, drawn: Any) -> Any:
        """What the setting is where this was drawn."""
        if self.kind == "power":
            return round(self.unit * 2.0**drawn)
        return drawn
