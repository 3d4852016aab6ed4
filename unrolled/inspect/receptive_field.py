"""The receptive field, measured and claimed.

    measured R = 1 + max { k : y_t depends on x_{t-k} }        claimed R = model.receptive_field, none: the whole past
    effective  = the fewest lags that hold a given share of sum_k max |d y_t / d x_{t-k}|

The input is the example, repeated until it is longer than the claim, and variants of it in random order; the largest
dependence over all of them counts, and only exact zeros are nothing. Trained models often use less than they can reach.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.batch import Batch
from unrolled.core.causal import Encoder, decoder_of
from unrolled.core.inspection import QuestionSpec
from unrolled.core.task import Model
from unrolled.inspect.tools.dependence import Dependence, dependence
from unrolled.inspect.tools.looking import look_at
from unrolled.inspect.tools.opened import by_position, longest
from unrolled.layers.parts.assembled import Reader
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Plot, Series
from unrolled.runs.run import Run

BEYOND = 16  # positions more than the claim
UNCLAIMED = 256  # positions where the whole past is claimed


class Config(config.Config):
    length: int = Field(1024, ge=2)
    """Maximum number of positions to read."""
    inputs: int = Field(3, ge=1)
    """Number of inputs: the example as it is, and in random orders."""
    directions: int = Field(4, ge=1)
    """Number of output directions in which the derivative is measured."""
    share: float = Field(0.99, gt=0, lt=1)
    """Share of the dependence that the effective receptive field covers."""


def applies(run: Run) -> str | None:
    body = by_position(run.model)
    if not isinstance(body, Encoder) or _is_causal(body):
        return None
    return "it reads the whole input before it predicts, so there are no steps back to count"


def _is_causal(body: Encoder) -> bool:
    return isinstance(body, Reader) and body.causal() is not None


def claimed(body: Model) -> int | None:
    """How many inputs a model says that an output depends on; None: the whole past."""
    live = body.causal() if isinstance(body, Reader) else body
    decoder: Any = decoder_of(live)  # type: ignore[arg-type]
    field: int | None = decoder.receptive_field
    return field


def longer(batch: Batch, T: int) -> Batch:
    """The example repeated to T positions; what is to be predicted plays no part here."""
    x = batch.x.repeat(1, -(-T // batch.x.shape[1]), *[1] * (batch.x.dim() - 2))[:, :T]  # [1, T] or [1, T, D]
    return replace(batch, x=x, mask=None, targets={}, target_masks={})


def reach(model: Model, batch: Batch, inputs: int, directions: int) -> tuple[Tensor, Dependence]:
    """The largest dependence of an output on the input k steps before it, over several inputs: [T] by k."""
    T = batch.x.shape[1]
    by_lag = torch.zeros(T, dtype=torch.float64)
    for number in range(inputs):
        order = torch.randperm(T, generator=torch.Generator().manual_seed(number)) if number else torch.arange(T)
        found = dependence(model, replace(batch, x=batch.x[:, order]), outputs := _outputs(T), directions, seed=number)
        for t, row in zip(outputs, found.strength, strict=True):
            by_lag[: t + 1] = torch.maximum(by_lag[: t + 1], row[: t + 1].flip(0))
    return by_lag, found


def _outputs(T: int) -> list[int]:
    """The last output and one before it, as a unit may be dead at one of them."""
    return sorted({max(T - BEYOND // 2, 0), T - 1})


def effective(by_lag: Tensor, share: float) -> int:
    """The fewest lags, from 0 on, that hold `share` of the sum.

    >>> effective(torch.tensor([8.0, 1.0, 1.0, 0.0]), 0.85)
    2
    """
    total = by_lag.sum()
    return int((by_lag.cumsum(0) < share * total).sum()) + 1 if total > 0 else 0


def ask(run: Run, value: Any, config: Config) -> Answer:
    model = by_position(run.model)
    claim = claimed(model)
    T = min(config.length, longest(model) or config.length, UNCLAIMED if claim is None else claim + BEYOND)
    batch = look_at(run, value, config.length).batch.to("cpu")
    by_lag, found = reach(model, longer(batch, T), config.inputs, config.directions)
    reached = torch.nonzero(by_lag)
    measured = int(reached.max()) + 1 if len(reached) else 0
    numbers: dict[str, Any] = {
        "claimed": claim, "measured": measured, "effective": effective(by_lag, config.share), "share": config.share,
        "positions": T, "by": found.by, "verdict": verdict(claim, measured, T),
    }  # fmt: skip
    series = [Series(name="largest dependence", x=list(range(T)), y=[v if v > 0 else None for v in by_lag.tolist()])]
    if claim is not None and 0 < claim <= T and measured:
        low = float(by_lag[by_lag > 0].min())
        edge = [float(claim - 1)] * 2
        series.append(Series(name="claimed receptive field", x=edge, y=[low, float(by_lag.max())], style="dashed"))
    plot = Plot(
        title="Dependence on the input k steps back",
        alt=f"Dependence on a log scale against the lag; the last {measured} inputs reach an output.",
        series=series, x_label="steps back k", y_label=f"dependence (by {found.by})", log_y=True,
    )  # fmt: skip
    return Answer(_reading(numbers), numbers, {"by_lag": by_lag}, [plot])


def verdict(claim: int | None, measured: int, T: int) -> str:
    """agrees, smaller, larger (a bug), or cut where the input could not be long enough to tell."""
    if claim is None:
        return "agrees" if measured == T else "smaller"
    if measured > claim:
        return "larger"
    if measured == claim:
        return "agrees"
    return "cut" if measured == T else "smaller"


def _reading(numbers: dict[str, Any]) -> str:
    claim, measured, T = numbers["claimed"], numbers["measured"], numbers["positions"]
    claimed = "the whole past" if claim is None else f"{claim} input{'s' * (claim != 1)}"
    reach = "reaches" if measured == 1 else "reach"
    lost = "earlier inputs are lost" if claim is None else "its receptive field could be larger"
    all_of = "all" if claim is None else "exactly"
    words = {
        "agrees": f"The model claims {claimed}, and {all_of} {measured} {reach} an output",
        "smaller": f"The model claims {claimed}, but only {measured} of {T} {reach} an output: {lost}",
        "larger": f"The model claims {claimed}, but {measured} {reach} an output: the claim is wrong, which is a bug",
        "cut": f"The model claims {claimed}; all {T} that were read reach an output, and more were not read",
    }[numbers["verdict"]]
    return (
        f"{words} (measured by {numbers['by']}). The nearest {numbers['effective']} account for "
        f"{numbers['share']:.0%} of the dependence; if it falls steeply on the log scale, the model uses little "
        "more than that."
    )


QUESTION = QuestionSpec(
    summary="How large is the measured receptive field, compared with what the model claims?",
    config=Config,
    ask=ask,
    applies=applies,
    aliases=("context", "reach"),
)
