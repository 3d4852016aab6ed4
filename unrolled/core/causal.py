"""The contract: a sequence model is one function, `y, state = layer(x, state)`.

Three kinds of model, and nothing else: `Causal` runs along the sequence and carries a state, `Encoder` sees the whole
sequence at once, `Conditional` turns a source into the initial state of a causal decoder. `unrolled.testing` holds
the laws as checks that any layer can be put through.
"""

from __future__ import annotations

from typing import Any, Protocol, overload, runtime_checkable

import torch
from torch import Tensor, nn

from unrolled.core.errors import UnrolledError, UsageError
from unrolled.core.state import State, detach, in_graph, take, zeros


class Causal(nn.Module):
    """A layer that runs along the sequence: x [B, T, D] -> y [B, T, D'] and the state after the last step.

    T may be 1 (a step), 512 (a training chunk) or 0, and so may B. A state of None is the initial one. Subclasses write
    `forward` for T, B >= 1. What concerns every layer is handled here, once: nothing to do (T = 0 or B = 0), an x of
    another width than d_in, a state of another batch, an output that is the input itself, and a state that belongs to
    a graph while gradients are off: `forward` then gets a copy, so that it may work in the memory of any state given.
    """

    d_in: int | None = None  # the width of x; None: any, or tokens
    d_out: int = 0  # the width of y, which a body must say; 0: not said

    receptive_field: int | None = None  # how many inputs up to t reach y[:, t]; None: the whole past
    receptive_field_tight: bool | None = None  # whether the furthest does reach; None: unless it must be fitted first
    state_grows: bool = False  # full attention: True; recurrence, convolution, windowed attention: False
    max_length: int | None = None  # learned or one-hot positions; None: any length

    def __call__(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        shape = x.shape
        if 0 in shape:
            return self._empty(x, state)
        if self.d_in is not None and len(shape) == 3 and shape[2] != self.d_in:
            raise UsageError(wrong_width(self, x, self.d_in))
        if state is not None:
            state = self._received(state, shape[0])
        result: tuple[Tensor, State] = super().__call__(x, state)
        if result[0] is x:
            return x.clone(), result[1]
        return result

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        raise NotImplementedError(f"{type(self).__name__} must define forward(x, state) -> (y, state)")

    def _received(self, state: State, rows: int) -> State:
        """The state as `forward` gets it."""
        if in_graph(state, rows) and not torch.is_grad_enabled():
            return detach(state)
        return state

    def _empty(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Without ticks or rows: shapes and types come from zeros in their place, whose results are cut off again."""
        if x.shape[1] == 0:
            return self._nothing(x, state), state
        if x.shape[0] > 0:  # vectors without entries
            result: tuple[Tensor, State] = super().__call__(x, state)
            return result
        row = x.new_zeros(1, *x.shape[1:])
        y, after = self(torch.cat([x, row]), None if state is None else zeros(state))
        return y[:0], take(after, torch.arange(0, device=x.device))

    def _nothing(self, x: Tensor, state: State | None) -> Tensor:
        """The output for T = 0; a state at max_length takes no tick more, but one at the start tells the same."""
        tick = x.new_zeros(1, 1, *x.shape[2:])
        first = torch.zeros(min(len(x), 1), dtype=torch.long, device=x.device)
        starts = [None] if state is None else [take(state, first), None, zeros(state)][len(x) == 0 :]
        for start in starts:
            try:
                with torch.no_grad():
                    y: Tensor = self(tick, start)[0]
            except (UnrolledError, ValueError):
                if start is starts[-1]:
                    raise
            else:
                break
        return y.new_empty(len(x), 0, *y.shape[2:])


@runtime_checkable
class Selective(Protocol):
    """A causal layer that computes less where y is asked for at some positions alone; an encoder has a mask instead of
    the state."""

    def at(self, x: Tensor, places: Tensor, state: State | None = None) -> tuple[Tensor, State]: ...


def wrong_width(layer: nn.Module, x: Tensor, width: int) -> str:
    """The sentence about an input that no weight fits."""
    return f"{type(layer).__name__} expects an input of width {width}, found x of shape {list(x.shape)}"


class Encoder(nn.Module):
    """A layer that may look both ways, so it has no state.

    x [B, S, D] and mask [B, S] (True = real) -> y [B, S', D'] and its mask; images and strides change S. What stands
    in the padding, NaN included, changes nothing. As for causal layers, B = 0, an x of another width than d_in, a mask
    of another shape and an output that is the input itself are handled here. Models of bags read x [B, I, T] or
    [B, I, T, D] with a mask [B, I, T].
    """

    d_in: int | None = None  # the width of x; None: any, or tokens
    d_out: int = 0  # the width of y, which a body must say; 0: not said
    max_length: int | None = None  # learned or one-hot positions; None: any length

    def __call__(self, x: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
        if self.d_in is not None and x.dim() == 3 and x.size(2) != self.d_in:
            raise UsageError(wrong_width(self, x, self.d_in))
        in_bags = x.dim() - x.is_floating_point() == 3  # [B, I, T], or numbers [B, I, T, D]
        if mask is not None and mask.shape != x.shape[:2] and not (in_bags and mask.shape == x.shape[:3]):
            raise UsageError(f"the mask has shape {list(mask.shape)}, which does not match x of shape {list(x.shape)}")
        if x.shape[0] == 0:
            row = x.new_zeros(1, *x.shape[1:]), mask.new_ones(1, *mask.shape[1:])
            y, out = self(torch.cat([x, row[0]]), torch.cat([mask, row[1]]))
            return y[:0], out[:0]
        result: tuple[Tensor, Tensor] = super().__call__(x, mask)
        if result[0] is x:
            return x.clone(), result[1]
        return result

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError(f"{type(self).__name__} must define forward(x, mask) -> (y, mask)")


class Conditional(nn.Module):
    """p(target | source): `condition` makes the decoder's initial state, then `decoder(target_in, state)`."""

    decoder: Causal
    d_out: int = 0  # of what the decoder gives; 0: not said
    max_source: int | None = None  # positions of a source that it can read; None: any number

    def condition(self, source: Any, mask: Tensor | None) -> State:
        raise NotImplementedError(f"{type(self).__name__} must define condition(source, mask) -> state")


@overload
def decoder_of(model: Causal | Conditional) -> Causal: ...
@overload
def decoder_of(model: Encoder) -> Encoder: ...
def decoder_of(model: Causal | Conditional | Encoder) -> Causal | Encoder:
    """What reads the input: the decoder of a conditional model, any other model itself."""
    return model.decoder if isinstance(model, Conditional) else model


def begin(model: Causal | Conditional, source: Any = None, mask: Tensor | None = None) -> tuple[Causal, State]:
    """The causal half of a model and the state it starts from, with a source or without."""
    return decoder_of(model), model.condition(source, mask) if isinstance(model, Conditional) else None


@runtime_checkable
class Counted(Protocol):
    """A layer that knows better than the sum of its parts how many applications must follow one another."""

    def serial_steps(self, length: int) -> int: ...


@runtime_checkable
class Costed(Protocol):
    """A layer whose tick does more or less than use every weight of every matrix once."""

    def tick_multiply_adds(self, position: int) -> int: ...


def serial_depth(layer: nn.Module, length: int) -> int:
    """How many layer applications must follow one another to compute `length` positions at once, as in training.

    A recurrent layer needs `length` of them, a convolution or an attention one; a layer may be `Counted`.
    """
    if isinstance(layer, Counted):
        return layer.serial_steps(length)
    inside = sum(serial_depth(child, length) for child in layer.children())
    return inside or int(isinstance(layer, Causal | Encoder))


def tick_multiply_adds(layer: nn.Module, position: int) -> int:
    """Multiply-adds of the one tick that has `position` others behind it.

    A tick uses every weight of every matrix once; tables are looked up and cost nothing. A layer that does more or less
    than that (attention, which also reads what is behind it) is `Costed`.
    """
    if isinstance(layer, Costed):
        return layer.tick_multiply_adds(position)
    if isinstance(layer, nn.Embedding):
        return 0
    matrices = sum(weight.numel() for weight in layer.parameters(recurse=False) if weight.dim() >= 2)
    return matrices + sum(tick_multiply_adds(child, position) for child in layer.children())
