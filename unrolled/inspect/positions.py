"""The code of positions.

    r_2i^(t) = sin(t / M^(2i / p_e)),    r_2i+1^(t) = cos(t / M^(2i / p_e))        eq. (7.29), and other codes

Fig. 7.14: (a) a heat map of the code, a column per position t, counted from 1; (b) the difference between the codes of
two neighbouring positions. Of a code that is added or learned jointly, what it makes of an input of zeros is shown; of
rotary positions the cosines and sines of the angles by which queries and keys are turned.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core import config
from unrolled.core.forward import device_of
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.looking import models_where, rounded
from unrolled.layers.attention.attention import CausalSelfAttention, SelfAttention
from unrolled.layers.attention.position import Position, Rotary
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Heatmap, Plot, Series
from unrolled.runs.run import Run


class Config(config.Config):
    positions: int = Field(60, ge=2, le=4096)
    """Number of positions to draw, from the first."""
    components: int = Field(200, ge=1, le=4096)
    """Number of components of the encoding to draw."""
    at: int = Field(50, ge=1, le=100_000)
    """The position, counted from 1, to compare with the next one."""


def applies(run: Run) -> str | None:
    if code_of(run.model, 2) is not None:
        return None
    placed = models_where(lambda body, _: code_of(body, 2) is not None)
    return f"this {run.config.model} has no position encoding; models that can have one: {', '.join(placed)}"


def ask(run: Run, value: Any, config: Config) -> Answer:  # noqa: ARG001 (positions are the same for every input)
    found = code_of(run.model, max(config.positions, config.at + 1))
    assert found is not None
    kind, code = found  # [T, P]
    T = len(code)
    at = min(config.at, T - 1)  # a table may be shorter
    shown = code[: config.positions, : config.components]
    difference = code[at] - code[at - 1] if T > 1 else torch.zeros_like(code[0])  # [P]
    steps = (code[1:] - code[:-1]).norm(dim=1)  # [T - 1]
    apart = {str(k): float((code[k:] - code[:-k]).norm(dim=1).mean()) for k in (1, 2, 4, 8, 16, 32) if k < T}
    figures = {"kind": kind, "width": code.shape[1], "positions": T, "compared": [at, at + 1], "distance_by_lag": apart}
    largest = float(shown.abs().max())
    heat = Heatmap(
        title=f"Encoding of positions 1 to {len(shown)} ({kind})", values=rounded(shown.T), low=-largest, high=largest,
        alt="One column per position, one row per component of its encoding; the first components change fastest.",
        columns=[str(t + 1) for t in range(len(shown))], rows=[str(j) for j in range(shown.shape[1])],
        x_label="position", y_label="component", scale="diverging",
    )  # fmt: skip
    line = Plot(
        title=f"Difference between positions {at + 1} and {at}", x_label="component", y_label="difference",
        alt="The difference of two neighbouring positions, component by component.",
        series=[Series(name="difference", x=[float(j) for j in range(code.shape[1])], y=rounded(difference))],
    )  # fmt: skip
    return Answer(
        _reading(kind, difference, steps, at), figures, {"code": code, "difference": difference}, [heat, line]
    )


@torch.no_grad()
def code_of(model: nn.Module, n: int) -> tuple[str, Tensor] | None:
    """The kind and the code [T, P] of the first n positions, or of as many as there are; None: no positions."""
    for module in model.modules():
        if isinstance(module, Position):
            return type(module).__name__, additive(module, min(n, module.max_length or n))
        if isinstance(module, CausalSelfAttention | SelfAttention) and module.rotary is not None:
            return "Rotary", turned(module.rotary, module.heads.d_key, n)
    return None


def additive(position: Position, n: int) -> Tensor:
    """What a code appends; or, of one that changes the input itself, what it makes of zeros: [n, P]."""
    device = device_of(position)
    at, x = torch.arange(n, device=device), torch.linspace(1, 2, position.d_in, device=device).expand(1, n, -1)
    if torch.equal(position(x, at)[..., : position.d_in], x):
        return position(x, at)[0, :, position.d_in :].float().cpu()
    return position(torch.zeros_like(x), at)[0].float().cpu()


def turned(rotary: Rotary, width: int, n: int) -> Tensor:
    """cos w and sin w of the angles of each position, what (1, .., 1, 0, .., 0) is turned to: [n, m]."""
    z = torch.cat([torch.ones(width // 2), torch.zeros(width // 2)]).expand(1, 1, n, -1)
    cos, sin = rotary(z, torch.arange(n))[0, 0].chunk(2, dim=-1)  # [n, m/2] each
    return torch.stack([cos, sin], dim=-1).flatten(1)


def _reading(kind: str, difference: Tensor, steps: Tensor, at: int) -> str:
    moved = int((difference.abs() > 0.1 * difference.abs().max()).sum())
    order = (
        " In a sinusoidal encoding the fast components come first: they distinguish neighbours, the slow "
        "ones distant positions."
    )
    return (
        f"Each column is the encoding of one position ({kind}). Neighbours are {float(steps.mean()):.2g} apart "
        f"on average; from position {at} to {at + 1}, {moved} of {len(difference)} components move by more than "
        f"a tenth of the largest move.{order if kind.startswith(('Sinusoid', 'Rotary')) else ''}"
    )


QUESTION = QuestionSpec(
    summary="How does the model encode the position of a token?", config=Config, ask=ask, applies=applies
)
