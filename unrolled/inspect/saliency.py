"""Saliency: integrated gradients and occlusion.

    a_t = sum_d (v_t - v'_t)_d int_0^1 df/dv_{t,d} (v' + u (v - v')) du         integrated gradients, eq. (1)
    sum_t a_t = f(v) - f(v')                                                    completeness
    o_t = f(x) - f(x with x_t replaced)                                         occlusion

f is minus the task's loss at one position, the log-probability of the target there; where a task answers once, or at
each position of what it has read, the log-probability of the class that the model says, or the number. v are the
vectors behind the input layer (or the input itself, where that is vectors), the baseline v' is zero everywhere. The
integral is taken by Gauss's rule on intervals that are halved until completeness holds on each. Occlusion replaces a
token by <unknown>, a vector by zero; it needs no gradient. Sundararajan, Taly & Yan (2017); Zeiler & Fergus (2014).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core import state as tree
from unrolled.core.batch import Batch
from unrolled.core.forward import forward
from unrolled.core.inspection import QuestionSpec
from unrolled.core.task import Model
from unrolled.core.tokens import UNKNOWN
from unrolled.inspect.tools.dependence import ROUNDING, rows_at_once
from unrolled.inspect.tools.example import Target, exact, labels, rows_of, target_of
from unrolled.inspect.tools.looking import look_at_inputs
from unrolled.inspect.tools.memories import why_memory
from unrolled.inspect.tools.opened import Opened, flows, open_model, precise, why_closed
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Bars, Picture, Plot, Series, Tokens
from unrolled.runs.run import Run

SMALL = 1e-3  # nats: a smaller difference counts as this one
NODES = 4  # of Gauss's rule on one interval
SHOWN = 20  # bars
LEAST = 0.01  # of the largest, for a bar


class Config(config.Config):
    at: int | None = Field(None, ge=0)
    """Position of the target to explain; none: the last."""
    length: int = Field(128, ge=1)
    """Maximum number of input positions to read."""
    tolerance: float = Field(5e-3, gt=0, lt=1)
    """Target for the completeness error, as a share of f(v) - f(v')."""
    evaluations: int = Field(512, ge=64)
    """Maximum number of gradients along the path."""


# ---- integrated gradients


class Integrated(NamedTuple):
    """What was found along the path from the baseline."""

    attribution: Tensor  # [T]
    by_column: Tensor  # [T, D]
    difference: float  # f(v) - f(v'), which the attributions should sum to
    error: float  # |sum a_t - difference| / |difference|
    evaluations: int


Function = Callable[[Tensor], Tensor]  # v [n, T, D] -> f of each row [n]


def integrated_gradients(
    f: Function, v: Tensor, tolerance: float = 5e-3, evaluations: int = 512, at_once: int = 64
) -> Integrated:
    """Attributions of f(v), v [1, T, D], along the straight path from zero.

    >>> found = integrated_gradients(lambda v: (v[:, 0] * v[:, 1]).sum(-1), torch.tensor([[[2.0], [3.0]]]))
    >>> [round(float(a), 6) for a in found.attribution], found.difference
    ([3.0, 3.0], 6.0)
    """
    nodes, weights = (torch.from_numpy(array).to(v) for array in np.polynomial.legendre.leggauss(NODES))
    difference = float(_values(f, v, torch.tensor([0.0, 1.0]).to(v), at_once).diff())
    allowed = tolerance * max(abs(difference), SMALL)
    attribution, used = torch.zeros(v.shape[1:]).to(v), 0  # [T, D]
    left, right = torch.linspace(0, 1, 9).to(v)[:-1], torch.linspace(0, 1, 9).to(v)[1:]  # eight intervals
    while len(left):
        u = (left + right)[:, None] / 2 + (right - left)[:, None] / 2 * nodes  # [I, NODES]
        slopes = _slopes(f, v, u.flatten(), at_once).view(*u.shape, *v.shape[1:])  # [I, NODES, T, D]
        parts = (slopes * weights[:, None, None]).sum(1) * ((right - left) / 2)[:, None, None]  # [I, T, D]
        used += u.numel()
        exact = _values(f, v, right, at_once) - _values(f, v, left, at_once)  # [I]
        wrong = (parts.sum((1, 2)) - exact).abs() > allowed * (right - left).clamp(min=1 / 64)
        if used + 2 * NODES * int(wrong.sum()) > evaluations:
            wrong[:] = False  # no more: the error is reported
        attribution += parts[~wrong].sum(0)
        middle = (left[wrong] + right[wrong]) / 2
        left, right = torch.cat([left[wrong], middle]), torch.cat([middle, right[wrong]])
    error = abs(float(attribution.sum()) - difference) / max(abs(difference), SMALL)
    return Integrated(attribution.sum(-1), attribution, difference, error, used)


def _values(f: Function, v: Tensor, u: Tensor, at_once: int) -> Tensor:
    """f(u v) for each u: [n]."""
    with torch.no_grad():
        return torch.cat([f(some[:, None, None] * v) for some in u.split(at_once)])


def _slopes(f: Function, v: Tensor, u: Tensor, at_once: int) -> Tensor:
    """v_{t,d} df/dv_{t,d} at u v for each u: [n, T, D]."""
    found = []
    for some in u.split(at_once):
        path = (some[:, None, None] * v).detach().requires_grad_()  # [n, T, D]
        (gradient,) = torch.autograd.grad(f(path).sum(), path)
        found.append(gradient * v)
    return torch.cat(found)


def explained(opened: Opened, target: Target) -> tuple[Function, Tensor]:
    """f as a function of the vectors behind the input layer, and those vectors [1, T, D]."""
    vectors, body, state = opened

    def f(v: Tensor) -> Tensor:
        return target.explained.of(body(v, None if state is None else tree.repeat(state, len(v)))[0])

    return f, vectors.detach()


# ---- occlusion


@torch.no_grad()
def occlusion(model: Model, batch: Batch, target: Target, at_once: int = 64) -> Tensor:
    """f(x) - f(x with x_t replaced by <unknown>, or zero), for every t: [T]."""
    T, changes = batch.x.shape[1], []
    for positions in torch.arange(T).split(at_once):
        rows = rows_of(batch, len(positions) + 1)  # the last row stays as it is
        rows.x[torch.arange(len(positions)), positions] = 0 if rows.x.is_floating_point() else UNKNOWN
        f = target.explained.of(forward(model, rows)[0])  # [n + 1]
        change = f[-1] - f[:-1]
        changes.append(torch.where(change.abs() <= ROUNDING * f[-1].abs().clamp(min=1), 0.0, change))
    return torch.cat(changes)


# ---- the answer


def ask(run: Run, value: Any, config: Config) -> Answer:
    look = look_at_inputs(run, value, config.length)
    batch, names, left_out = look.batch.to("cpu"), look.names, look.left_out
    model, batch = precise(look.model), exact(batch)
    with torch.no_grad():
        y = forward(model, batch)[0]
    target = target_of(run.task, y, batch, config.at)
    name, what, unit, f = target.explained
    key = _key(what)
    numbers: dict[str, Any] = {"position": target.at, "target": name, key: float(f(y))}
    at_once = rows_at_once(len(names), y.shape[-1])
    arrays = {"occlusion": occlusion(model, batch, target, at_once)}
    if why_closed(model, batch.x.is_floating_point()) is None and flows(opened := open_model(model, batch)):
        f, v = explained(opened, target)
        found = integrated_gradients(f, v, config.tolerance, config.evaluations, at_once)
        arrays = {"integrated_gradients": found.attribution, **arrays}
        numbers |= {
            "difference": found.difference, "completeness_error": found.error, "evaluations": found.evaluations,
            "baseline": "zero vectors", f"{key}_baseline": numbers[key] - found.difference,
        }  # fmt: skip
        if len(set(columns := run.task.input_columns())) > 1 and len(columns) == v.shape[-1]:
            arrays["by_column"] = found.by_column
            numbers["columns"] = _summed(found.by_column, columns)
    along = run.task.ports().answers == "horizon"
    pictures: list[Picture] = [_by_column(numbers["columns"], target)] if "columns" in numbers else []
    for method in ("integrated_gradients", "occlusion"):
        if method not in arrays:
            continue
        attribution, said = arrays[method], method.replace("_", " ")
        numbers[method] = _largest(attribution, names, unit)
        pictures += _pictures(said, target, names, attribution[: target.until].tolist(), along)
    return Answer(_reading(numbers, target) + left_out, numbers, arrays, pictures)


def _largest(attribution: Tensor, names: list[str], unit: str) -> list[dict[str, Any]]:
    order = attribution.abs().argsort(descending=True)[:5].tolist()
    key = unit if unit == "nats" else "adds"
    return [{"position": t, "name": names[t], key: float(attribution[t])} for t in order if attribution[t] != 0]


def _summed(by_column: Tensor, names: list[str]) -> dict[str, float]:
    """The attribution of each input over all positions, largest first."""
    total = by_column.sum(0)  # [D]
    found = {name: float(total[[i for i, other in enumerate(names) if other == name]].sum()) for name in set(names)}
    return dict(sorted(found.items(), key=lambda item: (-abs(item[1]), item[0])))


def _by_column(sums: dict[str, float], target: Target) -> Bars:
    name, what, unit, _ = target.explained
    return Bars(
        title=f"Attributions of '{name}' by input", alt=f"Contribution of each input column to {what} in {unit}.",
        names=list(sums)[:SHOWN], values=list(sums.values())[:SHOWN], x_label=f"contribution to {what} in {unit}",
    )  # fmt: skip


def _pictures(method: str, target: Target, names: list[str], values: list[float], along: bool) -> list[Picture]:
    most = max(map(abs, values)) or 1.0
    name, what, unit, _ = target.explained
    title, adds = f"Attributions of '{name}' ({method})", f"contribution to {what} in {unit}"
    if along or labels(names) == names:  # numbers of frames are no text
        step, label = ("step", "steps before the forecast") if along else ("frame", "frame")
        words = f"Contribution of each input {step} to {what} in {unit}, along time ({method})."
        x = [float(t - (len(values) - 1) * along) for t in range(len(values))]
        return [Plot(title=title, alt=words, series=[Series(name=method, x=x, y=values)], x_label=label, y_label=adds)]
    largest = sorted(range(len(values)), key=lambda t: -abs(values[t]))[:SHOWN]
    shown = sorted(t for t in largest if abs(values[t]) >= LEAST * most)
    tokens = Tokens(
        title=title, alt=f"The inputs, each coloured by its contribution to {what} in {unit} ({method}).",
        tokens=names[: len(values)], values=values, hints=[f"{value:+.3g} {unit}" for value in values],
        low=-most, high=most, unit=unit,
    )  # fmt: skip
    bars = Bars(
        title=title, alt=f"The {len(shown)} largest attributions as bars, in the order of the input.",
        names=[labels(names)[t] for t in shown], values=[values[t] for t in shown], x_label=adds,
    )  # fmt: skip
    return [tokens, bars]


def _reading(numbers: dict[str, Any], target: Target) -> str:
    name, what, unit, _ = target.explained
    where = f"the prediction '{name}'" if target.at is None else f"the target '{name}' at position {target.at}"
    words = [f"{what} of {where} is {numbers[_key(what)]:.3f} {unit}."]
    if "integrated_gradients" in numbers:
        words.append(
            f"Against a baseline of zero vectors, where it is {numbers[_key(what) + '_baseline']:.3f}, the "
            f"largest attributions are {_listed(numbers['integrated_gradients'])}; they sum to the difference "
            f"with an error of {numbers['completeness_error']:.2%}."
        )
    if "columns" in numbers:
        words.append(f"By input: {', '.join(f'{name} {value:+.2f}' for name, value in numbers['columns'].items())}.")
    words.append(
        f"When inputs are replaced one at a time (occlusion), the most important are {_listed(numbers['occlusion'])}."
    )
    more = "more probable" if what == "log p" else "larger"
    return " ".join([*words, f"Positive: the input made it {more}; negative: less."])


def _key(what: str) -> str:
    return "log_p" if what == "log p" else "value"


def _listed(largest: list[dict[str, Any]]) -> str:
    words = [f"'{each['name']}' at {each['position']} ({each.get('nats', each.get('adds')):+.2f})" for each in largest]
    return ", ".join(words[:3]) or "none"


QUESTION = QuestionSpec(
    summary="How much does each input contribute to one prediction (integrated gradients, occlusion)?",
    config=Config,
    ask=ask,
    applies=why_memory,
    aliases=("attribution", "attributions", "integrated-gradients", "occlusion"),
)
