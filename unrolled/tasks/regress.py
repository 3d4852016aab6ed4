"""Regress: predict one number or several for a sequence.

    C = 1/N sum_{n,k} l(y_{n,k} - t_{n,k})        l(e) = e^2 (l2), |e| (l1), or Huber's (1964)

Training sees each number brought to mean 0 and standard deviation 1; every figure is in the units of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET
from unrolled.data.codecs.labels import NumberScaler
from unrolled.data.examples import Examples
from unrolled.data.reading import names_of
from unrolled.emissions.point import Distance, Point
from unrolled.objectives import numbers
from unrolled.pictures import predictions
from unrolled.tasks import _labelled
from unrolled.tasks._labelled_config import Readout, WholeConfig

ALIASES = ("regression",)


class Config(WholeConfig):
    readout: Readout = "last"
    """How the outputs at all positions are reduced to one vector: the last one, first and last, their mean or maximum,
    or a mean weighted by attention or by a learned query."""
    loss: Distance = "l2"
    """Training loss: squared error, absolute error, or Huber (squared near 0, absolute beyond)."""


class Task(_labelled.LabelledTask):
    SCORE = "mse"
    FIGURES = ("mse", "rmse", "mae", "r2")
    KINDS = ("numbers",)

    config: Config
    answers: NumberScaler

    def _readout(self) -> str:
        return self.config.readout

    # ---- training

    @property
    def emission(self) -> Point:
        return Point(self.answers.size, self.config.loss)

    def baselines(self) -> list[task.Baseline]:
        return [task.Baseline("mean", "prior", {}), *self.neighbours()]

    # ---- figures

    def measure(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        y, target = self._numbers(self.answers_to(model, section)), self._numbers(section.values(TARGET))  # [n, k]
        squares = (y - target).square().mean(1)  # [n]
        if ledger is not None:
            ledger.add(torch.arange(len(y)), squares, torch.ones(len(y)))
        return {
            "mse": float(squares.mean()),
            "rmse": numbers.root_mean_square_error(y, target),
            "mae": numbers.mean_absolute_error(y, target),
            "r2": numbers.r2(y, target),
            "tokens": len(y),
        }

    def _numbers(self, scaled: Tensor | np.ndarray) -> Tensor:
        """In the units of the data."""
        return torch.from_numpy(self.answers.decode(scaled))

    # ---- predictions

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        some = self.first_of(split, limit)
        targets = self._numbers(some.values(TARGET))
        for i, (said, target) in enumerate(zip(self._numbers(self.answers_to(model, some)), targets)):
            yield {
                "input": self.shown(some, i),
                "target": _plain(target),
                "prediction": _plain(said),
                "error": float((said - target).square().mean()),
            }

    def say(self, model: Any, section: Examples) -> Iterator[dict[str, Any]]:
        return ({"prediction": _plain(said)} for said in self._numbers(self.answers_to(model, section)))

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {"prediction": _plain(self._numbers(y[None].float())[0])}

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        section = self.sections[split].share(_labelled.POINTS / self.sections[split].n_examples)
        y, target = self._numbers(self.answers_to(model, section)), self._numbers(section.values(TARGET))  # [n, k]
        said, true = ({n: z[:, k].tolist() for k, n in enumerate(self._names())} for z in (y, target))
        return dict(predictions.against_true(said, true, split))

    def _names(self) -> list[str]:
        """Of the numbers: their columns where these are known."""
        columns = names_of(self.reading.target)
        n = self.answers.size
        return columns if len(columns) == n and all(columns) else [f"number {k + 1}" for k in range(n)]


def _plain(numbers: Tensor) -> float | list[float]:
    """One number alone, several as a list."""
    values: list[float] = [float(f"{value:.7g}") for value in numbers.tolist()]
    return values[0] if len(values) == 1 else values
