"""Rollout: a model runs on its own choices.

Written against functions and values: `step(x [B, T, ..], state) -> (y [B, T, D'], state)`, the state tree, a chooser,
and the log-probability of what it chooses. A choice is a token [B], or a vector [B, D] such as a frame of bits; it is
what the step is fed next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.emission import Chooser
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.core.stopping import require_wanted
from unrolled.decode.choose import choice_of, token_log_prob
from unrolled.decode.noise import Noise

Step = Callable[[Tensor, State], tuple[Tensor, State]]

SAMPLE = 2**32  # sample j of row r draws the noise of row r + j * SAMPLE, so sample 0 is the row's plain rollout


class Drawn(Protocol):
    """What a rollout must know of outputs that it draws from: any `core.emission.Sampled` says it."""

    @property
    def n_noise(self) -> int: ...
    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor: ...


@runtime_checkable
class Ending(Drawn, Protocol):
    """Outputs whose choices are vectors and say themselves where a row ends."""

    def ends(self, choice: Tensor) -> Tensor:
        """[B] True where a row ends with its choice [B, ..]."""


class Tokens:
    """Outputs that are logits of tokens."""

    n_noise = 1

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return token_log_prob(y, choice)


class Column(NamedTuple):
    """One tick of all rows."""

    tokens: Tensor  # [B, ..] the row's own choice, or what is next in its prompt while that lasts; 0 if it has left
    active: Tensor  # [B] True where the token was chosen now, by a row that had not ended
    stopped: Tensor  # [B] True where this token is a stop token and ends the row
    log_p: Tensor  # [B] log-probability of the chosen token under the model as it is; 0 where not active
    y: Tensor  # the logits that the choice was made from, [B, V], or those of the rows that have not left the batch


class Block(NamedTuple):
    """Some ticks of all rows, with the parts of a `Column` but for the logits."""

    tokens: Tensor  # [B, n, ..]
    active: Tensor  # [B, n]
    stopped: Tensor  # [B, n]
    log_p: Tensor  # [B, n]


@runtime_checkable
class Draws(Protocol):
    """A step that can make many ticks at once, each of them fed what the one before chose."""

    def draw(
        self, y: Tensor, state: State, prompt: Tensor, lengths: Tensor, choose: Chooser, stops: Collection[int],
        max_steps: int, noise: Noise,
    ) -> Iterator[Block] | None:  # fmt: skip
        """The ticks of a rollout after the first chunk, of which y [B, V] are the last outputs; None where it cannot
        make these."""


class Candidate(NamedTuple):
    """A generated sequence."""

    tokens: list[Any]  # what was generated, the stop token included, the prompt not: ids, or a vector for each step
    log_p: float  # sum of the log-probabilities of these tokens under the model as it is
    finished: bool  # ended by a stop token, not by the limit
    score: float  # what it is ranked by: log_p, unless a length penalty was asked for


def rollout(
    step: Step,
    state: State,
    prompt: Tensor,
    lengths: Tensor | None,
    choose: Chooser,
    stop: int | Collection[int],
    max_steps: int,
    rows: Tensor | None = None,
    seed: int = 0,
    of: Drawn | None = None,
) -> Iterator[Column]:
    """Yields a column of tokens per tick: what is left of longer prompts, and each row's own choices.

    The first min(lengths) tokens go in one chunk; then each row is fed its own prompt while it lasts and after that
    its own choice, so no row is ever fed padding, and all rows have equally many tokens behind them at every tick.
    A row ends with a stop token (`()`: none), with a vector of which `of` says so, or after `max_steps` tokens of its
    own; the rollout ends with its rows.
    When half of the rows in the batch have ended, these leave it: neither state nor step knows them any more.

    prompt   [B, P, ..] right-padded, lengths [B] of at least 1 (None: all P); a caller without a prompt gives <start>
    rows     [B] numbers by which rows draw their noise (None: 0 .. B-1); the tick of the noise is the number of tokens
             behind it, so a row samples the same alone, in a batch, or resumed with all its tokens as the prompt
    state    is used up: clone it first if it is needed again. Gradients flow unless the caller forbids them.
    of       what the outputs are, where they are not logits of tokens
    """
    lengths, of = check_prompt(prompt, lengths, max_steps), of or Tokens()
    noise = Noise(seed, torch.arange(len(prompt)) if rows is None else rows, of.n_noise)
    y, state = step(prompt[:, : int(lengths.min())], state)
    yield from _go_on(step, y[:, -1], state, prompt, lengths, choose, token_ids(stop), max_steps, noise, of)


def _go_on(
    step: Step,
    y: Tensor,
    state: State,
    prompt: Tensor,
    lengths: Tensor,
    choose: Chooser,
    stops: list[int],
    max_steps: int,
    noise: Noise,
    of: Drawn,
) -> Iterator[Column]:
    """The ticks after the first chunk, of which y [B, D'] are the last outputs."""
    t, longest = int(lengths.min()), int(lengths.max())
    end = lengths + max_steps  # [B]
    ended = of.ends if isinstance(of, Ending) else partial(_is_stop, stops)
    alive = torch.ones_like(lengths, dtype=torch.bool)  # [B]
    history = prompt[:, :t].clone()  # [B, room, ..], filled up to t
    rows = torch.arange(len(prompt), device=prompt.device)  # [B] those that have not left
    column = partial(_column, n_rows=len(prompt))
    while True:
        require_wanted()
        with torch.no_grad():
            choice = choose(y.detach(), history[:, :t], noise(t))  # [B, ..]
        tokens, active = choice, alive
        if t < longest:
            given = (t < lengths).view(-1, *[1] * (choice.dim() - 1))
            tokens, active = torch.where(given, prompt[:, t], choice), alive & (t >= lengths)
        stopped = active & ended(tokens)  # [B]
        log_p = torch.where(active, of.log_prob(y, tokens), 0.0)
        yield column(rows, Column(tokens, active, stopped, log_p, y))
        alive = alive & ~stopped & (t + 1 < end)
        left = int(alive.sum())
        if left == 0:
            return
        if t == history.shape[1]:
            history = torch.cat([history, torch.zeros_like(history)], dim=1)
        history[:, t] = tokens
        if 2 * left <= len(alive):
            going = alive.nonzero()[:, 0]
            state, noise, choose = tree.take(state, going), noise.take(going), choice_of(choose, going)
            rows, tokens, alive, history, prompt, lengths, end = (
                part[going] for part in (rows, tokens, alive, history, prompt, lengths, end)
            )
        logits, state = step(tokens[:, None], state)
        y, t = logits[:, -1], t + 1


def _is_stop(stops: list[int], tokens: Tensor) -> Tensor:
    """[B]: whether tokens [B], or vectors where nothing is a stop token, end their rows."""
    stop = torch.tensor(stops, dtype=torch.long, device=tokens.device)
    return (tokens[:, None] == stop).any(1) if stops else torch.zeros(len(tokens), dtype=torch.bool, device=stop.device)


def _column(rows: Tensor, part: Column, n_rows: int) -> Column:
    """The column of all rows from that of those [L] that are still in the batch."""
    if len(rows) == n_rows:
        return part
    tokens, active, stopped, log_p = (
        values.new_zeros(n_rows, *values.shape[1:]).index_copy(0, rows, values) for values in part[:4]
    )
    return Column(tokens, active, stopped, log_p, part.y)


def collect(ticks: Iterable[Column | Block]) -> list[Candidate]:
    """Run a rollout to its end, without gradients: one candidate per row."""
    with torch.no_grad():
        blocks = [one_column(tick) if isinstance(tick, Column) else tick for tick in ticks]
    tokens, active, stopped, log_p = (torch.cat(parts, dim=1).cpu() for parts in zip(*blocks, strict=True))  # [B, T]
    totals, finished = log_p.double().sum(1).tolist(), stopped.any(1).tolist()
    own = [row[mine].tolist() for row, mine in zip(tokens, active, strict=True)]
    return [Candidate(*parts, score=parts[1]) for parts in zip(own, totals, finished, strict=True)]


def one_column(column: Column) -> Block:
    return Block(*(part[:, None] for part in column[:4]))


def drawn(
    step: Step,
    state: State,
    prompt: Tensor,
    lengths: Tensor | None,
    choose: Chooser,
    stop: int | Collection[int],
    max_steps: int,
    rows: Tensor | None = None,
    seed: int = 0,
    of: Drawn | None = None,
    n: int = 1,
) -> Iterator[Block]:
    """`rollout` without gradients, in blocks of ticks, of which a step that `Draws` makes many at once.

    With n > 1 every row is continued n times, the copies standing together, and the prompt is read once.
    """
    lengths, of = check_prompt(prompt, lengths, max_steps), of or Tokens()
    rows = torch.arange(len(prompt)) if rows is None else rows.cpu()
    numbers = (rows[:, None] + SAMPLE * torch.arange(n)).flatten()  # [B * n]
    noise, stops = Noise(seed, numbers, of.n_noise), token_ids(stop)
    with torch.no_grad():
        y, state = step(prompt[:, : int(lengths.min())], state)
        y = y[:, -1]
        if n > 1:
            y, prompt, lengths = (part.repeat_interleave(n, dim=0) for part in (y, prompt, lengths))
            state = tree.repeat(state, n)
        blocks = None
        if isinstance(step, Draws) and isinstance(of, Tokens):
            blocks = step.draw(y, state, prompt, lengths, choose, stops, max_steps, noise)
    if blocks is None:
        columns = _go_on(step, y, state, prompt, lengths, choose, stops, max_steps, noise, of)
        blocks = map(one_column, _without_gradients(columns))
    for block in blocks:
        yield block
        require_wanted()


def _without_gradients(columns: Iterator[Column]) -> Iterator[Column]:
    """Each column made without gradients, whatever the caller does in between."""
    while True:
        with torch.no_grad():
            column = next(columns, None)
        if column is None:
            return
        yield column


def best_of(
    n: int,
    step: Step,
    state: State,
    prompt: Tensor,
    lengths: Tensor | None,
    choose: Chooser,
    stop: int | Collection[int],
    max_steps: int,
    rows: Tensor | None = None,
    seed: int = 0,
    of: Drawn | None = None,
) -> list[list[Candidate]]:
    """n rollouts of every row, best first by log P; the prompt is read once. Sample 0 is the row's plain rollout."""
    if n < 1:
        raise UsageError(f"invalid value best_of = {n}: expected an integer >= 1")
    samples = collect(drawn(step, state, prompt, lengths, choose, stop, max_steps, rows, seed, of, n))
    groups = [samples[i : i + n] for i in range(0, len(samples), n)]
    return [sorted(group, key=lambda sample: -sample.score) for group in groups]


def token_ids(stop: int | Collection[int]) -> list[int]:
    return [stop] if isinstance(stop, int) else sorted(stop)


def check_prompt(prompt: Tensor, lengths: Tensor | None, max_steps: int) -> Tensor:
    """The lengths [B] of the prompts, each between 1 and P."""
    if max_steps < 1:
        raise UsageError(f"invalid value max_steps = {max_steps}: expected an integer >= 1")
    if prompt.dim() != 2 + prompt.is_floating_point() or len(prompt) == 0:
        wanted = "[rows, steps, D]" if prompt.is_floating_point() else "[rows, tokens]"
        raise UsageError(f"expected a prompt of shape {wanted} with at least one row, found {list(prompt.shape)}")
    if lengths is None:
        lengths = torch.full((len(prompt),), prompt.shape[1])
    wrong = (lengths < 1) | (lengths > prompt.shape[1])
    if bool(wrong.any()):
        row, n = int(wrong.nonzero()[0, 0]), prompt.shape[1]
        raise UsageError(f"prompt {row} has {int(lengths[row])} of {n} steps: expected at least one, such as <start>")
    return lengths.to(prompt.device)
