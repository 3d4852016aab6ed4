"""Texts that are written together: rows join a batch and leave it at any tick.

Every row has its own prompt, settings and noise, which is a function of (seed, the row's own number, tick), so it
samples the same alone or beside others. Rows whose states have the same shapes take one step together, wherever each of
them stands; the others, such as those whose states have grown to different lengths, take steps of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.finite import require_finite
from unrolled.core.state import State
from unrolled.decode.choose import log_probabilities, make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import Step
from unrolled.decode.text import Begun


class Token(NamedTuple):
    """One token of a row."""

    token: int
    log_p: float  # under the model as it is
    top: list[tuple[int, float]]  # the most probable tokens in its place
    last: bool  # whether the row ends with it
    stopped: bool  # whether it is a stop token


class Row:
    """A text that is being written."""

    def __init__(
        self, begun: Begun, decoding: Decoding, stops: Sequence[int], never: Sequence[int], number: int, top: int = 0
    ) -> None:
        """By a decoding that is settled; `top` alternatives are listed for each token."""
        assert decoding.max_tokens is not None
        self.begun, self.decoding, self.top = begun, decoding, top
        self.history: list[int] = begun.prompt[0].tolist()
        self.left = decoding.max_tokens
        self.stops = frozenset(stops)
        self.noise = Noise(decoding.seed, torch.tensor([number]))
        self.chooser = make_chooser(decoding, never)
        self._alike = (decoding.temperature, decoding.top_k, decoding.top_p, decoding.repetition_penalty, tuple(never))

    def alike(self) -> tuple[Any, ...]:
        """Rows of which this is equal are chosen for at once; a history is looked at only where it is penalised."""
        return (*self._alike, len(self.history) if self.decoding.repetition_penalty != 1 else 0)


class _Group:
    """Rows that take their steps together."""

    def __init__(self, rows: list[Row], y: Tensor, state: State, step: Step) -> None:
        self.rows, self.y, self.state, self.step = rows, y, state, step  # y [B, V]

    def shape(self) -> tuple[Any, ...]:
        return (id(self.step), *((leaf.shape[1:], leaf.dtype) for leaf in tree.leaves(self.state)))


class Together:
    """The texts that are being written now."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []

    def __len__(self) -> int:
        return sum(len(group.rows) for group in self._groups)

    @torch.no_grad()
    def join(self, row: Row) -> Tensor:
        """Read the prompt of a row, which takes part from now on; the outputs after each of its tokens [P, V]."""
        y, state = row.begun.step(row.begun.prompt, row.begun.state)
        self._groups.append(_Group([row], y[:, -1], state, row.begun.step))
        return y[0]

    def leave(self, rows: Sequence[Row]) -> None:
        """Rows that are no longer wanted."""
        for group in self._groups:
            _keep(group, [i for i, row in enumerate(group.rows) if row not in rows])
        self._groups = [group for group in self._groups if group.rows]

    @torch.no_grad()
    def tick(self) -> list[tuple[Row, Token]]:
        """The next token of every row."""
        told = [each for group in self._groups for each in _chosen(group)]
        for group in self._groups:
            ended = {id(row) for row, token in told if token.last}
            _keep(group, [i for i, row in enumerate(group.rows) if id(row) not in ended])
        self._groups = _merged([group for group in self._groups if group.rows])
        for group in self._groups:
            tokens = torch.tensor([[row.history[-1]] for row in group.rows], device=group.y.device)
            y, group.state = group.step(tokens, group.state)  # [B, 1, V]
            group.y = y[:, -1]
        return told


def _chosen(group: _Group) -> list[tuple[Row, Token]]:
    """One token for each row of a group, which is added to its history."""
    log_p, tokens = log_probabilities(group.y), [0] * len(group.rows)
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(group.rows):
        kinds.setdefault(row.alike(), []).append(i)
    for places in kinds.values():
        first = group.rows[places[0]]
        noise = torch.cat([group.rows[i].noise(len(group.rows[i].history)) for i in places])
        looked = first.decoding.repetition_penalty != 1
        history = torch.tensor([group.rows[i].history if looked else [] for i in places], device=group.y.device)
        y = group.y if len(places) == len(group.rows) else group.y[places]
        for i, token in zip(places, first.chooser(y, history.long(), noise).tolist()):
            tokens[i] = token
    own = log_p.gather(1, torch.tensor(tokens, device=log_p.device)[:, None])[:, 0].tolist()
    require_finite(own)
    return [(row, _told(row, tokens[i], own[i], log_p[i])) for i, row in enumerate(group.rows)]


def _told(row: Row, token: int, own: float, log_p: Tensor) -> Token:
    row.history.append(token)
    row.left -= 1
    stopped = token in row.stops
    return Token(token, own, likeliest(log_p, row.top), stopped or row.left == 0, stopped)


def likeliest(log_p: Tensor, n: int) -> list[tuple[int, float]]:
    """The n most probable tokens of log-probabilities [V]."""
    if n == 0:
        return []
    best = log_p.topk(min(n, len(log_p)))
    return [*zip(best.indices.tolist(), best.values.tolist())]


def _keep(group: _Group, places: list[int]) -> None:
    if len(places) == len(group.rows):
        return
    group.rows = [group.rows[i] for i in places]
    if places:
        rows = torch.tensor(places, device=group.y.device)
        group.y, group.state = group.y[rows], tree.take(group.state, rows)


def _merged(groups: list[_Group]) -> list[_Group]:
    """Groups of equal shapes as one."""
    if len(groups) < 2:
        return groups
    alike: dict[tuple[Any, ...], list[_Group]] = {}
    for group in groups:
        alike.setdefault(group.shape(), []).append(group)
    return [
        same[0]
        if len(same) == 1
        else _Group(
            [row for each in same for row in each.rows],
            torch.cat([each.y for each in same]),
            tree.joined([each.state for each in same]),
            same[0].step,
        )
        for same in alike.values()
    ]
