"""The contract: a sequence model is one function, `y, state = layer(x, state)`.

Three kinds of model, and nothing else: `Causal` runs along the sequence and carries a state, `Encoder` sees the whole
sequence at once, `Conditional` turns a source into the initial state of a causal decoder. `unrolled.testing` holds
the laws as checks that any layer can be put through.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core.errors import UnrolledError
from unrolled.core.state import State, clone


class Causal(nn.Module):
    """A layer that runs along the sequence: x [B, T, D] -> y [B, T, D'] and the state after the last step.

    T may be 1 (a step), 512 (a training chunk) or 0. A state of None is the initial one. Subclasses write `forward`
    for T >= 1; T = 0 is handled here, once.
    """

    receptive_field: int | None = None  # how many inputs up to t reach y[:, t]; None: the whole past
    state_grows: bool = False  # full attention: True; recurrence, convolution, windowed attention: False
    max_length: int | None = None  # learned or one-hot positions; None: any length

    def __call__(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if x.shape[1] == 0:
            return self._nothing(x, state), state
        result: tuple[Tensor, State] = super().__call__(x, state)
        return result

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        raise NotImplementedError(f"{type(self).__name__} must define forward(x, state) -> (y, state)")

    def _nothing(self, x: Tensor, state: State | None) -> Tensor:
        """The output for T = 0: shape and type come from one tick on zeros, whose values are thrown away."""
        tick = x.new_zeros(x.shape[0], 1, *x.shape[2:])
        with torch.no_grad():
            try:
                y: Tensor = super().__call__(tick, clone(state))[0]
            except (UnrolledError, ValueError):  # a state at max_length takes no tick more; a new one tells the same
                y = super().__call__(tick, None)[0]
        return y[:, :0]


class Encoder(nn.Module):
    """A layer that may look both ways, so it has no state.

    x [B, S, D] and mask [B, S] (True = real) -> y [B, S', D'] and its mask; images and strides change S. What stands
    in the padding, NaN included, changes nothing.
    """

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} must define forward(x, mask) -> (y, mask)")


class Conditional(nn.Module):
    """p(target | source): `condition` makes the decoder's initial state, then `decoder(target_in, state)`."""

    decoder: Causal

    def condition(self, source: Any, mask: Tensor | None) -> State:
        raise NotImplementedError(f"{type(self).__name__} must define condition(source, mask) -> state")


def begin(model: Causal | Conditional, source: Any = None, mask: Tensor | None = None) -> tuple[Causal, State]:
    """The causal half of a model and the state it starts from, with a source or without."""
    if isinstance(model, Conditional):
        return model.decoder, model.condition(source, mask)
    return model, None
