"""What a comparison is asked to do: one schema for the command line, Python and `plan.json`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from unrolled.core.config import Record
from unrolled.runs.config import Seconds

SIZES = {"small": 100_000, "medium": 400_000, "large": 1_600_000}  # parameters, all layers counted


class CompareConfig(Record):
    """Which models, how long, under what equal conditions."""

    models: str | None = None
    """models by name, with commas between them; instead of a preset"""
    preset: Literal["quick", "standard", "thorough"] = "quick"
    """how many models: the six best known, some more, or all that fit the task"""
    time: Seconds = Field(600.0, json_schema_extra={"flag": "--budget"})
    """time for the whole comparison, such as 10m or 2h, shared equally among its runs"""
    steps: int | None = Field(None, ge=1)
    """optimiser steps for each run instead of a time, so that scores can be repeated exactly"""
    match: Literal["time", "params", "none"] = "time"
    """what is made equal: the time of each run; also the number of parameters, within 5 %; or nothing but the longest
    time, and runs end when they stop getting better"""
    size: Literal["small", "medium", "large"] | None = None
    """about how many parameters each model gets (0.1, 0.4 or 1.6 million); without it each has its default size"""
    seeds: int = Field(1, ge=1, le=100)
    """runs of each model, with seeds 0, 1, ..; the spread between them is told"""
    folds: int | None = Field(None, ge=2, le=100)
    """cut all that is not for test into so many parts, train each model once without each of them, and rank by the mean
    score on these; the models of all folds then answer test data together (tasks with given answers only)"""
    fractions: str = "1"
    """shares of the training data to train on, such as 0.01,0.1,1: a learning curve over data size"""
    jobs: int | None = Field(None, ge=1)
    """runs at the same time; the processor threads are shared out evenly among them [default: one per core, up to 4]"""

    @field_validator("fractions")
    @classmethod
    def _check_fractions(cls, text: str) -> str:
        fractions_of(text)
        return text

    @model_validator(mode="after")
    def _check_folds(self) -> Self:
        if self.folds is not None and (self.seeds > 1 or len(fractions_of(self.fractions)) > 1):
            raise ValueError(
                "folds cannot be asked for together with seeds or fractions: each fold is a run of its own"
            )
        return self

    @field_validator("models", mode="before")
    @classmethod
    def _join(cls, value: Any) -> Any:
        return ",".join(value) if isinstance(value, list | tuple) else value


def fractions_of(text: str) -> list[float]:
    """
    >>> fractions_of("0.1,1")
    [0.1, 1.0]
    """
    try:
        values = sorted({float(word) for word in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(0 < value <= 1 for value in values):
        raise ValueError(f"'{text}' is not a list of fractions: write numbers above 0 up to 1, such as 0.01,0.1,1")
    return values
