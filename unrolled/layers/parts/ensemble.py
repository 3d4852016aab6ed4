"""Several models that predict together, of every kind.

    y = mix(y_1 .. y_K; w_1 .. w_K),  the weights sum to 1

What a mixture is depends on what outputs mean, so `mix` is that of the emission (core/emission.py): of classes and
tokens the mean of their probabilities, of numbers the mean of the numbers. The state of causal models is the tuple of
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, Encoder, Selective, serial_depth
from unrolled.core.compose import least, pick
from unrolled.core.emission import Emission, Finite, average
from unrolled.core.state import State

Mix = Callable[[Tensor, Tensor], Tensor]
"""`mix(ys, weights) -> y` of outputs [K, .., D'] and weights [K]."""


@dataclass(frozen=True)
class ByEmission:
    """What an emission takes mixed outputs to mean; a task may learn a part of it later (a temperature)."""

    emission: Callable[[], Emission]

    def __call__(self, ys: Tensor, weights: Tensor) -> Tensor:
        return self.emission().mix(ys, weights)

    def log_probabilities(self, ys: Tensor) -> Tensor:
        """Of each choice, where there are finitely many."""
        emission = self.emission()
        assert isinstance(emission, Finite)
        return emission.log_probabilities(ys)


def equal(n: int) -> tuple[float, ...]:
    return (1 / n,) * n


class Together(Encoder):
    """x [B, S, ..] with mask [B, S] -> the mixture of the members' outputs [B, S', D'], and the mask of the first."""

    def __init__(self, members: Sequence[Encoder], mix: Mix = average, weights: Sequence[float] = ()) -> None:
        super().__init__()
        self.members, self.mix = nn.ModuleList(members), mix
        self.weights = tuple(weights) or equal(len(members))
        self.max_length = least(member.max_length for member in members)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        outputs = [member(x, mask) for member in self.members]
        ys = torch.stack([y for y, _ in outputs])  # [K, B, S', D']
        return self.mix(ys, ys.new_tensor(self.weights)), outputs[0][1]

    def serial_steps(self, length: int) -> int:
        """They do not wait for one another."""
        return max(serial_depth(member, length) for member in self.members)


class CausalTogether(Causal):
    """x [B, T, ..] -> the mixture of the members' outputs [B, T, D'].

    >>> from unrolled.core.compose import Each
    >>> both = CausalTogether([Each(nn.Identity()), Each(nn.ReLU())], weights=(0.25, 0.75))
    >>> both(torch.tensor([[[-4.0], [4.0]]]))[0].tolist()
    [[[-1.0], [4.0]]]
    """

    def __init__(self, members: Sequence[Causal], mix: Mix = average, weights: Sequence[float] = ()) -> None:
        super().__init__()
        self.members, self.mix = nn.ModuleList(members), mix
        self.weights = tuple(weights) or equal(len(members))
        self.d_in, self.d_out = members[0].d_in, members[0].d_out
        self.max_length = least(member.max_length for member in members)
        self.state_grows = any(member.state_grows for member in members)
        fields = [member.receptive_field for member in members]
        self.receptive_field = None if None in fields else max(field for field in fields if field is not None)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return self._mixed(lambda member, own: member(x, own), state)

    def at(self, x: Tensor, places: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Outputs at places [B, K] alone: [B, K, D']."""

        def picked(member: Any, own: State) -> tuple[Tensor, State]:
            if isinstance(member, Selective):
                return member.at(x, places, own)
            y, after = member(x, own)
            return pick(y, places), after

        return self._mixed(picked, state)

    def _mixed(self, call: Callable[[Any, State], tuple[Tensor, State]], state: State) -> tuple[Tensor, State]:
        before = (None,) * len(self.members) if state is None else state
        found = [call(member, own) for member, own in zip(self.members, before, strict=True)]
        ys = torch.stack([y for y, _ in found])  # [K, B, T, D']
        return self.mix(ys, ys.new_tensor(self.weights)), tuple(after for _, after in found)

    def serial_steps(self, length: int) -> int:
        """They do not wait for one another."""
        return max(serial_depth(member, length) for member in self.members)


class ConditionalTogether(Conditional):
    """A source is read by every member; their decoders write together."""

    def __init__(self, members: Sequence[Conditional], mix: Mix = average, weights: Sequence[float] = ()) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.decoder = CausalTogether([member.decoder for member in members], mix, weights)
        self.d_out = members[0].d_out
        self.max_source = least(member.max_source for member in members)

    def condition(self, source: Any, mask: Tensor | None) -> State:
        return tuple(cast(Conditional, member).condition(source, mask) for member in self.members)


KINDS: dict[type[nn.Module], Callable[..., Any]] = {
    Encoder: Together, Causal: CausalTogether, Conditional: ConditionalTogether
}  # fmt: skip


def kind_of(model: nn.Module) -> type[nn.Module]:
    """Encoder, Causal or Conditional: models of one kind can predict together."""
    return next(kind for kind in KINDS if isinstance(model, kind))


def together(members: Sequence[Any], mix: Mix = average, weights: Sequence[float] = ()) -> Any:
    """One model of several of a kind."""
    return KINDS[kind_of(members[0])](members, mix, weights)
