"""Texts that are written together: rows join a batch and leave it at any tick.

Every row has its own prompt, settings and noise, which is a function of (seed, the row's own number, tick), so it
samples the same alone or beside others. Rows whose states have the same shapes take one step together, wherever each
of them stands; the others, such as those whose states have grown to different lengths, take steps of their own. A step
that can (`Runs`) makes several ticks of a row by itself in one call, so a few rows are written one after another where
that takes less time than their ticks together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.emission import Chooser
from unrolled.core.errors import UnrolledError
from unrolled.core.finite import require_finite
from unrolled.core.state import State
from unrolled.decode.choose import log_probabilities, make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import Step
from unrolled.decode.text import Begun

TURN = 0.01  # seconds of several ticks of all rows, about
FIRST_TICKS, MOST_TICKS = 4, 64  # of a turn: the first tokens come at once, and others are not kept waiting
FEW = 3  # rows whose ticks one after another are expected to take less time than those together
FORGET = 0.98  # of the time that ticks together took, which may have been measured at a bad moment


class Ran(NamedTuple):
    """Some ticks of one row: tokens and their log-probabilities, and where the next tick starts."""

    tokens: list[int]
    log_p: list[float]
    y: Tensor  # [1, V]
    state: State


@runtime_checkable
class Runs(Protocol):
    """A step that can make many ticks of one row at once, each of them fed what the one before chose."""

    def run(
        self, y: Tensor, state: State, history: Tensor, choose: Chooser, stops: Collection[int], n_ticks: int,
        noise: Noise,
    ) -> Ran | None:  # fmt: skip
        """At most so many ticks after the tokens of a history [1, T], of which y [1, V] are the last outputs; None
        where it cannot make these."""
        ...


class Token(NamedTuple):
    """One token of a row."""

    token: int
    log_p: float  # under the model as it is
    top: list[tuple[int, float]]  # the most probable tokens in its place
    last: bool  # whether the row ends with it
    stopped: bool  # whether it is a stop token


Told = Token | Exception  # of a row: its next token, or why it cannot be continued


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

    def __init__(self, faster: Callable[[Step], Step] = lambda step: step) -> None:
        """`faster` gives a step with the same results; it is asked once for each model."""
        self._groups: list[_Group] = []
        self._faster = faster
        self._steps: dict[int, tuple[Step, Step]] = {}  # by the id of a model, which is kept
        self._ticks = FIRST_TICKS
        self._alone: dict[int, float] = {}  # by the id of a step: processor seconds of a tick of one row
        self._beside: dict[int, float] = {}  # and of one of several rows

    def __len__(self) -> int:
        return sum(len(group.rows) for group in self._groups)

    @torch.no_grad()
    def join(self, row: Row) -> Tensor:
        """Read the prompt of a row, which takes part from now on; the outputs after each of its tokens [P, V]."""
        step, self._ticks = self._step_of(row), FIRST_TICKS
        y, state = step(row.begun.prompt, row.begun.state)
        self._groups.append(_Group([row], y[:, -1], state, step))
        return y[0]

    def _step_of(self, row: Row) -> Step:
        step = row.begun.step
        if not isinstance(step, torch.nn.Module):
            return step
        if id(step) not in self._steps:
            self._steps[id(step)] = step, self._faster(step)
        return self._steps[id(step)][1]

    def leave(self, rows: Sequence[Row]) -> None:
        """Rows that are no longer wanted."""
        for group in self._groups:
            _keep(group, [i for i, row in enumerate(group.rows) if row not in rows])
        self._groups = [group for group in self._groups if group.rows]

    @torch.no_grad()
    def tick(self) -> list[tuple[Row, Told]]:
        """The next token of every row, or the next ones; a row that cannot be continued leaves with the reason."""
        began = time.monotonic()
        told = [each for group in self._groups for each in self._turn(group, began + TURN)]
        late = time.monotonic() - began > TURN
        self._ticks = max(1, self._ticks // 2) if late else min(MOST_TICKS, 2 * self._ticks)
        self._arrange()
        return told

    def _turn(self, group: _Group, until: float) -> list[tuple[Row, Told]]:
        """Some ticks of the rows of a group; those that end leave it, all of them where their step fails."""
        began, B, n = time.thread_time(), len(group.rows), 0
        told: list[tuple[Row, Told]] = []
        try:
            if B == 1 and (found := self._several(group)) is not None:
                self._alone[id(group.step)] = (time.thread_time() - began) / len(found)
                return [*found]
            while group.rows and n < self._ticks and (n == 0 or time.monotonic() < until):
                told += _ticked(group)
                n += 1
        except Exception as error:
            rows, group.rows = group.rows, []
            return [*told, *((row, error) for row in rows)]
        if B > 1:
            self._beside[id(group.step)] = (time.thread_time() - began) / n
        return told

    def _several(self, group: _Group) -> list[tuple[Row, Token]] | None:
        """Several ticks of the only row, in one call; None where its step cannot make them."""
        row, step = group.rows[0], group.step
        if row.top or not isinstance(step, Runs):
            return None
        history = torch.tensor([row.history])
        ran = step.run(group.y, group.state, history, row.chooser, row.stops, min(self._ticks, row.left), row.noise)
        if ran is None:
            return None
        require_finite(ran.log_p)
        group.y, group.state = ran.y, ran.state
        told = [(row, _noted(row, token, own, [])) for token, own in zip(ran.tokens, ran.log_p)]
        if told[-1][1].last:
            group.rows = []
        return told

    def _arrange(self) -> None:
        """Which rows take their next ticks together."""
        alike: dict[tuple[Any, ...], list[_Group]] = {}
        for group in self._groups:
            if group.rows:
                alike.setdefault(group.shape(), []).append(group)
        self._groups = []
        for same in alike.values():
            self._groups += [one for group in same for one in _split(group)] if self._apart(same) else [_merged(same)]

    def _apart(self, same: list[_Group]) -> bool:
        """Whether rows of equal shapes are faster one after another."""
        step, rows = id(same[0].step), [row for group in same for row in group.rows]
        alone, beside = self._alone.get(step), self._beside.get(step)
        if alone is None or any(row.top for row in rows):
            return False
        if beside is None:
            return len(rows) <= FEW
        self._beside[step] = FORGET * beside
        return len(rows) * alone <= beside


def _ticked(group: _Group) -> list[tuple[Row, Told]]:
    """One tick of all rows."""
    told = _chosen(group)
    _keep(group, [i for i, (_, token) in enumerate(told) if isinstance(token, Token) and not token.last])
    if group.rows:
        tokens = torch.tensor([[row.history[-1]] for row in group.rows], device=group.y.device)
        y, group.state = group.step(tokens, group.state)  # [B, 1, V]
        group.y = y[:, -1]
    return told


def _chosen(group: _Group) -> list[tuple[Row, Told]]:
    """One token for each row of a group, which is added to its history; an error where it has none."""
    log_p = log_probabilities(group.y)
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(group.rows):
        kinds.setdefault(row.alike(), []).append(i)
    found = {i: choice for places in kinds.values() for i, choice in _choices(group, log_p, places).items()}

    def told(i: int, row: Row) -> Told:
        choice = found[i]
        return choice if isinstance(choice, Exception) else _noted(row, *choice, likeliest(log_p[i], row.top))

    return [(row, told(i, row)) for i, row in enumerate(group.rows)]


def _choices(group: _Group, log_p: Tensor, places: list[int]) -> dict[int, tuple[int, float] | Exception]:
    """The choices of rows that are alike with their log-probabilities; where one of them has none, each by itself."""
    first = group.rows[places[0]]
    noise = torch.cat([group.rows[i].noise(len(group.rows[i].history)) for i in places])
    looked = first.decoding.repetition_penalty != 1
    history = torch.tensor([group.rows[i].history if looked else [] for i in places], device=group.y.device)
    y = group.y if len(places) == len(group.rows) else group.y[places]
    try:
        tokens = first.chooser(y, history.long(), noise)
        own = log_p[places].gather(1, tokens.to(log_p.device)[:, None])[:, 0].tolist()
        require_finite(own)
        return dict(zip(places, zip(tokens.tolist(), own)))
    except UnrolledError as error:
        if len(places) == 1:
            return {places[0]: error}
    return {i: choice for one in places for i, choice in _choices(group, log_p, [one]).items()}


def _noted(row: Row, token: int, own: float, top: list[tuple[int, float]]) -> Token:
    row.history.append(token)
    row.left -= 1
    stopped = token in row.stops
    return Token(token, own, top, stopped or row.left == 0, stopped)


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


def _split(group: _Group) -> list[_Group]:
    """The rows of a group, each by itself."""
    if len(group.rows) == 1:
        return [group]
    places = [torch.tensor([i], device=group.y.device) for i in range(len(group.rows))]
    return [
        _Group([row], group.y[at], tree.take(group.state, at), group.step)
        for row, at in zip(group.rows, places, strict=True)
    ]


def _merged(same: list[_Group]) -> _Group:
    """Groups of equal shapes as one."""
    if len(same) == 1:
        return same[0]
    rows, ys = [row for each in same for row in each.rows], torch.cat([each.y for each in same])
    return _Group(rows, ys, tree.joined([each.state for each in same]), same[0].step)
