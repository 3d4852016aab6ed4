"""n-grams: smoothed counts of the next token after the last order - 1; fitted in closed form.

    p(w | c) = (a(c, w) - D(a(c, w))) / a(c)  +  lambda(c) p(w | c')              kneser-ney
    p(w | c) =  n(c, w) / (n(c) + t(c))       +  t(c) / (n(c) + t(c)) p(w | c')   witten-bell

c the context, c' the same without its oldest token, n counts, t(c) the number of different followers. In the first,
a is n for the longest contexts; for shorter ones a(c, w) is the number of different tokens before c w, plus how often
c w began an example. D takes the values D1, D2, D3 for a = 1, 2, 3 or more, estimated per context length from the
numbers n_i of entries with a = i: Y = n_1 / (n_1 + 2 n_2), D_i = i - (i + 1) Y n_{i+1} / n_i; a(c) = sum_w a(c, w)
and lambda(c) = sum_w D(a(c, w)) / a(c). Below the empty context lies the uniform distribution.

Chen & Goodman 1999, "An empirical study of smoothing techniques for language modeling"; Witten & Bell 1991.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from unrolled.core import config
from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.tokens import EMPTY, START, STOP
from unrolled.data.examples import ENDS, Examples
from unrolled.layers.counting.ngram import NGram

NEVER = (EMPTY, START)  # tokens that are not predicted
PIECE = 1 << 20  # positions counted at once

Whole = NDArray[np.int64]


class Config(config.Config):
    order: int = Field(3, ge=1, le=6)
    """Length of the n-grams: 1 counts single tokens, 3 predicts from the last two."""
    smoothing: Literal["kneser-ney", "witten-bell"] = "kneser-ney"
    """How counts of long and short contexts are combined (smoothing)."""


class Positions:
    """Every position of the data as (its past, its target), in pieces, with the special tokens put in place.

    Separate examples stand between <start> and <stop>; where they have classes, their class k comes first, as token
    d_out + k, and where one was cut no <stop> follows.
    """

    def __init__(self, data: Examples, order: int, ahead: int, d_out: int, with_classes: bool) -> None:
        field = data.fields[TARGET]
        self.tokens, self.order, self.ahead, self.d_out = field.values, order, ahead, d_out
        (self.offsets,) = field.offsets
        self.classes = data.columns.get(SOURCE) if with_classes else None
        self.ends = data.columns.get(ENDS)
        self.lead = 0 if data.is_stream else 1 + (self.classes is not None)  # tokens before an example, and after it
        self.tail = 0 if data.is_stream else 1
        extra = self.lead + self.tail
        self.starts = self.offsets[:-1] + extra * np.arange(len(self.offsets) - 1)
        self.lengths = np.diff(self.offsets) + extra

    def __iter__(self) -> Iterator[tuple[Whole, Whole]]:
        """past [order - 1, L], where past[k] is the token k steps back or -1 if there is none; target [L]."""
        total = int(self.lengths.sum())
        for begin in range(0, total, PIECE):
            end = min(begin + PIECE, total)
            low = max(begin - self.order, 0)
            s, within, left = self._read(low, min(end + self.ahead, total))
            here = np.arange(begin - low, end - low)
            here = here[(left[here] > self.ahead) & (within[here] >= self.lead - 1)]  # a class predicts nothing alone
            here = here[~np.isin(s[here + self.ahead], NEVER)]
            target = s[here + self.ahead]
            past = [np.where(within[here] >= k, s[np.maximum(here - k, 0)], -1) for k in range(self.order - 1)]
            yield np.array(past, dtype=np.int64).reshape(self.order - 1, len(here)), target

    def _read(self, low: int, high: int) -> tuple[Whole, Whole, Whole]:
        """Tokens, and how many of their example stand before them and from them on: [high - low] each."""
        position = np.arange(low, high)
        example = np.searchsorted(self.starts, position, side="right") - 1
        within = position - self.starts[example]
        left = self.lengths[example] - within
        source = np.clip(self.offsets[example] + within - self.lead, 0, max(len(self.tokens) - 1, 0))
        low = int(source.min())
        block = np.asarray(self.tokens[low : int(source.max()) + 1], dtype=np.int64)
        if len(block) and int(block.max()) >= self.d_out:
            raise DataError(f"the data holds token {block.max()}, but the vocabulary has only {self.d_out}")
        is_text = (within >= self.lead) & (left > self.tail)
        s = np.where(is_text, block[source - low] if len(block) else EMPTY, START)
        if self.tail:
            cut = np.zeros_like(within, dtype=bool) if self.ends is None else ~np.asarray(self.ends)[example]
            s = np.where(left == 1, np.where(cut, EMPTY, STOP), s)
        if self.classes is not None:
            s = np.where(within == 0, self.d_out + np.asarray(self.classes)[example], s)
        return s, within, left


class Tally:
    """Counts of whole numbers: sorted runs, merged as soon as they are of like size."""

    def __init__(self) -> None:
        self.runs: list[tuple[Whole, Whole]] = []

    def add(self, codes: Whole) -> None:
        if len(codes):
            self.runs.append(np.unique(codes, return_counts=True))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            self._merge()

    def _merge(self) -> None:
        (a, n_a), (b, n_b) = self.runs.pop(), self.runs.pop()
        codes, counts = np.concatenate([a, b]), np.concatenate([n_a, n_b])
        order = np.argsort(codes, kind="stable")
        codes, counts = codes[order], counts[order]
        first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        self.runs.append((codes[first], np.add.reduceat(counts, first)))

    def result(self) -> tuple[Whole, Whole]:
        while len(self.runs) > 1:
            self._merge()
        nothing = np.empty(0, dtype=np.int64)
        return self.runs[0] if self.runs else (nothing, nothing)


class Counts:
    """All n-grams: the tree of contexts (`keys`, see layers/counting/ngram.py) and, sorted (node, token) with its n."""

    def __init__(self, data: Positions, d_in: int) -> None:
        self.d_in, self.d_out = d_in, data.d_out
        self.keys = np.array([-1], dtype=np.int64)
        self.nodes, self.tokens, self.n = (np.empty(0, dtype=np.int64) for _ in range(3))
        self.depth = np.empty(0, dtype=np.int64)  # of every entry: the length of its context
        for k in range(data.order):
            self._count(data, k)

    def _count(self, data: Positions, k: int) -> None:
        """Append the contexts of k tokens."""
        tally = Tally()
        for past, target in data:
            if k > 0:
                past, target = past[:, past[k - 1] >= 0], target[past[k - 1] >= 0]
            node = np.zeros_like(target)
            for older in past[: max(k - 1, 0)]:
                node = np.searchsorted(self.keys, node * self.d_in + older)  # found: shorter contexts were counted
            key = node * self.d_in + past[k - 1] if k > 0 else node
            if len(key) and int(key.max()) >= 2**63 // self.d_out:
                raise DataError("there are too many different contexts for this vocabulary: use a lower order")
            tally.add(key * self.d_out + target)
        codes, n = tally.result()
        key, token = np.divmod(codes, self.d_out)
        distinct, number = np.unique(key, return_inverse=True)
        if k > 0:
            number = number + len(self.keys)
            self.keys = np.concatenate([self.keys, distinct])
        for name, new in (("nodes", number), ("tokens", token), ("n", n), ("depth", np.full_like(n, k))):
            setattr(self, name, np.concatenate([getattr(self, name), new]))

    def continued(self) -> Whole:
        """a(c, w): n where c is longest, else the number of different tokens before c w plus how often none was."""
        longer = np.flatnonzero(self.depth > 0)
        parents = self.keys[self.nodes[longer]] // self.d_in
        codes = self.nodes * self.d_out + self.tokens  # sorted, as nodes are numbered level by level
        shorter = np.searchsorted(codes, parents * self.d_out + self.tokens[longer])
        different = np.bincount(shorter, minlength=len(codes))
        preceded = np.bincount(shorter, weights=self.n[longer], minlength=len(codes)).astype(np.int64)
        return np.where(self.depth == self.depth.max(), self.n, different + self.n - preceded)


def discounts(a: Whole) -> NDArray[np.float64]:
    """D of every entry of one context length; where the n_i do not allow an estimate, one half."""
    n = [int((a == i).sum()) for i in range(5)]
    D = np.array([0.5, 0.5, 0.5])
    if all(n[1:]):
        Y = n[1] / (n[1] + 2 * n[2])
        D = np.array([i - (i + 1) * Y * n[i + 1] / n[i] for i in (1, 2, 3)])
    D = np.clip(D, 0.05, [0.95, 1.95, 2.95])  # something is always left over for shorter contexts, never everything
    found: NDArray[np.float64] = D[np.minimum(a, 3) - 1]
    return found


def kneser_ney(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """share [E] and backoff [M] of interpolated modified Kneser-Ney."""
    a = counts.continued()
    D = np.empty(len(a))
    for k in np.unique(counts.depth):
        D[counts.depth == k] = discounts(a[counts.depth == k])
    of_context = np.bincount(counts.nodes, weights=a)  # [M]
    return (a - D) / of_context[counts.nodes], np.bincount(counts.nodes, weights=D) / of_context


def witten_bell(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """share [E] and backoff [M] of Witten-Bell."""
    t = np.bincount(counts.nodes)
    n_plus_t = np.bincount(counts.nodes, weights=counts.n) + t
    return counts.n / n_plus_t[counts.nodes], t / n_plus_t


class Solved(NGram):
    """An n-gram layer that is fitted by counting."""

    def __init__(self, config: Config, d_in: int, d_out: int) -> None:
        super().__init__(config.order, d_in, d_out, never=NEVER)
        self.smoothing = {"kneser-ney": kneser_ney, "witten-bell": witten_bell}[config.smoothing]

    def solve(self, data: Examples, ahead: int = 1) -> None:
        """Count (context, the token `ahead` steps on) in `order` passes over the data, in bounded pieces."""
        positions = Positions(data, self.order, ahead, self.d_out, with_classes=self.d_in > self.d_out)
        counts = Counts(positions, self.d_in)
        if len(counts.n) == 0:
            raise DataError(
                "there is nothing to count: the training data has no two consecutive tokens; give more data"
            )
        shares, backoff = self.smoothing(counts)
        offsets = np.searchsorted(counts.nodes, np.arange(len(counts.keys) + 1))
        device, dtype = self.shares.device, self.shares.dtype
        self.keys = torch.from_numpy(counts.keys).to(device)
        self.offsets = torch.from_numpy(offsets).to(device)
        self.tokens = torch.from_numpy(counts.tokens.astype(np.int32)).to(device)
        self.shares = torch.from_numpy(shares).to(device, dtype)
        self.backoff = torch.from_numpy(backoff).to(device, dtype)


def make(config: Config, sizes: Sizes) -> Solved:
    return Solved(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="n-gram model: smoothed counts of the next token after the last order - 1; fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(order=3),
    make=make,
    reference="Chen & Goodman 1999",
    aliases=("markov", "markov-chain", "bigram", "trigram", "kneser-ney"),
    reads=("tokens",),
    outputs=("next",),
    owns_head=True,
    closed_form=("tokens", "samples", "pixels"),
)
