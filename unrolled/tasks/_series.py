"""What tasks on series along time share: data, splits by time, a model of the next steps, and its forecasts.

A trained model reads `lookback` steps before a forecast; a model with a closed form reads every series from its
beginning. Intervals are as wide as forecasts of the validation span show that they must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET
from unrolled.core.emission import Distribution, Numeric
from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.forward import evaluating, forward, outputs
from unrolled.core.front import option
from unrolled.core.opening import JSON, read_text
from unrolled.core.outside import write_new
from unrolled.core.sharing import own
from unrolled.core.spec import Asks, ForecastPorts, Ports, SourcePorts
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.prepared import kept, settings_of
from unrolled.data.time_series import windows
from unrolled.data.time_series.codec import SeriesCodec
from unrolled.data.time_series.histories import load_histories, save_histories
from unrolled.data.time_series.prepare import FIRST, LAST, NAMES, SCALE, TIMES, prepare_series
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.spans import Asked
from unrolled.data.time_series.windows import Cutter, SeriesWindows, Spots
from unrolled.emissions.gaussian import Gaussian
from unrolled.emissions.negative_binomial import NegativeBinomial
from unrolled.emissions.point import Point
from unrolled.emissions.quantiles import Quantiles
from unrolled.emissions.student_t import StudentT
from unrolled.layers.parts.levels import InUnits
from unrolled.objectives import calibration
from unrolled.objectives.forecasts import LEVELS, Residuals, pinball_sum, widened
from unrolled.tasks._forecast_config import Config
from unrolled.tasks._paths import paths
from unrolled.tasks._prepared import PreparedTask
from unrolled.tasks._solved import arrays_of, earlier, is_solved, n_steps, newest, reach_of

CODEC = "series.json"
ROWS = 64  # windows at once
PATHS = 4096  # that are drawn at once
MOST_FORECASTS = 1 << 15  # of a split that are evaluated, unless a stride is given
CALIBRATED = 2000  # windows of a span at most on which intervals are fitted, a quarter where each is read anew
EMISSIONS: dict[str, Callable[[int], Numeric]] = {
    "quantiles": Quantiles, "gaussian": Gaussian, "student-t": StudentT, "negative-binomial": NegativeBinomial,
}  # fmt: skip

Numbers = NDArray[np.float64]


class SeriesTask(PreparedTask):
    """The base: everything up to the forecasts of a model."""

    ACCEPTS = ("causal", "encoder", "conditional")
    FOR_KIND = {"conditional": {"by": "sequence"}}
    UNIT = "numbers"

    config: Config
    data: DataConfig

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec: SeriesCodec
        self.reading: SeriesReading = config.series
        self.spread = 1.0
        self.residuals: Residuals | None = None
        self.saved: Path | None = None  # where the histories of a saved run are

    # ---- data

    def prepare(self, source: Any) -> None:
        own = self.config.evaluating
        asked = Asked(
            self.config.horizon, self.config.lookback, self.config.season, self.config.transform, self.config.scaling,
            own.test_from, own.test_steps, own.backtest,
        )  # fmt: skip
        told = {
            "task": type(self).__module__,
            "data": settings_of(self.data),
            "config": self.config.model_dump(mode="json"),
        }
        found = kept(source, told, lambda: prepare_series(source, self.config.series, asked, self.data))
        self.prepared, self.codec = found, found.codecs["series"]
        self.reading = SeriesReading.parse(found.told["reading"])
        if self.config.distribution == "negative-binomial":
            self._require_counts()

    def _require_counts(self) -> None:
        section, source = self.sections["train"], self.facts()["source"]
        for i, values in enumerate(section.fields[TARGET]):
            odd = np.argwhere((values < 0) | (values != np.rint(values)) & ~np.isnan(values))
            if len(odd):
                t, d = odd[0]
                name = section.columns[NAMES][i]
                raise DataError(
                    f"{source}: the value {values[t, d]:g} at {self.codec.written(int(section.fields[TIMES][i][t]))}"
                    f"{f' of series {name}' if name else ''} is not a count, but {option('distribution')} is "
                    "negative-binomial; choose another distribution"
                )

    def save_codec(self, directory: Path) -> None:
        write_new(directory / CODEC, self.codec.to_json().encode())
        save_histories(directory, self.sections, self.codec)

    def load_codec(self, directory: Path) -> None:
        self.codec = SeriesCodec.from_json(read_text(directory / CODEC, JSON, within=directory))
        self.saved = directory

    def describe(self) -> dict[str, Any]:
        found = None if self.residuals is None else self.residuals.to_json()
        return {"reading": self.reading.model_dump(mode="json"), "spread": self.spread, "residuals": found}

    def recall(self, facts: Mapping[str, Any]) -> None:
        self.reading = SeriesReading.parse(facts["reading"])
        self.spread = float(facts["spread"])
        told = facts["residuals"]
        self.residuals = None if told is None else Residuals.from_json(told)

    def columns(self) -> dict[str, str]:
        return self.reading.uses()

    def size(self, split: str) -> int:
        each = self.codec.horizon * self.codec.d_step
        return each * (self._windows(1).n_windows if split == "train" else len(self.origins(split)))

    def histories(self) -> Examples:
        """The end of each series that the run was trained on."""
        if self.saved is None:
            raise UsageError("this run is not saved yet: give the series to continue")
        return load_histories(self.saved, self.codec)

    def origins(self, split: str) -> Spots:
        own = self.config.evaluating
        stride = own.stride or (self.codec.horizon if own.backtest else 1)
        found = windows.origins(self.sections[split], self.codec, stride)
        if not len(found):
            raise DataError(f"no forecast of {self.codec.horizon} steps fits into the {split} span; make it longer")
        return found if own.stride else found.some(MOST_FORECASTS)

    def how_measured(self) -> dict[str, str]:
        own, section = self.config.evaluating, self.sections.get("test") if self.prepared else None
        n = 0 if own.stride or own.backtest or section is None else len(windows.origins(section, self.codec))
        some = f"of {MOST_FORECASTS:,} forecasts, evenly spread over all {n:,} of the test span; stride = 1 takes all"
        return {"mase": some} if n > MOST_FORECASTS else {}

    # ---- the model

    def asks(self) -> Asks:
        return Asks(self._accepts(), "horizon", "numbers", None, "horizon")

    def _accepts(self) -> tuple[str, ...]:
        """An encoder has no notion of a level, so that windows must be brought to one."""
        kinds = {"sequence": ("conditional",), "rollout": ("causal",), "direct": ("causal", "encoder")}
        found = kinds.get(self.config.by, self.ACCEPTS)
        return found if self.config.relative == "window" else tuple(kind for kind in found if kind != "encoder")

    @property
    def stepwise(self) -> bool:
        """Whether a trained model predicts one step after the other."""
        return self.config.by in ("rollout", "sequence")

    @property
    def n_paths(self) -> int:
        """Paths that are drawn for a forecast step by step; numbers that are certain have one."""
        return self.config.samples if isinstance(self.emission, Distribution) else 1

    @property
    def trained(self) -> SeriesCodec:
        """The codec of what a trained model predicts at once: the whole horizon, or one step of it."""
        if not self.stepwise:
            return self.codec
        if self.codec.past:
            raise UsageError(
                f"past covariates are not known for the steps that a rollout feeds back; use {option('by', 'direct')}"
            )
        return self.codec.with_horizon(1)

    def ports(self) -> Ports:
        codec = self.trained
        asked = ForecastPorts(
            self.codec.horizon, codec.horizon, codec.d_step, codec.observed, self.config.relative,
            self.emission.rescaled, self.codec.season,
        )  # fmt: skip
        source = SourcePorts(0, codec.d_in) if self.config.by == "sequence" else None
        return Ports(
            0, self.emission.d_out, d_in=codec.d_in, answers="horizon", source=source, targets="horizon", forecast=asked
        )  # fmt: skip

    @property
    def emission(self) -> Numeric:
        d = self.trained.horizon * self.codec.d_step
        if self.config.distribution == "point":
            return Point(d, self.config.loss)
        return EMISSIONS[self.config.distribution](d)

    def sampler(self, batching: Any, carried: bool, seed: int) -> task.Sampler:
        return self._windows(batching.batch_size, seed)

    def _windows(self, batch_size: int, seed: int = 0) -> SeriesWindows:
        train, sequence = self.sections["train"], self.config.by == "sequence"
        cutter = Cutter(train, self.trained, every=self.config.relative != "window" and not sequence)
        return SeriesWindows(cutter, batch_size, seed, self.codec.horizon if sequence else None)

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        train = self.sections["train"]
        share = task.share_of(n_steps(train) * self.codec.d_step, limit)
        beside = self.codec.beside()
        unused = f"{listed(beside)}; trained models do, such as {option('model', 'gru')}" if beside else ""
        return task.Fitted(share, self._solve(model, train, share), "on data before the test span", unused)

    def _solve(self, model: Any, train: Examples, share: float = 1.0) -> Mapping[str, Any]:
        """Fit to the newest share of the series; what that leaves open is chosen on validation data."""
        sections, units = self.sections, isinstance(model, InUnits)
        some, begins = newest(np.asarray(train.columns[LAST]), share, self.codec)
        known = arrays_of(train, self.trained, units, begins, some)
        held_out = []
        if "valid" in sections:
            first, reach = np.asarray(sections["valid"].columns[FIRST]), reach_of(model)
            begin = np.zeros_like(first) if reach is None else np.maximum(first - reach, 0)
            held_out = [*zip(arrays_of(sections["valid"], self.trained, units, begin), (first - begin).tolist())]
        return model.solve(known, held_out) or {}

    # ---- forecasts

    def forecasts(self, model: Any, section: Examples, spots: Spots) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        """Which of some spots these are, with the outputs [n, D'] there, or paths [n, samples, H D]."""
        cutter = Cutter(section, self.trained, every=False)
        if is_solved(model):
            yield from self._along(model, cutter, spots)
            return
        if self.stepwise:
            n, emission = self.n_paths, self.emission
            some = own(len(spots))
            for begin in range(some.start, some.stop, size := max(1, PATHS // n)):
                rows = np.arange(begin, min(begin + size, some.stop))
                yield rows, paths(model, cutter, spots.at(rows), self.codec.horizon, emission, n, rows)
            return
        for batch, y in outputs(model, cutter.windows(spots, ROWS)):
            assert batch.rows is not None
            yield batch.rows.cpu().numpy(), y[:, 0].float().cpu()

    def _along(self, model: Any, cutter: Cutter, spots: Spots) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        """Of a model that reads series from their beginning, or as much of them as reaches its outputs."""
        order = np.argsort(spots.series, kind="stable")
        series, bounds = np.unique(spots.series[order], return_index=True)
        wanted = np.split(order, bounds[1:])  # spots of each series
        reach, last = reach_of(model), np.array([spots.ends[rows].max() for rows in wanted])
        first = np.array([0 if reach is None else max(0, spots.ends[rows].min() - reach) for rows in wanted])
        state = None
        for batch, some, starts in cutter.streams(series, first, last):
            with evaluating(model) as device:
                y, state = forward(model, batch.to(device), state)
            for b, (k, start) in enumerate(zip(some.tolist(), starts.tolist())):
                at = spots.ends[wanted[k]] - 1 - start
                here = (at >= 0) & (at < y.shape[1])
                if here.any():
                    yield wanted[k][here], y[b, torch.from_numpy(at[here])].float().cpu()

    def quantiles(self, y: Tensor, scale: Numbers) -> tuple[Numbers, Numbers]:
        """Of what `forecasts` gives for series of these scales [n, 3, D]: quantiles [Q, n, H, D] and means [n, H, D] of
        the encoded numbers. A model with a closed form gives the numbers themselves, whatever others predict; intervals
        are those of held-out errors."""
        H, D = self.codec.horizon, self.codec.d_step
        if y.dim() == 3 and y.shape[1] > 1:
            drawn = y.double().view(*y.shape[:2], H, D)
            q = torch.quantile(drawn, drawn.new_tensor(LEVELS), dim=1).numpy()
            return widened(q, self.spread), drawn.mean(1).numpy()
        emission = self.emission
        if y.shape[-1] == emission.d_out and isinstance(emission, Distribution):
            sure = replace(emission, spread=self.spread)  # type: ignore[type-var]
            told = torch.as_tensor(sure.quantiles(y.double(), LEVELS))
            return told.view(len(LEVELS), -1, H, D).numpy(), sure.mean(y.double()).view(-1, H, D).numpy()
        points = y.double().view(-1, H, D).numpy()
        around = Residuals((1.0,) * H, (0.0,) * len(LEVELS)) if self.residuals is None else self.residuals
        return around.around(points, self.codec.levels(points, scale)), points

    def after_training(self, model: Any) -> None:
        """How wide intervals are, from forecasts of the validation span; of a closed form also of the later half of
        the training span, or the last third of a short one: a short span may vary less or more than others."""
        self.spread, self.residuals = 1.0, None
        if "valid" not in self.splits():
            return
        section = self.sections["valid"]
        y, target, scale = self._judged(model, section, self.origins("valid"))
        emission = self.emission
        if y.dim() == 3 and y.shape[1] > 1:
            q = self.quantiles(y, scale)[0]
            truth = target.double().reshape(q.shape[1:]).numpy()
            weight = pinball_sum(q, truth) / truth.size
            self.spread = calibration.fit_spread(lambda f: pinball_sum(widened(q, f), truth), weight)
        elif y.shape[-1] == emission.d_out and isinstance(emission, Distribution):
            sure = emission.calibrate(y[:, None], target[:, None].nan_to_num(), ~target[:, None].isnan())
            self.spread = sure.spread  # type: ignore[attr-defined]
        else:
            found, steps = [(y, target, scale)], [n_steps(section)]
            for each in earlier(model, self.sections["train"], self.codec, self._solve):
                found.append(self._judged(*each))
                steps.append(n_steps(each[1]))
            shape = (-1, self.codec.horizon, self.codec.d_step)
            points = torch.cat([y for y, _, _ in found]).double().numpy().reshape(shape)
            truth = torch.cat([t for _, t, _ in found]).double().numpy().reshape(shape)
            levels = self.codec.levels(points, np.concatenate([each for _, _, each in found]))
            self.residuals = Residuals.fit(truth - points, sum(steps) / self.codec.horizon, levels)

    def _judged(self, model: Any, section: Examples, spots: Spots) -> tuple[Tensor, Tensor, Numbers]:
        """Outputs of a model for some windows of a span, evenly spread, the targets [n, H D] there, and the scales
        [n, 3, D] of their series."""
        spots = spots.some(CALIBRATED if is_solved(model) else CALIBRATED // 4)
        found = [*self.forecasts(model, section, spots)]
        some = spots.at(np.concatenate([each for each, _ in found]))
        target = torch.from_numpy(targets_of(section, self.codec, some))
        return torch.cat([each for _, each in found]), target, np.asarray(section.columns[SCALE])[some.series]


def targets_of(section: Examples, codec: SeriesCodec, spots: Spots) -> NDArray[np.float32]:
    """[n, H D], NaN where missing or behind the span."""
    field, H = section.fields[TARGET], codec.horizon
    at = spots.ends[:, None] + np.arange(H)  # [n, H]
    known = at < np.asarray(section.columns[LAST])[spots.series][:, None]
    found = field.values[np.where(known, field.offsets[0][spots.series][:, None] + at, 0)]  # [n, H, D]
    return np.where(known[..., None], found, np.float32(np.nan)).reshape(len(spots), -1)
