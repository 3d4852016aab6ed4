"""What a comparison is asked to do: one schema for the command line, Python and `plan.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from unrolled.core.config import Record
from unrolled.runs.values import Seconds

AUTO: Literal["auto"] = "auto"
RACE: Literal["race"] = "race"
SIZES = {"small": 100_000, "medium": 400_000, "large": 1_600_000}  # parameters, all layers counted


class CompareConfig(Record):
    """Which models, how long, under what equal conditions."""

    models: str | None = None
    """Models to compare, separated by commas; overrides the preset."""
    preset: Literal["quick", "standard", "thorough"] = "quick"
    """Which models to compare: the best known, some more, or all that fit the task."""
    time: Seconds = Field(600.0, json_schema_extra={"flag": "--budget"})
    """Time for the whole comparison, such as 10m or 2h, shared among its runs."""
    steps: int | None = Field(None, ge=1)
    """Optimiser steps of each run, instead of a time budget; makes scores exactly reproducible."""
    match: Literal["race", "time", "params", "none"] = RACE
    """What is equal for all models. race: the training time up to each rung, where the worse half on validation data is
    stopped and the others get its time; time: the training time of each run, as always with folds, fractions or steps;
    params: also the number of parameters, within 5 %; none: only the longest time, and runs stop early when they no
    longer improve."""
    size: Literal["small", "medium", "large"] | None = None
    """Approximate number of parameters of each model: 0.1, 0.4 or 1.6 million. Without it, each model has its default
    size."""
    seeds: int = Field(1, ge=1, le=100)
    """Runs of each model, with seeds 0, 1, ...; the table shows their standard deviation."""
    folds: Annotated[int, Field(ge=2, le=100)] | Literal["auto"] | None = AUTO
    """Number of folds for cross-validation on all data outside the test split: each model is trained once per fold and
    ranked by its mean validation score, and the models of all folds predict test data as an ensemble (only for tasks
    with given targets). auto: 5 or 3 below 2,000 examples, as far as the time budget allows, with a larger test split;
    none: one validation split."""
    fractions: str = "1"
    """Shares of the training data to train on, such as 0.01,0.1,1, for a learning curve over data size."""
    from_run: str | None = Field(None, json_schema_extra={"flag": "--from"})
    """A saved run, whose model is compared four times: trained from scratch, with its input vectors alone, with all
    of its weights frozen but for the head, and fine-tuned from them."""
    plain: bool = False
    """Keep the defaults of settings that are not given, instead of choosing tokens, batch size, learning rate and so on
    from the data, the speed of this machine and the time budget."""
    ensemble: bool = True
    """Add a row that combines models and baselines, with weights fitted on validation data, where that is better there
    than each alone."""
    jobs: int | None = Field(None, ge=1)
    """Number of runs at the same time; they share the CPU threads evenly. [default: one per core, up to 4]"""

    @field_validator("fractions")
    @classmethod
    def _check_fractions(cls, text: str) -> str:
        fractions_of(text)
        return text

    @field_validator("folds", mode="before")
    @classmethod
    def _one_fold_is_none(cls, value: Any) -> Any:
        return None if str(value).strip() == "1" else value

    @model_validator(mode="after")
    def _check_folds(self) -> Self:
        if isinstance(self.folds, int) and (self.seeds > 1 or len(fractions_of(self.fractions)) > 1):
            raise ValueError("folds cannot be combined with seeds or fractions")
        return self

    @field_validator("models", mode="before")
    @classmethod
    def _join(cls, value: Any) -> Any:
        several = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
        return ",".join(value) if several else value


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
        raise ValueError(
            f"'{text}' is not a list of fractions: expected numbers above 0 and at most 1, such as 0.01,0.1,1"
        )
    return values
