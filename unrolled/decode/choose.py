"""Choosers: `choose(y, history, noise) -> tokens`, the next token of every row.

y        [B, V]  logits of the next token
history  [B, t]  every row's own tokens so far, prompt included
noise    [B]     a uniform number in [0, 1) that belongs to the row and the tick (see noise.py)
tokens   [B]     the choice

A chooser is made of filters on log-probabilities (forbid, penalise, temperature, top k, top p: -inf is never chosen)
and, at the end, `greedy` or `draw`. `make_chooser` puts them together from a `Decoding`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from unrolled.core.emission import Chooser
from unrolled.core.errors import DataError
from unrolled.decode.config import Decoding


def log_probabilities(y: Tensor) -> Tensor:
    """log softmax of logits, in double precision where the device has it, so that sums of many stay exact."""
    return torch.log_softmax(y, dim=-1, dtype=torch.float32 if y.device.type == "mps" else torch.float64)


def token_log_prob(y: Tensor, choice: Tensor) -> Tensor:
    """log softmax(y)_choice [B] of logits y [B, V]."""
    log_q = torch.log_softmax(y, dim=-1, dtype=torch.promote_types(y.dtype, torch.float32))  # [B, V]
    return log_q.gather(-1, choice[:, None])[:, 0]


def forbid(y: Tensor, tokens: Collection[int]) -> Tensor:
    """A copy of y [..., V] with the given tokens made impossible."""
    y = y.clone()
    for token in tokens:
        y[..., token] = -math.inf
    return y


def penalise_repetition(log_p: Tensor, history: Tensor, penalty: float) -> Tensor:
    """p(k)^penalty, up to a factor, for every k that occurs in the row's history.

    Keskar et al. (2019) divide positive logits and multiply negative ones, which depends on where a model puts the
    zero of its logits; log-probabilities have no such freedom, so here all models are treated alike.
    """
    seen = torch.zeros_like(log_p, dtype=torch.bool).scatter_(-1, history, True)  # [B, V]
    return torch.where(seen, log_p * penalty, log_p)


def heat(log_p: Tensor, temperature: float) -> Tensor:
    """p(k)^(1/temperature), up to a factor; the largest entry becomes 0, so no temperature overflows."""
    return (log_p - log_p.amax(dim=-1, keepdim=True)) / temperature


def keep_top_k(log_p: Tensor, k: int) -> Tensor:
    """-inf for all but the k likeliest, the first of equals (Fan et al. 2018)."""
    least = log_p.topk(min(k, log_p.shape[-1]), dim=-1).values[..., -1:]  # its indices may be any of equals
    above, level = log_p > least, log_p == least  # [B, V]
    room = k - above.sum(-1, keepdim=True)
    return log_p.masked_fill(~(above | (level & (level.cumsum(-1) <= room))), -math.inf)


def keep_top_p(log_p: Tensor, p: float) -> Tensor:
    """-inf outside the nucleus, the fewest likeliest tokens whose probability is at least p (Holtzman et al. 2020)."""
    ordered = log_p.softmax(-1).sort(dim=-1, descending=True, stable=True)
    mass_before = ordered.values.cumsum(-1) - ordered.values  # [B, V]
    outside = (mass_before >= p).scatter(-1, ordered.indices, mass_before >= p)
    return log_p.masked_fill(outside, -math.inf)


def greedy(y: Tensor, _history: Tensor, _noise: Tensor) -> Tensor:
    """The likeliest token; the first of equals."""
    return y.argmax(dim=-1)


def draw(y: Tensor, _history: Tensor, noise: Tensor) -> Tensor:
    """A sample from softmax(y): the first token whose cumulative probability exceeds the row's uniform number."""
    cumulative = log_probabilities(y).exp().cumsum(-1)  # [B, V]
    level = noise.to(cumulative)[:, None] * cumulative[:, -1:]  # [B, 1]
    return torch.searchsorted(cumulative, level, right=True)[:, 0].clamp(max=y.shape[-1] - 1)


def no_choice(row: int) -> str:
    """The sentence about a row for which nothing can be chosen."""
    return f"no token can be chosen in row {row}: all are excluded or the model's outputs are not finite"


def check_possible(log_p: Tensor) -> None:
    """Every row [B, ..., V] must have a token to choose."""
    best = log_p.detach().amax(dim=-1)  # NaN anywhere in a row is the row's largest
    if not bool(torch.isfinite(best).all()):
        raise DataError(no_choice(int((~torch.isfinite(best)).nonzero()[0, 0])))


@dataclass(frozen=True)
class ByDecoding:
    """The choice by some settings, which never takes a forbidden token."""

    decoding: Decoding
    forbidden: tuple[int, ...] = ()

    def __call__(self, y: Tensor, history: Tensor, noise: Tensor) -> Tensor:
        decoding = self.decoding
        log_p = forbid(log_probabilities(y), self.forbidden)
        if decoding.repetition_penalty != 1:
            log_p = penalise_repetition(log_p, history, decoding.repetition_penalty)
        check_possible(log_p)
        if decoding.temperature == 0:
            return greedy(log_p, history, noise)
        log_p = heat(log_p, decoding.temperature)
        if decoding.top_k is not None:
            log_p = keep_top_k(log_p, decoding.top_k)
        if decoding.top_p < 1:
            log_p = keep_top_p(log_p, decoding.top_p)
        return draw(log_p, history, noise)


def make_chooser(decoding: Decoding, forbidden: Collection[int] = ()) -> ByDecoding:
    """The chooser of these settings, which never chooses a forbidden token.

    >>> choose = make_chooser(Decoding(temperature=0), forbidden={1})
    >>> choose(torch.tensor([[0.0, 9.0, 2.0]]), torch.tensor([[0]]), torch.tensor([0.5])).item()
    2
    """
    return ByDecoding(decoding, tuple(forbidden))


@dataclass(frozen=True)
class Scheduled:
    """The true next token with some probability, else the model's own choice (scheduled sampling, Bengio et al. 2015).

    truth [B, T] are the true sequences from the first token of the prompt on; behind their end the choice is free.
    probability 1 is teacher forcing, 0 is free running. A rollout with gradients and this chooser trains on it.
    """

    truth: Tensor
    probability: float
    otherwise: Chooser = greedy

    def take(self, rows: Tensor) -> Scheduled:
        return replace(self, truth=self.truth[rows.to(self.truth.device)])

    def __call__(self, y: Tensor, history: Tensor, noise: Tensor) -> Tensor:
        t = history.shape[1]
        if t >= self.truth.shape[1]:
            return self.otherwise(y, history, noise)
        forced = noise < self.probability  # [B]
        rest = (noise - self.probability) / max(1 - self.probability, 1e-12)  # uniform again, given it is not forced
        own = self.otherwise(y, history, rest.clamp(0, 1 - 2**-52))
        return torch.where(forced.to(own.device), self.truth[:, t].to(own), own)


@runtime_checkable
class ByRow(Protocol):
    """A chooser whose choice depends on the row."""

    def take(self, rows: Tensor) -> Chooser: ...


def choice_of(choose: Chooser, rows: Tensor) -> Chooser:
    """The chooser for some of the rows."""
    return choose.take(rows) if isinstance(choose, ByRow) else choose
