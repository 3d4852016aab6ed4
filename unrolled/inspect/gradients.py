"""The gradient on its way back through time.

    zeta_t = d C_T / d h_t = (d h_{t+1} / d h_t)^T .. (d h_T / d h_{T-1})^T zeta_T          unrolled (7.6)
    linear cell: zeta_t = (W_hh^T)^(T-t) zeta_T                                             eq. (7.12)
    share before T_0 = sum_{t < T_0} |zeta_t| / sum_t |zeta_t|                              what (7.13) leaves out

A model that reads a whole input before it answers hands no state on; of it |d f / d x_t| is shown, f the
log-probability of the class that it says (or the number).

C_T is the loss of one target, T its position, h_t the whole state that the model carries on after x_t: of a recurrent
layer its cell state, of a convolution the inputs it still needs, of attention its keys and values. The state after T
reaches no output up to T, so the curve ends at T - 1. Liquet, Moka & Nazarathy (2024), section 7.2; h_t = alpha h_{t-1}
+ x_t with d h_t / d x_0 = alpha^t is the example of Krähenbühl & Wu (2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core import config
from unrolled.core import state as tree
from unrolled.core.causal import Encoder
from unrolled.core.errors import UsageError
from unrolled.core.inspection import QuestionSpec
from unrolled.core.state import State
from unrolled.inspect.tools.dependence import by_gradient, norm
from unrolled.inspect.tools.example import Target, loss_at, pick_target, target_name, target_of
from unrolled.inspect.tools.looking import look_at_inputs
from unrolled.inspect.tools.memories import why_memory
from unrolled.inspect.tools.opened import Opened, flows, open_model, precise, why_closed
from unrolled.layers.recurrent.cells import Cell
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Plot, Series
from unrolled.runs.run import Run

CHANGED = 10.0  # a gradient that becomes so many times smaller or larger vanishes or explodes
LARGEST = 2048  # rows of a recurrent matrix whose eigenvalues are computed


class Config(config.Config):
    at: int | None = Field(None, ge=0)
    """Position of the target whose loss is back-propagated (T); none: the last."""
    t_0: int | None = Field(None, ge=1)
    """The position before which the share of the gradient is computed (T_0); none: the middle."""
    length: int = Field(128, ge=2)
    """Maximum number of input positions to read."""
    directions: int = Field(32, ge=1)
    """Number of output directions in which d y_T / d x_t is measured; the output width gives exact norms."""


def applies(run: Run) -> str | None:
    return why_memory(run) or why_closed(run.model, run.task.ports().d_in is not None)


def state_gradients(opened: Opened, ticks: int, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """|d loss / d h_t| for t = 0 .. ticks - 2, where `loss` is a function of the outputs y [1, ticks, D'].

    The model runs tick by tick, and every number of the state it hands on counts, but for constants (`Fixed`).
    """
    norms = torch.zeros(ticks, dtype=torch.float64)
    vectors, state, outputs = opened.vectors, opened.state, []
    for t in range(ticks):
        y, state = opened.body(vectors[:, t : t + 1], state)
        outputs.append(y)
        state = _watched(state, norms, t)
    torch.autograd.grad(loss(torch.cat(outputs, dim=1)), vectors, allow_unused=True)
    return norms[:-1]


def _watched(state: State, norms: Tensor, t: int) -> State:
    """A copy of a state that adds to norms[t] when the gradient passes it on its way back."""

    def add(gradient: Tensor) -> None:
        norms[t] = torch.hypot(norms[t], norm(gradient.double().flatten(), 0))

    copied = tree.clone(state)
    for new, old in zip(tree.leaves(copied), tree.leaves(state), strict=True):
        if new is not old and new.requires_grad:  # constants are not copied
            new.register_hook(add)
    return copied


class Fit(NamedTuple):
    """|gradient| ~ rate^(T - t)."""

    rate: float | None  # per step back; None: too few positions that anything reaches
    verdict: str


def fit_rate(norms: Tensor) -> Fit:
    """Least squares through the logarithms of the norms that are not zero, oldest position first.

    >>> fit_rate(0.5 ** torch.arange(9, 0, -1.0))
    Fit(rate=0.5, verdict='vanishes')
    """
    reached = norms > 0
    n = int(reached.sum())
    if n < 3:
        return Fit(None, "no memory" if n == 0 else "too short to tell")
    back = torch.arange(len(norms), 0, -1, dtype=torch.float64)[reached]
    logs = norms.double()[reached].log()
    centred = back - back.mean()
    slope = float((centred * logs).sum() / centred.square().sum())
    change = slope * float(back.max() - back.min())
    verdict = "vanishes" if change < -math.log(CHANGED) else "explodes" if change > math.log(CHANGED) else "is carried"
    return Fit(round(math.exp(max(min(slope, 700.0), -700.0)), 12), verdict)


def spectral_radii(model: nn.Module) -> dict[str, float]:
    """max |eigenvalue| of every recurrent matrix; the matrix of a gated cell has a square block for each gate."""
    found = {}
    for name, cell in model.named_modules():
        W = cell.recurrent_matrix() if isinstance(cell, Cell) else None
        if not isinstance(cell, Cell) or W is None or W.shape[1] > LARGEST or W.shape[0] % W.shape[1]:
            continue
        blocks = W.detach().double().cpu().split(W.shape[1])
        words = list(cell.gates(W.new_zeros(1, cell.input_size), W.new_zeros(1, cell.state_size)))
        words = [f" {word}" for word in words] if len(words) == len(blocks) else [f" {i}" for i in range(len(blocks))]
        for word, block in zip(words if len(blocks) > 1 else [""], blocks, strict=True):
            found[f"{name or 'cell'}{word}"] = float(torch.linalg.eigvals(block).abs().max())
    return found


def ask(run: Run, value: Any, config: Config) -> Answer:
    look = look_at_inputs(run, value, config.length)
    batch, left_out = look.batch.to("cpu"), look.left_out
    opened = open_model(precise(look.model), batch)
    if not flows(opened):
        raise UsageError("the outputs of this model have no gradients with respect to its inputs")
    with torch.no_grad():
        y = opened.body(opened.vectors, opened.state)[0]
    if isinstance(look.model, Encoder):
        return _of_inputs(run, opened, target_of(run.task, y, batch, config.at), config, left_out)
    if run.task.ports().answers == "horizon":
        found = target_of(run.task, y, batch, config.at).explained
        T, target, what, loss = batch.x.shape[1] - 1, found.name, "forecast", lambda y: found.of(y).sum()
    else:
        T = pick_target(run.task, y, batch, config.at)
        target, what, loss = target_name(run.task, batch, T), "loss", lambda y: loss_at(run.task, y, batch, T)
    states = state_gradients(opened, T + 1, loss)  # [T]
    inputs = by_gradient(opened, [T], config.directions)[0, : T + 1]  # [T + 1]
    fit, t_0 = fit_rate(states), (T + 1) // 2 if config.t_0 is None else config.t_0
    share = float(states[:t_0].sum() / states.sum()) if bool(states.sum() > 0) else None
    numbers = {
        "position": T, "target": target, "rate": fit.rate, "verdict": fit.verdict, "t_0": t_0, "share_before": share,
        "half_after": _half_after(fit.rate), "spectral_radius": spectral_radii(run.model),
    }  # fmt: skip
    plot = Plot(
        title=f"Gradient of the target '{target}' at position {T}",
        alt=f"Gradient norm on a log scale against the position; going back in time it {fit.verdict}.",
        series=[_series(f"d {what} / d state", states), _series("d output / d input", inputs)],
        x_label="position t", y_label="gradient norm", log_y=True,
    )  # fmt: skip
    return Answer(_reading(numbers) + left_out, numbers, {"state": states, "input": inputs}, [plot])


def _of_inputs(run: Run, opened: Opened, target: Target, config: Config, left_out: str) -> Answer:
    """Where no state is handed on: the gradient at each input."""
    name, what, _, f = target.explained
    (gradient,) = torch.autograd.grad(f(opened.body(opened.vectors, None)[0]).sum(), opened.vectors)
    inputs = norm(gradient[0], -1)  # [T]
    T = len(inputs)
    t_0 = T // 2 if config.t_0 is None else config.t_0
    share = float(inputs[:t_0].sum() / inputs.sum()) if bool(inputs.sum() > 0) else None
    most = int(inputs.argmax())
    numbers = {
        "position": target.at, "target": name, "t_0": t_0, "share_before": share, "largest_at": most,
        "largest": float(inputs[most]), "spectral_radius": spectral_radii(run.model),
    }  # fmt: skip
    plot = Plot(
        title=f"Gradient of {what} of '{name}'", alt=f"Its norm at each input on a log scale; largest at {most}.",
        series=[_series(f"d {what} / d input", inputs)], x_label="position t", y_label="gradient norm",
        log_y=True,
    )  # fmt: skip
    reading = (
        "This model reads the whole input before it predicts, so there is no state to propagate through: the "
        f"gradient of {what} of '{name}' is taken at each input. It is largest at position {most}"
    )
    if share is not None:
        reading += f", and {share:.1%} of it is before position {t_0}"
    return Answer(f"{reading}.{left_out}", numbers, {"input": inputs}, [plot])


def _series(name: str, norms: Tensor) -> Series:
    """Zeros have no place on a log scale and are left out."""
    return Series(name=name, x=list(range(len(norms))), y=[v if v > 0 else None for v in norms.tolist()])


def _half_after(rate: float | None) -> float | None:
    return math.log(2) / -math.log(rate) if rate is not None and 0 < rate < 1 else None


def _reading(numbers: dict[str, Any]) -> str:
    rate, verdict, radii = numbers["rate"], numbers["verdict"], numbers["spectral_radius"]
    if verdict == "no memory":
        return "No gradient reaches any earlier state: nothing that this model remembers affects the target."
    if rate is None:
        words = "The gradient reaches fewer than three earlier states, too few to fit a rate."
    else:
        words = f"Each step back multiplies the gradient by {rate:.3g} (fitted): over this input it {verdict}"
        half = numbers["half_after"]
        words += f", with a half-life of {half:.1f} steps." if half and verdict == "vanishes" else "."
    if numbers["share_before"] is not None:
        share = numbers["share_before"]
        percent = f"{share:.1%}" if share >= 0.001 else "Less than 0.1%"
        words += f" {percent} of it is before position {numbers['t_0']}."
    if radii:
        words += f" Spectral radius of {_named(radii)}: below 1 a linear cell forgets, above 1 it explodes."
    return words + (
        " On the log scale, a straight line that falls to the left is a vanishing gradient, one that rises "
        "an exploding gradient."
    )


def _named(radii: dict[str, float]) -> str:
    return ", ".join(f"{name} {radius:.3g}" for name, radius in radii.items())


QUESTION = QuestionSpec(
    summary="How far back does the gradient reach, and does it vanish or explode on the way?",
    config=Config,
    ask=ask,
    applies=applies,
)
