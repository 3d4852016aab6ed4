"""State trees: what a causal layer carries from one chunk to the next.

A state is a value: a tree of tuples, named tuples and dicts whose leaves are tensors, and EVERY leaf is
batch-first [B, ...]. `None` is the initial state of any layer. These functions are all that decoding, training and
serving ever do to a state, so they work for every model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unrolled.core.errors import UsageError

State = Any


@dataclass(frozen=True, slots=True)
class Fixed:
    """A subtree that no tick changes (an encoded source, a global condition).

    `clone`, `where` and `regroup` pass it through untouched, so it is not copied per tick; `take` and `repeat` reorder
    it like everything else.
    """

    tree: State


Leaf = Callable[..., Tensor]


def _map(leaf: Leaf, fixed: Leaf | None, state: State, *others: State) -> State:
    """Apply `leaf` to corresponding leaves, `fixed` to those inside Fixed (None: leave them as in `state`)."""
    if state is None:
        return None
    if isinstance(state, Tensor):
        return leaf(state, *others)
    if isinstance(state, Fixed):
        if fixed is None:
            return state
        return Fixed(_map(fixed, fixed, state.tree, *(o.tree for o in others)))
    if isinstance(state, dict):
        return {key: _map(leaf, fixed, value, *(o[key] for o in others)) for key, value in state.items()}
    if isinstance(state, tuple):
        parts = [_map(leaf, fixed, *columns) for columns in zip(state, *others, strict=True)]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    raise TypeError(
        f"a state is a tree of tuples, dicts, Fixed and tensors; found {type(state).__name__}. "
        "Keep numbers as tensors [B], so that rows can be reordered."
    )


def leaves(state: State) -> Iterator[Tensor]:
    """All tensors of a state, those in Fixed too, in a fixed order."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, Fixed):
        yield from leaves(state.tree)
    elif isinstance(state, dict):
        for value in state.values():
            yield from leaves(value)
    elif isinstance(state, tuple):
        for value in state:
            yield from leaves(value)
    elif state is not None:
        _map(lambda leaf: leaf, None, state)  # raises the sentence about foreign leaves


def with_leaves(state: State, found: Iterator[Tensor]) -> State:
    """The same tree with other leaves, in the order of `leaves`."""

    def another(_leaf: Tensor) -> Tensor:
        return next(found)

    return _map(another, another, state)


def in_graph(state: State, rows: int) -> bool:
    """True when a leaf belongs to a graph; a leaf that has not so many rows is refused."""
    if isinstance(state, Tensor):
        if state.dim() == 0 or state.size(0) != rows:
            raise UsageError(
                f"this state belongs to another batch: a leaf has shape {list(state.shape)}, but x has {rows} "
                "rows; select rows with state.take(s, rows)"
            )
        return state.requires_grad
    if isinstance(state, Fixed):
        return in_graph(state.tree, rows)
    found = False
    if isinstance(state, tuple):
        for part in state:
            found |= in_graph(part, rows)
    elif isinstance(state, dict):
        for part in state.values():
            found |= in_graph(part, rows)
    elif state is not None:
        _map(lambda leaf: leaf, None, state)  # raises the sentence about foreign leaves
    return found


def take(state: State, rows: Tensor) -> State:
    """The state whose row i is row `rows[i]` of this one; rows may repeat or be left out."""

    def select(leaf: Tensor) -> Tensor:
        return leaf.index_select(0, rows)

    return _map(select, select, state)


def joined(states: Sequence[State]) -> State:
    """The rows of several states below each other; apart from their rows all have the same shapes."""

    def join(*leaves: Tensor) -> Tensor:
        return torch.cat(leaves)

    return states[0] if len(states) == 1 else _map(join, join, *states)


def regroup(state: State, rows: Tensor) -> State:
    """`take` for rows that only move among the copies made by `repeat`: there Fixed is equal and stays in place."""
    return _map(lambda leaf: leaf.index_select(0, rows), None, state)


def repeat(state: State, n: int) -> State:
    """Each row n times in succession: rows 0,0,..,1,1,.. (the beams or samples of one example stand together)."""

    def spread(leaf: Tensor) -> Tensor:
        return leaf.repeat_interleave(n, dim=0)

    return _map(spread, spread, state)


def where(active: Tensor, new: State, old: State) -> State:
    """Rows of `new` where `active` [B] is True, else rows of `old`; clone `old` before the call that made `new`."""

    def choose(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(active.view(-1, *[1] * (a.dim() - 1)), a, b)

    return _map(choose, None, new, old)


def clone(state: State) -> State:
    """A copy that a later call may overwrite without harm to the original."""
    return _map(lambda leaf: leaf.clone(), None, state)


def detach(state: State) -> State:
    """The same values without their history: the cut of truncated back-propagation.

    In memory of their own, for a later call may overwrite them while the history still needs what it saved; only Fixed,
    which nobody writes into, is shared.
    """
    return _map(lambda leaf: leaf.detach().clone(), lambda leaf: leaf.detach(), state)


def zeros(state: State) -> State:
    """One row of zeros in the form of a state that may have none."""

    def empty(leaf: Tensor) -> Tensor:
        return leaf.new_zeros(1, *leaf.shape[1:])

    return _map(empty, empty, state)


def to(state: State, device: torch.device | str) -> State:
    """The state on another device."""

    def move(leaf: Tensor) -> Tensor:
        return leaf.to(device)

    return _map(move, move, state)


def nbytes(state: State) -> int:
    """Bytes held by all leaves."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(state))


def split_rows(state: State, n: int) -> State:
    """[B * n, ...] as [B, n, ...]: rows that stand together become one."""

    def split(leaf: Tensor) -> Tensor:
        return leaf.unflatten(0, (-1, n))

    return _map(split, split, state)


def join_rows(state: State) -> State:
    """[B, n, ...] as [B * n, ...]: what `split_rows` is undone by."""

    def join(leaf: Tensor) -> Tensor:
        return leaf.flatten(0, 1)

    return _map(join, join, state)
