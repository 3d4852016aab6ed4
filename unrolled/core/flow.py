"""How a task reads a stream: row by row, by one causal layer whose state is all that is remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.state import State


@dataclass(frozen=True)
class Flow:
    """A trained model along a stream.

    Either rows are read and then predicted for: `told(y_t, x_t)`, `delay` ticks late. Or rows are what is predicted, so
    something stands before the first (`first`): `told(y_{t-1}, x_t)` is how probable x_t was.
    """

    layer: Causal
    read: Callable[[Any, str], Tensor]  # a row and its place -> [1, n, ..], the n inputs that it is
    told: Callable[[Tensor, Tensor], dict[str, Any]]  # y [D'] and x [..] of a tick -> its result
    line: Callable[[str, str], Any]  # a line of text and its place -> a row; None: a series ends with it
    blank: Tensor  # [1, 1, ..] an input that says nothing
    state: State | None = None  # before the first tick
    delay: int = 0  # ticks
    first: Tensor | None = None  # [1, 1, ..] what is read before the first row; None: rows are predicted for
    onward: Callable[[Tensor, State], dict[str, Any]] | None = None
    """x [1, 1, ..] of a tick and the state before it (a copy) -> its result, where that takes more than one output:
    what a model makes of its own draws from there on. Instead of `told`."""
    last: Tensor | None = None  # [1, 1, ..] what is predicted behind the last row; None: nothing
