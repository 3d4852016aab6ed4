"""Denoise: predict the clean series from a noisy one, step by step.

    C = 1/N sum_t |y_t - c_t|^2        x_t the noisy, c_t the clean value, both on the scale of the clean training data

    gain = 10 log10( sum_t |x_t - c_t|^2 / sum_t |y_t - c_t|^2 ) dB, in the units of the data

A causal model has y_t from x_1 .. x_t alone, so it also runs live: a value in, a value out. With a
`delay` of d steps it has y_t from x_1 .. x_{t+d}, and says it d ticks later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET
from unrolled.core.errors import UsageError
from unrolled.core.spec import Ports
from unrolled.data.builtin_sets import BUILTIN
from unrolled.data.codecs.labels import SeriesScaler
from unrolled.data.collate import BESIDE
from unrolled.data.examples import INPUT, Examples, Ragged
from unrolled.data.labelled import LabelledSource
from unrolled.data.long_examples import example_batches
from unrolled.data.look import Look
from unrolled.data.noise import FreshNoise, with_noise
from unrolled.data.reading import Answers, Noise
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.emissions.point import Point
from unrolled.objectives import numbers
from unrolled.pictures import predictions
from unrolled.tasks import _labelled

ALIASES = ("denoising", "clean", "filter")

DECIMALS = 6


class Config(_labelled.Config):
    """How the data is read, and what noise is put on it where it is clean."""

    clean: Noise = Noise()

    delay: int = Field(0, ge=0, le=10_000)
    """Number of steps by which a causal model delays its predictions: it then uses some of what follows, and still runs
    live."""


class Task(_labelled.LabelledTask):
    SCORE = "mse"
    FIGURES = ("mse", "snr_gain")
    KINDS = ("series",)
    UNIT = "steps"

    config: Config
    answers: SeriesScaler

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        return task.Guess(0.95, "noise is to be put on it") if given.get("noise") else super().guess(look, given)

    def prepare(self, source: Any) -> None:
        """With as many channels in as out, both are on the scale of the clean series: doing nothing is then y = x."""
        super().prepare(source)
        found, before = self.found(), self.inputs
        if self._is_pair():
            assert isinstance(before, SeriesScaler)
            sections = {}
            for part, section in found.sections.items():
                noisy = section.fields[INPUT]
                again = Ragged(self.answers.encode(before.decode(noisy.values), part), noisy.offsets)
                sections[part] = replace(section, fields={**section.fields, INPUT: again})
            self.prepared = replace(found, sections=sections)
            self.inputs = self.answers

    def _asked(self) -> dict[str, Any]:
        return {**super()._asked(), "clean": self.config.clean.model_dump(mode="json")}

    def _opened(self, source: Any, answers: Answers) -> LabelledSource:
        """Pairs as they are given, or clean series with noise put on them."""
        asked = self.config.clean
        if asked.noise is None:
            return super()._opened(source, answers)
        if isinstance(source, str) and source.startswith(BUILTIN):
            raise UsageError(f"{source} already has noise; leave out noise = {asked.noise}")
        return with_noise(open_labelled(source, self._reading_of(source), "none"), asked, self.config.reading.window)

    def ports(self) -> Ports:
        return super().ports()._replace(delay=self.config.delay)

    def _is_pair(self) -> bool:
        return self.inputs.size == self.answers.size

    def size(self, split: str) -> int:
        return len(self.sections[split].values(INPUT))

    # ---- training

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        """Noise that is ours is drawn anew for every batch."""
        batches = example_batches(self.sections["train"], batching, BESIDE, carried, seed)
        asked = self.config.clean
        return batches if asked.noise is None else FreshNoise(batches, asked.noise, asked.snr)

    @property
    def emission(self) -> Point:
        return Point(self.answers.size)

    def baselines(self) -> list[task.Baseline]:
        return [task.Baseline("left as it is", "identity", {}), task.Baseline("linear filter", "ar", {})]

    # ---- figures

    def measure(self, model: Any, section: Examples, ledger: task.Ledger | None) -> dict[str, float]:
        y, clean = self.answers_along(model, section), torch.from_numpy(section.values(TARGET))  # [N, D]
        squares = (y.double() - clean.double()).square().sum(1)  # [N]
        if ledger is not None:
            examples = torch.from_numpy(np.repeat(np.arange(section.n_examples), section.lengths(INPUT)))  # [N]
            ledger.add(examples, squares, torch.full_like(squares, self.answers.size))
        figures = {"mse": float(squares.mean()) / self.answers.size, "tokens": len(y)}
        if self._is_pair():
            noisy = torch.from_numpy(section.values(INPUT))
            gain = numbers.snr_gain(self._units(y), self._units(noisy), self._units(clean))
            if math.isfinite(gain):  # not where there was no noise, or none is left
                figures["snr_gain"] = gain
        return figures

    def _units(self, scaled: Tensor) -> Tensor:
        """In the units of the data."""
        return torch.from_numpy(self.answers.decode(scaled))

    # ---- predictions

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        some = self.first_of(split, limit)
        for i, said in enumerate(self.say(model, some)):
            target = self.answers.decode(some.at(TARGET, i))
            error = self.answers.encode(np.array(said["prediction"]), split) - some.at(TARGET, i)  # [T, D]
            yield {
                "input": self.shown(some, i),
                "target": target.round(DECIMALS).tolist(),
                **said,
                "error": float(np.square(error).mean()),
            }

    def say(self, model: Any, section: Examples) -> Iterator[dict[str, Any]]:
        y = self.answers.decode(self.answers_along(model, section))  # [N, D]
        for start, stop in zip(section.fields[INPUT].offsets[0][:-1], section.fields[INPUT].offsets[0][1:]):
            yield {"prediction": y[start:stop].round(DECIMALS).tolist()}

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        line = next(self.predictions(model, split, 1))
        shown = {"noisy": line["input"], "clean": line["target"], "denoised": line["prediction"]}
        return {"example": predictions.series(shown, "clean", split)}

    def told(self, y: Tensor, x: Tensor) -> dict[str, Any]:
        return {"prediction": self.answers.decode(y.float()).tolist()}
