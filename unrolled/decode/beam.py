"""Beam search: the likeliest sequences, approximately.

At every tick each of the `width` live beams of an example is continued by every token; of all continuations the best
`width` are looked at. Those that end in a stop token are kept as finished; the best `width` others live on.

score(Y) = log P(Y) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^a

|Y| counts the generated tokens, the stop token included; a is the `length_penalty`: 0 ranks by log P, 0.6 or so
favours longer sequences (Wu et al. 2016, eq. 14, without their coverage term).

The search of an example ends when no live beam can win any more. Further tokens never raise log P <= 0, so the most
that a beam of l tokens can still reach is log P / lp at the length that favours it: the longest for a > 0, the next
for a < 0. What has ended leaves the batch, so it costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.errors import DataError, UsageError
from unrolled.core.state import State
from unrolled.core.stopping import require_wanted
from unrolled.decode.likeliest import Continuations, likeliest, without
from unrolled.decode.rollout import Candidate, Step, check_prompt, token_ids


def length_divisor(length: int, a: float) -> float:
    """lp of Wu et al. (2016).

    >>> length_divisor(1, 0.6), length_divisor(7, 1.0), length_divisor(7, 0.0)
    (1.0, 2.0, 1.0)
    """
    return ((5 + length) / 6) ** a


class _Found:
    """The candidates of one example, finished ones before those that reached the limit, best first."""

    def __init__(self, n_best: int, max_steps: int, a: float) -> None:
        self.n_best, self.max_steps, self.a = n_best, max_steps, a
        self.candidates: list[Candidate] = []

    def add(self, tokens: list[int], log_p: float, finished: bool) -> None:
        score = log_p / length_divisor(len(tokens), self.a)
        self.candidates.append(Candidate(tokens, log_p, finished, score))
        self.candidates.sort(key=lambda c: (not c.finished, -c.score))
        del self.candidates[self.n_best :]

    def settled(self, log_p: float, length: int) -> bool:
        """Whether no beam of `length` tokens and at most this log P can still be among the n best."""
        if length >= self.max_steps or log_p == -math.inf:
            return True
        reach = log_p / length_divisor(self.max_steps if self.a > 0 else length + 1, self.a)
        return len(self.candidates) == self.n_best and self.candidates[-1].score >= reach


class _Beams:
    """The beams of the examples that are still searched: w each, best first; a dead beam has log P = -inf."""

    def __init__(self, n_examples: int) -> None:
        self.examples = np.arange(n_examples)  # [L] their numbers
        self.log_p = np.zeros((n_examples, 1))  # [L, w]; one beam, for at first all would be equal
        self.tokens = np.zeros((n_examples, 1, 0), np.int64)  # [L, w, t] after the first chunk

    def move(self, best: Continuations) -> None:
        """Let the given continuations [L, w] live on."""
        past = np.take_along_axis(self.tokens, best.beam[:, :, None], 1)
        self.tokens = np.concatenate([past, best.token[:, :, None]], axis=2)
        self.log_p = best.log_p

    def keep(self, examples: NDArray[np.bool_]) -> None:
        self.examples, self.log_p, self.tokens = self.examples[examples], self.log_p[examples], self.tokens[examples]


@torch.no_grad()
def beam_search(
    step: Step,
    state: State,
    prompt: Tensor,
    stop: int | Collection[int],
    width: int,
    max_steps: int,
    length_penalty: float = 0.0,
    n_best: int = 1,
    lengths: Tensor | None = None,
    forbidden: Collection[int] = (),
) -> list[list[Candidate]]:
    """The n best candidates of every row, best first; width 1 without penalty is greedy.

    prompt [B, P] right-padded with lengths [B] (None: all P), or the first tokens [B], such as <start>. Sequences
    that reach `max_steps` without a stop token rank behind all finished ones. The state is used up.
    """
    prompt = prompt[:, None] if prompt.dim() == 1 else prompt
    lengths = check_prompt(prompt, lengths, max_steps)
    if not 1 <= n_best <= width:
        raise UsageError(f"invalid value n_best = {n_best} with width = {width}: expected 1 <= n_best <= width")
    t, stops, never = int(lengths.min()), token_ids(stop), list(forbidden)
    given, until = prompt.cpu().numpy(), lengths.cpu().numpy()  # [B, P], [B]
    found = [_Found(n_best, max_steps, length_penalty) for _ in range(len(prompt))]
    own = (until - t).tolist()  # where each row's generated tokens begin
    beams = _Beams(len(prompt))

    y, state = step(prompt[:, :t], state)
    never_at, stops_at = _places(never, y.shape[-1]), _places(stops, y.shape[-1])
    while True:
        require_wanted()
        w, prompted = beams.log_p.shape[1], t < until[beams.examples]  # [L]
        best = likeliest(y[:, -1], beams.log_p, width + w * (len(stops) + len(never)))
        best = without(best, never_at[best.token], width + w * len(stops))
        _check_possible(best, beams)
        ended = stops_at[best.token]  # [L, n]
        _add_finished(found, beams, best, ended & ~prompted[:, None], width, own)
        chosen = without(best, ended, width)
        if prompted.any():
            chosen = _forced(chosen, prompted, given[beams.examples, min(t, given.shape[1] - 1)])
        beams.move(chosen)
        t += 1
        live = _unsettled(found, beams, (t - until[beams.examples]).tolist(), own, max_steps)
        if not live.any():
            return [example.candidates for example in found]
        state = _rows_of(state, chosen.beam, live, w)
        beams.keep(live)
        tokens = torch.from_numpy(np.ascontiguousarray(beams.tokens[:, :, -1]).reshape(-1, 1))  # [L w, 1]
        y, state = step(tokens.to(prompt.device), state)


def _places(tokens: Sequence[int], n_tokens: int) -> NDArray[np.bool_]:
    """[V] True at these tokens."""
    found = np.zeros(n_tokens, bool)
    found[[token for token in tokens if 0 <= token < n_tokens]] = True
    return found


def _check_possible(best: Continuations, beams: _Beams) -> None:
    """Every example must have a token to choose, and no beam may have outputs that are not finite."""
    bad = ~np.isfinite(best.log_p[:, 0])  # NaN ranks before all numbers
    if bad.any():
        row = int(beams.examples[bad][0])
        raise DataError(f"no token can be chosen in row {row}: all are excluded or the model's outputs are not finite")


def _add_finished(
    found: list[_Found], beams: _Beams, best: Continuations, ended: NDArray[np.bool_], width: int, own: list[int]
) -> None:
    """Those among the W best continuations that end in a stop token are finished."""
    for i, j in zip(*np.nonzero(ended[:, :width] & (best.log_p[:, :width] > -math.inf)), strict=True):
        b, past = int(beams.examples[i]), beams.tokens[i, best.beam[i, j]]
        found[b].add([*past[own[b] :].tolist(), int(best.token[i, j])], float(best.log_p[i, j]), finished=True)


def _forced(chosen: Continuations, prompted: NDArray[np.bool_], tokens: NDArray[np.int64]) -> Continuations:
    """While the prompt lasts there is nothing to choose yet: the first beam takes its token, others are dead."""
    w = chosen.log_p.shape[1] if not prompted.all() else 1
    first = np.where(np.arange(w) == 0, 0.0, -math.inf)  # [w]
    log_p = np.where(prompted[:, None], first, chosen.log_p[:, :w])
    beam = np.where(prompted[:, None], 0, chosen.beam[:, :w])
    return Continuations(log_p, beam, np.where(prompted[:, None], tokens[:, None], chosen.token[:, :w]))


def _unsettled(
    found: list[_Found], beams: _Beams, n_own: list[int], own: list[int], max_steps: int
) -> NDArray[np.bool_]:
    """Take the beams that reached the limit; which examples [L] are not decided yet."""
    live = np.ones(len(n_own), bool)
    for i, (b, n, log_p) in enumerate(zip(beams.examples.tolist(), n_own, beams.log_p[:, 0].tolist(), strict=True)):
        if n == max_steps:
            for beam in np.flatnonzero(beams.log_p[i] > -math.inf):
                found[b].add(beams.tokens[i, beam, own[b] :].tolist(), float(beams.log_p[i, beam]), finished=False)
        live[i] = n < 1 or not found[b].settled(log_p, n)
    return live


def _rows_of(state: State, beam: NDArray[np.int64], live: NDArray[np.bool_], w: int) -> State:
    """The state of the beams [L, W] that live on, of which each comes from one of the w of its example."""
    rows = torch.from_numpy((np.arange(len(beam))[:, None] * w + beam)[live].reshape(-1))
    where = next(tree.leaves(state), rows).device
    if live.all() and beam.shape[1] == w:
        if np.array_equal(beam, np.broadcast_to(np.arange(w), beam.shape)):
            return state
        return tree.regroup(state, rows.to(where))
    return tree.take(state, rows.to(where))
