"""What a model's outputs mean: a loss to train by, losses to measure, and for those that can be sampled a draw.

    y [B, T, d_out]        what a model puts out
    target, mask           what should have come; the mask [B, T] is True where there is a target (None: everywhere,
                           but where the target itself says that there is none)

One file of `emissions/` is one kind of output. Tasks name theirs; `decode.rollout` draws from any `Sampled` one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from unrolled.core.config import Config

Chooser = Callable[[Tensor, Tensor, Tensor], Tensor]
"""`choose(y, history, noise) -> choice`: y [B, d_out], history [B, t, ..] of each row's choices so far, prompt
included, noise [B], or [B, n_noise] where a choice needs several uniform numbers."""


@runtime_checkable
class Emission(Protocol):
    """What outputs mean."""

    @property
    def name(self) -> str:
        """The word by which models say what they have a closed form for."""

    @property
    def d_out(self) -> int:
        """How many outputs there are at each position."""

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What training makes small, as (total, count): with smoothing, weights and whatever was asked for."""

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss of every position as figures and scores tell it; 0 where there is no target."""

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Self:
        """The same, as sure of itself as held-out targets show that it may be."""

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """Outputs [.., d_out] that mean the mixture of the outputs ys [K, .., d_out] of K models, as calibrated; the
        weights [K], or [K, ..] of each position, sum to 1. Where no outputs mean exactly that, the emission says what
        is kept."""

    def to_json(self) -> str:
        """What outputs mean, for readers without this package: `name`, `d_out`, and what was fitted."""


@runtime_checkable
class Sampled(Emission, Protocol):
    """An emission from which a sequence can be drawn, choice by choice."""

    @property
    def n_noise(self) -> int:
        """Uniform numbers that one choice needs."""

    @property
    def n_choices(self) -> int | None:
        """How many choices there are at each step; None: too many for a beam to look at each."""

    def chooser(self, options: Any) -> Chooser:
        """What draws by these options, an instance of `options`."""

    @property
    def options(self) -> type[Config]:
        """The settings of a draw."""

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        """The log-probability [B] of a choice under the outputs y [B, d_out] as they are, whatever the options."""


@runtime_checkable
class Finite(Sampled, Protocol):
    """An emission of one among finitely many choices."""

    def log_probabilities(self, y: Tensor) -> Tensor:
        """The log-probability of each choice [.., n_choices], as calibrated, in double precision."""


@runtime_checkable
class Numeric(Emission, Protocol):
    """An emission of d numbers at each position. The outputs y [.., k d] are k blocks of d, the first is the location.

    Targets are [B, T, d]; the mask may also be [B, T, d], False where a single number is missing.
    """

    @property
    def d(self) -> int:
        """How many numbers there are at each position."""

    def mean(self, y: Tensor) -> Tensor:
        """The expected numbers [.., d], which have the least squared error."""

    def median(self, y: Tensor) -> Tensor:
        """The medians [.., d], which have the least absolute error."""

    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """Outputs that mean shift + scale * the numbers, scale > 0; both broadcast to [.., d]. Differentiable."""


@runtime_checkable
class Distribution(Numeric, Sampled, Protocol):
    """A numeric emission that tells how probable every number is, each of the d by itself."""

    def quantiles(self, y: Tensor, levels: Sequence[float]) -> Tensor:
        """The smallest numbers [Q, .., d] that are not exceeded with the probabilities `levels`, between 0 and 1."""

    def cdf(self, y: Tensor, value: Tensor) -> Tensor:
        """The probabilities [.., d] that numbers are at most `value` [.., d]."""


@runtime_checkable
class Collapsed(Emission, Protocol):
    """An emission whose outputs say a shorter sequence all together."""

    def decode(self, y: Tensor, mask: Tensor, options: Any) -> list[list[Any]]:
        """What y [B, S, d_out] says, for each row the n best candidates first; `options` is a settled Decoding."""


def _beside(weights: Tensor, ys: Tensor) -> Tensor:
    """Weights [K] or [K, ..] with as many dimensions as ys [K, ..]."""
    return weights.to(ys).view(*weights.shape, *[1] * (ys.dim() - weights.dim()))


def average(ys: Tensor, weights: Tensor) -> Tensor:
    """sum_k w_k y_k of ys [K, ..] and weights [K], or [K, ..] of each position: what mixes numbers themselves."""
    return torch.tensordot(weights.to(ys), ys, dims=1) if weights.dim() == 1 else (_beside(weights, ys) * ys).sum(0)


def log_average(log_p: Tensor, weights: Tensor) -> Tensor:
    """log sum_k w_k p_k of log-probabilities [K, ..] and weights [K], or [K, ..] of each position."""
    return torch.logsumexp(log_p + _beside(weights, log_p).log(), dim=0)


class Trial(NamedTuple):
    """A small emission with targets, which `testing.check_emission` tries: the `TINY` of each file of `emissions/`."""

    emission: Emission
    target: Tensor
    mask: Tensor
