"""What turns series into inputs and forecasts back into the units of the data: fitted on the training span only.

| of | encoded |
|---|---|
| values | (f(v) - shift) / scale of the series itself, f the identity or the logarithm; NaN where missing |
| covariates | (c - mean) / std over all series; 0 where missing |
| static covariates | numbers likewise, classes as zeros and ones |
| calendar | sin and cos of 2 pi times the part of the period that has passed |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.core.opening import json_text, parse_json
from unrolled.data.files.cell_values import narrowed, shown
from unrolled.data.time_series.stamps import AT_ONCE, DAY, SECOND, Stamps, Step, StepOf, months_of, written
from unrolled.data.time_series.table import Series

Transform = Literal["none", "log"]
Scaling = Literal["standard", "mean", "none"]
Numbers = NDArray[np.float64]

DIGITS = 6  # behind the first one of a standard deviation, that an encoded value has


class Scale(NamedTuple):
    """How the values of one series are brought to about 0 and 1, channel by channel."""

    shift: tuple[float, ...]
    scale: tuple[float, ...]
    naive: tuple[float, ...]
    """the mean error, in the units of the data, of repeating the value of one season ago in the training span"""


class Encoded(NamedTuple):
    """A series as models take it."""

    values: NDArray[np.float32]  # [T, D] NaN where missing
    past: NDArray[np.float32]  # [T, P]
    known: NDArray[np.float32]  # [T + F, K]
    calendar: NDArray[np.float32]  # [T + F, C]
    static: NDArray[np.float32]  # [S]
    scale: NDArray[np.float64]  # [3, D] shift, scale, naive


@dataclass(frozen=True)
class SeriesCodec:
    """All that was learned of series before a model sees them."""

    targets: tuple[str, ...]
    """names of the D numbers of a step"""
    step: Step | None
    """from one time to the next; None: any"""
    are: str
    """what stamps are: times or numbers"""
    zoned: bool
    horizon: int
    lookback: int
    season: int
    transform: Transform
    scaling: Scaling
    observed: bool
    """whether inputs say which values are missing"""
    gaps: float | None
    """the usual gap between two times, where gaps are an input"""
    calendar: tuple[str, ...]
    past: tuple[tuple[str, float, float], ...]
    """names, means and deviations of covariates"""
    known: tuple[tuple[str, float, float], ...]
    static: tuple[tuple[str, Any], ...]
    """names with (mean, std), or with a list of classes"""
    scales: Mapping[str, Scale] = field(default_factory=dict)

    # ---- widths

    @property
    def d_step(self) -> int:
        return len(self.targets) if self.joint else 1

    @property
    def joint(self) -> bool:
        first = next(iter(self.scales.values()), None)
        return first is None or len(first.shift) > 1 or len(self.targets) == 1

    @property
    def d_calendar(self) -> int:
        return 2 * len(self.calendar)

    @property
    def d_known(self) -> int:
        return len(self.known) + (self.gaps is not None)

    @property
    def d_static(self) -> int:
        return sum(1 if isinstance(how[0], float) else len(how) for _, how in self.static)

    @property
    def d_in(self) -> int:
        """Columns of x: values, whether observed, past, calendar, known of the next `horizon` steps, static."""
        own = self.d_step * (1 + self.observed) + len(self.past) + self.d_calendar
        return own + self.horizon * self.d_known + self.d_static

    def beside(self) -> list[str]:
        """What there is beside the values: covariates by name, the calendar, gaps between times."""
        found = [str(each[0]) for each in (*self.past, *self.known, *self.static)] + list(self.calendar)
        return found + (["the gaps between times"] if self.gaps is not None else [])

    # ---- there and back

    def encode(self, series: Series, n: int, fitted: int | None = None) -> Encoded:
        """A series whose first n rows have values; a scale that is not known is fitted on the first of them, or all."""
        values = series.values[: fitted or n]
        scale = self.scales.get(series.name) or fit_scale(
            self.transformed(values, series), values, self.scaling, self.season
        )
        shift, size, _ = (np.array(each) for each in scale)
        values = self.transformed(series.values[:n], series)
        encoded = np.empty(values.shape, np.float32)
        for begin in range(0, n, AT_ONCE):
            part = (values[begin : begin + AT_ONCE] - shift) / size
            encoded[begin : begin + AT_ONCE] = narrowed(part, series.name or series.place)
        return Encoded(
            encoded, _standardised(series.past[:n], self.past), self._known(series),
            calendar_of(self._stamps(series, n), self.calendar), self._static(series), np.array(scale),
        )  # fmt: skip

    def _stamps(self, series: Series, n: int) -> Stamps:
        """With those of the horizon behind the last value."""
        more = self.horizon - (len(series.stamps) - n)
        if self.step is None or not self.calendar or more <= 0:
            return series.stamps
        return np.append(series.stamps, self.step.after(int(series.stamps[-1]), more)).astype(np.int64)

    def transformed(self, values: Numbers, series: Series) -> Numbers:
        if self.transform == "none":
            return values
        if bool((values <= 0).any()):
            low = float(np.nanmin(values))
            of = f" of series {shown(series.name)}" if series.name else ""
            raise DataError(
                f"{series.place}: the logarithm needs numbers above 0, but a value{of} is {low:g}; use "
                f"{option('transform', 'none')}"
            )
        return self.unscaled(values)

    def unscaled(self, values: Numbers) -> Numbers:
        """Values before they are scaled."""
        return np.log(values) if self.transform == "log" else values

    def decode(self, values: Any, scale: Any) -> Any:
        """Encoded values [.., D] with the scale [.., 3, D] of their series, in the units of the data."""
        found = scale[..., 0, :] + scale[..., 1, :] * values
        return np.exp(found) if self.transform == "log" else found

    def told(self, values: Any, scale: Any) -> Numbers:
        """The same, without the digits that an encoded value does not have."""
        found: Numbers = np.asarray(self.decode(values, scale), np.float64)
        shift, size = (np.broadcast_to(scale[..., k, :], found.shape) for k in (0, 1))
        by_size = (self.transform == "log") | (np.abs(shift) < 10.0**-DIGITS * size)  # or by deviations from the shift
        size = np.where(by_size, np.abs(found), size)
        with np.errstate(all="ignore"):
            step = 10.0 ** (np.floor(np.log10(size)) - DIGITS)
            return np.where(step > 0, np.round(found / step) * step, found) + 0.0  # and without -0.0

    def levels(self, values: Numbers, scale: Numbers) -> Numbers | None:
        """How far encoded values [n, H, D] are from 0 of the data, with the scales [n, 3, D] of their series; None:
        they are logarithms, in which proportions are differences."""
        return None if self.transform == "log" else values + (scale[:, 0] / scale[:, 1])[:, None]

    def _known(self, series: Series) -> NDArray[np.float32]:
        found = _standardised(series.known, self.known)
        if self.gaps is None:
            return found
        gaps = np.diff(series.stamps, prepend=series.stamps[:1]) / self.gaps  # [T + F]
        return np.concatenate([found, gaps[:, None].astype(np.float32)], axis=1)

    def _static(self, series: Series) -> NDArray[np.float32]:
        found: list[float] = []
        for name, how in self.static:
            value = series.static[name]
            if isinstance(how[0], float):
                found.append((float(value) - how[0]) / how[1])
            else:
                found += [float(str(value) == each) for each in how]
        return np.array(found, np.float32)

    def written(self, stamp: int) -> str:
        return written(stamp, self.are, self.zoned)

    def naive_of(self, name: str) -> NDArray[np.float64]:
        return np.array(self.scales[name].naive)

    # ---- kept

    def to_json(self) -> str:
        values = {name: value for name, value in asdict(self).items() if name != "scales"}
        return (
            json_text({**values, "scales": {name: list(map(list, each)) for name, each in self.scales.items()}}) + "\n"
        )

    @classmethod
    def from_json(cls, text: str) -> SeriesCodec:
        values = parse_json(text, "the codec of the series")
        try:
            return cls(**_checked(values))
        except (TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise DataError(f"this is not a codec of series ({error})") from None

    def with_horizon(self, horizon: int) -> SeriesCodec:
        return replace(self, horizon=horizon)


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a codec from JSON, of the right types and sizes."""
    step, gaps = values["step"], values["gaps"]
    covariates = {key: tuple((str(n), float(m), float(s)) for n, m, s in values[key]) for key in ("past", "known")}
    static = tuple(
        (str(name), tuple(map(float, how)) if isinstance(how[0], float) else tuple(map(str, how)))
        for name, how in values["static"]
    )
    if step is not None and (step[1] not in get_args(StepOf) or not int(step[0]) > 0):
        raise ValueError("the step is not valid")
    numbers = {key: int(values[key]) for key in ("horizon", "lookback", "season")}
    if not all(0 < number < 10**6 for number in numbers.values()):
        raise ValueError("horizon, lookback and season must be positive")
    if values["transform"] not in ("none", "log") or values["scaling"] not in ("standard", "mean", "none"):
        raise ValueError("unknown transform or scaling")
    scales = {}
    for name, parts in values["scales"].items():
        scale = Scale(*(tuple(map(float, part)) for part in parts))
        if not np.isfinite(np.array(scale)).all() or not all(each > 0 for each in (*scale.scale, *scale.naive)):
            raise ValueError(f"the scale of {shown(name)} is not positive")
        scales[str(name)] = scale
    return {
        "targets": tuple(map(str, values["targets"])), "step": None if step is None else Step(int(step[0]), step[1]),
        "are": "numbers" if values["are"] == "numbers" else "times", "zoned": bool(values["zoned"]), **numbers,
        "transform": values["transform"], "scaling": values["scaling"], "observed": bool(values["observed"]),
        "gaps": None if gaps is None else float(gaps), "calendar": tuple(map(str, values["calendar"])), **covariates,
        "static": static, "scales": scales,
    }  # fmt: skip


# ---- fitted


def fit_scale(transformed: Numbers, values: Numbers, scaling: Scaling, season: int) -> Scale:
    """Of values [T, D], those of the training span; a channel that is constant or empty there is divided by 1."""
    with np.errstate(all="ignore"):
        seen = ~np.isnan(transformed).all(0)
        shift, scale = np.zeros(transformed.shape[1]), np.ones(transformed.shape[1])
        if seen.any() and scaling == "standard":
            shift[seen] = mean_over(len(transformed), lambda some: transformed[some])[seen]
            scale[seen] = np.sqrt(mean_over(len(transformed), lambda some: (transformed[some] - shift) ** 2))[seen]
        elif seen.any() and scaling == "mean":
            scale[seen] = mean_over(len(transformed), lambda some: np.abs(transformed[some]))[seen]
        scale[~(scale > 1e-9 * np.maximum(np.abs(shift), 1e-30))] = 1.0
    return Scale(tuple(shift.tolist()), tuple(scale.tolist()), tuple(naive_errors(values, season).tolist()))


def naive_errors(values: Numbers, season: int) -> Numbers:
    """The mean error [D] of repeating the value of one season ago; of the step before where that cannot be, or is 0."""
    found = np.full(values.shape[1], np.nan)
    for lag in (season, 1):
        if len(values) > lag:
            errors = mean_over(len(values) - lag, partial(_changes, values, lag))
            found = np.where(found > 0, found, errors)
    if (found > 0).all():
        return found
    spread = np.array([np.nanstd(v) if (~np.isnan(v)).any() else 0.0 for v in values.T])
    found = np.where(found > 0, found, spread)
    return np.where(found > 0, found, 1.0)


def _changes(values: Numbers, lag: int, some: slice) -> Numbers:
    """How far some of the values from step `lag` on are from those `lag` steps before."""
    return np.abs(values[lag:][some] - values[:-lag][some])


def mean_over(n: int, part: Callable[[slice], Numbers]) -> Numbers:
    """The mean [D] of n rows without those that are NaN, of which `part` gives some: they are not made all at once.

    >>> mean_over(3, lambda some: np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])[some])
    array([1.5, nan])
    """
    total: Any = 0.0
    count: Any = 0
    for begin in range(0, n, AT_ONCE):
        values = part(slice(begin, begin + AT_ONCE))
        total, count = total + np.nansum(values, 0), count + (~np.isnan(values)).sum(0)
    with np.errstate(invalid="ignore"):
        found: Numbers = total / count
    return found


def moments(columns: Sequence[Numbers], names: Sequence[str]) -> tuple[tuple[str, float, float], ...]:
    """The mean and deviation of each covariate over all series [T, P]."""
    whole = np.concatenate(columns) if len(columns) else np.empty((0, len(names)))
    result = []
    for i, name in enumerate(names):
        seen = whole[:, i][~np.isnan(whole[:, i])]
        mean, std = (float(seen.mean()), float(seen.std())) if len(seen) else (0.0, 1.0)
        result.append((name, mean, std if std > 1e-12 * max(abs(mean), 1e-30) else 1.0))
    return tuple(result)


def _standardised(values: Numbers, how: Sequence[tuple[str, float, float]]) -> NDArray[np.float32]:
    mean, std = (np.array([each[i] for each in how], np.float64) for i in (1, 2))
    return np.nan_to_num((values - mean) / std if len(how) else values).astype(np.float32)


def calendar_of(stamps: Stamps, parts: Sequence[str]) -> NDArray[np.float32]:
    """[T, 2 n]: where in each period of the calendar a stamp stands, on a circle."""
    found: list[Numbers] = []
    for part in parts:
        turn = 2 * np.pi * _passed(stamps, part)
        found += [np.sin(turn), np.cos(turn)]
    return np.stack(found, axis=1).astype(np.float32) if found else np.empty((len(stamps), 0), np.float32)


def _passed(stamps: Stamps, part: str) -> Numbers:
    """The share of the period that has passed."""
    if part in ("minute", "hour"):
        length = 3600 * SECOND if part == "minute" else DAY
        return (stamps % length) / length
    if part == "weekday":
        return ((stamps + 3 * DAY) % (7 * DAY)) / (7 * DAY)  # 1970 began on a Thursday
    months = months_of(stamps)
    if part == "month":
        return (months % 12) / 12
    unit = "M" if part == "day" else "Y"
    begun = stamps.view("datetime64[us]").astype(f"datetime64[{unit}]")
    end = (begun + 1).astype("datetime64[us]").astype(np.int64)
    first = begun.astype("datetime64[us]").astype(np.int64)
    return (stamps - first) / (end - first)
