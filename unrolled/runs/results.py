"""result.json and baselines.json as they are read from a directory that may be damaged or hostile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from unrolled.core.config import Record
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import saved

RESULT, BASELINES = "result.json", "baselines.json"
Figures = dict[str, float | None]
MOST = 10**18  # of what is counted


class _Metric(Record):
    name: str
    larger: bool
    formula: str


class _Use(Record):
    what: str
    verb: str
    words: list[str]


class Result(Record):
    """What of a result is computed with or printed in a fixed form; it holds more."""

    parameters: int | None = Field(None, ge=0, le=MOST)
    steps: int = Field(0, ge=0, le=MOST)
    horizon: int | None = Field(None, ge=0, le=MOST)
    trained_parameters: int | None = Field(None, ge=0, le=MOST)
    seconds: float = Field(0.0, ge=0, le=MOST)
    closing_seconds: float = Field(0.0, ge=0, le=MOST)
    training_seconds: float = Field(0.0, ge=0, le=MOST)
    tokens_per_second: float | None = Field(None, ge=0, le=MOST)
    valid: Figures | None = None
    test: Figures | None = None
    baselines: dict[str, dict[str, Figures]] = {}
    metrics: list[_Metric] = []
    uses: list[_Use] = []
    notes: list[str] = []


def read_result(directory: RunDirectory) -> dict[str, Any]:
    """The figures measured at the end of training."""
    value = directory.read_json(RESULT)
    with saved(directory.path / RESULT):
        Result.among(value)
    return dict(value)


def beside_baselines(model: str, result: Mapping[str, Any]) -> tuple[str, dict[str, dict[str, float]]]:
    """The split that scores are of (test, or valid where there is no test), and there the figures of the baselines and
    of the model, which is the last."""
    split = "test" if "test" in result else "valid"
    rows = {name: splits[split] for name, splits in result.get("baselines", {}).items() if split in splits}
    return split, rows | {model: result[split]}


def read_baselines(directory: RunDirectory) -> dict[str, Any]:
    """The figures of the baselines, {label: {split: figures}}."""
    value = directory.read_json(BASELINES)
    with saved(directory.path / BASELINES):
        Result.among({"baselines": value})
    return dict(value)
