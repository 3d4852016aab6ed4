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
        if x.size(1) == 0:  # x.shape would cost a tick more
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


def serial_depth(layer: nn.Module, length: int) -> int:
    """How many layer applications must follow one another to compute `length` positions at once, as in training.

    A recurrent layer needs `length` of them, a convolution or an attention one. A layer that knows better than the sum
    of its parts says so by a method `serial_steps(length)`.
    """
    own = getattr(layer, "serial_steps", None)
    if own is not None:
        return int(own(length))
    inside = sum(serial_depth(child, length) for child in layer.children())
    return inside or int(isinstance(layer, Causal | Encoder))


def tick_multiply_adds(layer: nn.Module, position: int) -> int:
    """Multiply-adds of the one tick that has `position` others behind it.

    A tick uses every weight of every matrix once; tables are looked up and cost nothing. A layer that does more or less
    than that (attention, which also reads what is behind it) says so by a method of this name.
    """
    own = getattr(layer, "tick_multiply_adds", None)
    if own is not None:
        return int(own(position))
    if isinstance(layer, nn.Embedding):
        return 0
    matrices = sum(weight.numel() for weight in layer.parameters(recurse=False) if weight.dim() >= 2)
    return matrices + sum(tick_multiply_adds(child, position) for child in layer.children())
