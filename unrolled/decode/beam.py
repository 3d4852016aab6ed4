"""Beam search: the likeliest sequences, approximately.

At every tick each of the `width` live beams of an example is continued by every token; of all continuations the best
`width` are looked at. Those that end in a stop token are kept as finished; the best `width` others live on.

score(Y) = log P(Y) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^a

|Y| counts the generated tokens, the stop token included; a is the `length_penalty`: 0 ranks by log P, 0.6 or so
favours longer sequences (Wu et al. 2016, eq. 14, without their coverage term).

The search of an example ends when no live beam can win any more. Further tokens never raise log P <= 0, so the most
that a beam of l tokens can still reach is log P / lp at the length that favours it: the longest for a > 0, the next
for a < 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.decode.choose import check_possible, forbid, log_probabilities
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
    """The live beams of all examples: W rows each, best first; a dead beam has log P = -inf."""

    def __init__(self, n_rows: int, width: int, like: Tensor) -> None:
        self.log_p = like.new_full((n_rows, width), -math.inf)  # [B, W]
        self.log_p[:, 0] = 0.0  # the beams of an example are equal at first, so one lives
        self.tokens = torch.zeros(n_rows, width, 0, dtype=torch.long, device=like.device)  # after the first chunk

    def keep(self, totals: Tensor) -> Tensor:
        """Let the best of the continuations [B, W, V] live on; returns the beam [B, W] that each came from."""
        W, V = totals.shape[1:]
        best = totals.flatten(1).topk(W)
        origin = best.indices // V  # [B, W]
        past = self.tokens.gather(1, origin[:, :, None].expand_as(self.tokens))
        self.log_p = best.values
        self.tokens = torch.cat([past, (best.indices % V)[:, :, None]], dim=2)  # [B, W, t]
        return origin


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
        raise UsageError(f"n_best = {n_best} with width = {width} is not possible: take 1 <= n_best <= width")
    t, stops, B, W = int(lengths.min()), token_ids(stop), len(prompt), width
    found = [_Found(n_best, max_steps, length_penalty) for _ in range(B)]
    own = (lengths - t).tolist()  # where each row's generated tokens begin
    base = torch.arange(B, device=prompt.device)[:, None] * W  # [B, 1]

    y, state = step(prompt[:, :t], state)
    y, state = y[:, -1].repeat_interleave(W, dim=0), tree.repeat(state, W)  # [B * W, V]
    beams = _Beams(B, W, like=log_probabilities(y))
    while True:
        next_p = forbid(log_probabilities(y), forbidden).view(B, W, -1)
        check_possible(next_p)
        totals = beams.log_p[:, :, None] + next_p  # [B, W, V]
        going_on = forbid(totals, stops)
        prompted = (t < lengths)[:, None, None]  # nothing to choose yet: the first beam takes the prompt's token
        if bool(prompted.any()):
            forced = torch.full_like(totals, -math.inf)
            forced[:, 0].scatter_(-1, prompt[:, t, None], 0.0)
            totals, going_on = totals.masked_fill(prompted, -math.inf), torch.where(prompted, forced, going_on)
        _add_finished(found, beams.tokens, totals, stops, own)
        origin = beams.keep(going_on)
        t += 1
        _settle(found, beams, (t - lengths).tolist(), own, max_steps)
        if bool((beams.log_p == -math.inf).all()):
            return [example.candidates for example in found]
        state = tree.regroup(state, (base + origin).flatten())
        logits, state = step(beams.tokens[:, :, -1].reshape(B * W, 1), state)
        y = logits[:, -1]


def _add_finished(found: list[_Found], tokens: Tensor, totals: Tensor, stops: list[int], own: list[int]) -> None:
    """Those among the W best continuations [B, W, V] that end in a stop token are finished."""
    W, V = totals.shape[1:]
    best = totals.flatten(1).topk(W)
    ended = torch.isin(best.indices % V, tokens.new_tensor(stops)) & (best.values > -math.inf)  # [B, W]
    for b, i in ended.nonzero().tolist():
        beam, token = divmod(int(best.indices[b, i]), V)
        found[b].add([*tokens[b, beam, own[b] :].tolist(), token], float(best.values[b, i]), finished=True)


def _settle(found: list[_Found], beams: _Beams, n_own: list[int], own: list[int], max_steps: int) -> None:
    """Take the beams that reached the limit, and end the search of every example that is decided."""
    for b, n in enumerate(n_own):
        if n == max_steps:
            for beam in (beams.log_p[b] > -math.inf).nonzero()[:, 0].tolist():
                found[b].add(beams.tokens[b, beam, own[b] :].tolist(), float(beams.log_p[b, beam]), finished=False)
        if n >= 1 and found[b].settled(float(beams.log_p[b, 0]), n):
            beams.log_p[b] = -math.inf
