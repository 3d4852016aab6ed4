"""Trials that only `make thorough` and `make faults` run, because `make test` has eight minutes."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def every(n: int, trials: Iterable[Any]) -> list[Any]:
    """The trials of a list; all but every n-th are long."""
    return [trial if i % n == 0 else long(trial) for i, trial in enumerate(trials)]


def only(kept: Container[Any], trials: Iterable[Any]) -> list[Any]:
    """The trials of a list; those that are not in `kept`, or whose first value is not, are long."""
    return [trial if _first(trial) in kept else long(trial) for trial in trials]


def long(trial: Any) -> Any:
    if isinstance(trial, type(pytest.param())):
        return pytest.param(*trial.values, id=trial.id, marks=[*trial.marks, pytest.mark.long])
    return pytest.param(*(trial if isinstance(trial, tuple) else (trial,)), marks=pytest.mark.long)


def _first(trial: Any) -> Any:
    values = trial.values if isinstance(trial, type(pytest.param())) else trial
    return values[0] if isinstance(values, tuple) else values
