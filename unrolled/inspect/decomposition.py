"""A forecast as a sum: of a level, a trend and a season, or of what each past value adds.

    y_{t+h} = level + trend_h + season_h                                       exponential smoothing
    y_{t+h} = c_h + sum_tau W_{h,tau} (x_{t-tau} - m)                          every model that is linear in the values

m is the mean of the series in the training data, as it is scaled by. W is the derivative of the forecast; that the sum
is the forecast, and that it still is where all values are twice as far from the mean, is checked before it is shown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core import state as tree
from unrolled.core.batch import Batch
from unrolled.core.causal import Encoder
from unrolled.core.errors import UsageError
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.dependence import rows_at_once
from unrolled.inspect.tools.example import exact
from unrolled.inspect.tools.looking import Look, glance, look_at, rounded
from unrolled.inspect.tools.opened import open_model, precise
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Heatmap, Picture, Plot, Series
from unrolled.runs.run import Run

CLOSE = 1e-6  # of the largest forecast: a larger difference is no rounding
SHOWN = 48  # lags of the picture of all steps
LARGEST = 5  # lags that are named


class Config(config.Config):
    length: int = Field(4096, ge=2)
    """Maximum number of last steps of the series to read."""
    step: int | None = Field(None, ge=1)
    """Step of the horizon whose lags are drawn; none: the first and the last."""


class Linear(NamedTuple):
    """A forecast as a constant and what each value adds."""

    forecast: Tensor  # [H]
    constant: Tensor  # [H]
    adds: Tensor  # [H, T]


def applies(run: Run) -> str | None:
    ports = run.task.ports()
    if ports.forecast is None:
        return f"the task '{run.config.task}' does not forecast series"
    if isinstance(run.model, Encoder) or ports.source is not None:
        return f"the forecast of this {run.config.model} is not linear in the values of a series"
    look = glance(run)
    if look.seen["components"] or linear(look, *ports.forecast[:3]) is not None:
        return None
    return f"the forecast of this {run.config.model} is not linear in the values of a series, so it has no such sum"


def linear(look: Look, horizon: int, _: int, d_step: int) -> Linear | None:
    """The forecast of the first channel from the end of an input; None: it is no linear function of the values."""
    batch = exact(look.batch.to("cpu"))
    opened = open_model(precise(look.model), batch)
    x = opened.vectors.detach()
    values, beside = x[:, :, :1], x[:, :, 1:]  # what stands beside the channel stays as it is

    def f(v: Tensor) -> Tensor:
        """[n, T, 1] -> [n, H]"""
        n = len(v)
        state = None if opened.state is None else tree.repeat(opened.state, n)
        y = opened.body(torch.cat([v, beside.expand(n, -1, -1)], -1), state)[0][:, -1]  # [n, D']
        return y[:, ::d_step] if y.shape[1] == horizon * d_step else y[:, :0]

    with torch.no_grad():
        constant, forecast, far = f(torch.cat([0 * values, values, 2 * values]))
    if not len(forecast):
        return None  # a distribution, not the numbers themselves
    adds = torch.cat([_slopes(f, values, h) for h in torch.arange(horizon).split(rows_at_once(x.shape[1], horizon))])
    adds = adds * values[0, :, 0]  # [H, T]
    most = CLOSE * max(float(forecast.abs().max()), 1.0)
    for n, found in ((1, forecast), (2, far)):
        if bool(((constant + n * adds.sum(1)) - found).abs().max() > most):
            return None
    return Linear(forecast, constant, adds)


def _slopes(f: Any, values: Tensor, steps: Tensor) -> Tensor:
    """d f_h / d v for some steps h: [n, T]."""
    v = values.repeat_interleave(len(steps), 0).requires_grad_()
    y = f(v)[torch.arange(len(steps)), steps]
    if not y.requires_grad:
        return torch.zeros_like(v[..., 0]).detach()
    return torch.autograd.grad(y.sum(), v)[0][..., 0]


def ask(run: Run, value: Any, config: Config) -> Answer:
    look, ports = look_at(run, value, config.length), run.task.ports().forecast
    assert ports is not None
    batch = look.batch.to("cpu")
    shift, scale = (1.0, 1.0) if batch.scale is None else batch.scale[0, :2, 0].tolist()
    unit = "logarithms of the values" if run.config.task_settings.get("transform") == "log" else "units of the data"
    found = parts_of(look, batch)
    if found is not None:
        return _of_parts(found, unit, look.left_out)
    by_value = linear(look, *ports[:3])
    if by_value is None:
        raise UsageError("the forecast from this input is not linear in its values; try another input")
    in_units = Linear(shift + scale * by_value.forecast, shift + scale * by_value.constant, scale * by_value.adds)
    return _of_lags(in_units, look.names, config, unit, look.left_out)


def parts_of(look: Look, batch: Batch) -> dict[str, Tensor] | None:
    """What layers note as the components of the last forecast, each [H], and the forecast; in their own units."""
    model = precise(look.model)
    again = Look(model, exact(batch), look.names)
    if not again.seen["components"]:
        return None
    return {name: part[0, -1].double() for name, part in again.seen["components"][-1].items()}


# ---- level, trend, season


def _of_parts(parts: dict[str, Tensor], unit: str, left_out: str) -> Answer:
    forecast = torch.stack(list(parts.values())).sum(0)  # [H]
    steps = [float(h + 1) for h in range(len(forecast))]
    series = [Series(name="forecast", x=steps, y=rounded(forecast))]
    series += [Series(name=name, x=steps, y=rounded(part), style="dashed") for name, part in parts.items()]
    numbers = {"forecast": forecast.tolist(), "unit": unit, **{name: part.tolist() for name, part in parts.items()}}
    plot = Plot(
        title=f"The forecast as a sum of {_listed(list(parts))}", alt="The forecast and its parts along the horizon.",
        series=series, x_label="steps ahead", y_label=unit,
    )  # fmt: skip
    last = {name: float(part[-1]) for name, part in parts.items()}
    terms = " ".join(f"{value:+.4g} ({name})" for name, value in last.items())
    reading = (
        f"The forecast is the sum of {_listed(list(parts))}: {len(forecast)} steps ahead it is "
        f"{float(forecast[-1]):.4g} = {terms}, in {unit}."
    )
    return Answer(reading + left_out, numbers, {"forecast": forecast, **parts}, [plot])


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# ---- lags


def _of_lags(found: Linear, names: list[str], config: Config, unit: str, left_out: str) -> Answer:
    H, T = found.adds.shape
    if config.step is not None and config.step > H:
        raise UsageError(f"invalid value step = {config.step}: this run forecasts {H} steps")
    steps = [config.step] if config.step is not None else sorted({1, H})
    used = int((found.adds.abs().sum(0) > 0).nonzero().min()) if bool(found.adds.any()) else T - 1
    back = [float(t - (T - 1)) for t in range(used, T)]
    series = [Series(name=_ahead(h), x=back, y=rounded(found.adds[h - 1, used:])) for h in steps]
    shown = min(SHOWN, T - used)
    pictures: list[Picture] = [
        Plot(
            title="What each past value adds to the forecast", series=series, x_label="steps before the forecast",
            y_label=unit, alt="Contribution of each past value to the forecast, by how far back it is.",
        )
    ]  # fmt: skip
    if H > 1 and shown > 1:
        pictures.append(
            Heatmap(
                title="Contributions by step of the horizon",
                alt="Contributions of the last values in columns to each step of the forecast in rows.",
                values=rounded(found.adds[:, -shown:]), rows=[str(h + 1) for h in range(H)], columns=names[-shown:],
                x_label="past value", y_label="steps ahead", scale="diverging",
            )
        )  # fmt: skip
    h = steps[-1]
    order = found.adds[h - 1].abs().argsort(descending=True)[:LARGEST].tolist()
    largest = [{"time": names[t], "back": T - 1 - t, "adds": float(found.adds[h - 1, t])} for t in order]
    numbers = {
        "step": h, "unit": unit, "forecast": found.forecast.tolist(), "constant": found.constant.tolist(),
        "largest": [each for each in largest if each["adds"]], "lags": T - used,
    }  # fmt: skip
    arrays = {"forecast": found.forecast, "constant": found.constant, "contributions": found.adds}
    return Answer(_reading(found, numbers) + left_out, numbers, arrays, pictures)


def _ahead(h: int) -> str:
    return f"{h} {'step' if h == 1 else 'steps'} ahead"


def _reading(found: Linear, numbers: dict[str, Any]) -> str:
    h = numbers["step"]
    terms = ", ".join(f"{each['time']} ({each['adds']:+.4g})" for each in numbers["largest"][:3]) or "none"
    return (
        f"This forecast is linear in the past values: {_ahead(h)} it is {float(found.forecast[h - 1]):.4g}, the sum of "
        f"a constant of {float(found.constant[h - 1]):.4g} and of what the last {numbers['lags']} values add by their "
        f"distance from the mean of the series, in {numbers['unit']}. Most is added by {terms}."
    )


QUESTION = QuestionSpec(
    summary="What does each past value, or level, trend and season, add to a forecast of a linear model?",
    config=Config,
    ask=ask,
    applies=applies,
    aliases=("components", "contributions"),
)
