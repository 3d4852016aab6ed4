"""Batches of pairs: sources padded with a mask, targets shifted by one, as many rows as fit into so many tokens.

    source [B, S] ids or [B, S, D] numbers, source_mask [B, S] True = real
    x = <start> y_1 .. y_n,   y = y_1 .. y_n <stop>,   <empty> in the padding, which is on the right, always

Pairs of about equal lengths stand together: both lengths are put into buckets (8 wide steps of one, then a seventh
wider each), pairs are sorted by bucket, in a random order within one, and cut where n (S + T) would pass the number of
tokens. As the buckets of the sorted pairs are the same in every epoch, so are the cuts and the steps of an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.core.tokens import EMPTY, START, STOP, UNKNOWN
from unrolled.data.epochs import Epochs, Whole
from unrolled.data.section import Section

EXACT, WIDER = 8, 1.15  # buckets: every length up to the first by itself, then by this factor


@dataclass(frozen=True)
class PairSection:
    """One part of the data as arrays in memory."""

    source: NDArray[Any]
    """[N] ids or [N, D] float32: all sources after each other"""
    source_offsets: Whole
    """[n+1]: source i is source[source_offsets[i]:source_offsets[i+1]]"""
    target: NDArray[np.int32]
    """[M] ids of all targets, without <start> and <stop>"""
    target_offsets: Whole
    rows: Whole
    """[n]: the number of each pair in its data, counted from 0"""
    ends: NDArray[np.bool_] | None = None
    """[n]: False where a target was cut because it was too long, so that no <stop> follows; None: all end"""
    texts: tuple[Sequence[Any], Sequence[str]] | None = None
    """sources and targets as they were given; kept for parts that are measured"""
    kinds: Sequence[str] | None = None
    """[n]: what sort of held-out example each is, where figures tell such apart"""

    @property
    def n_examples(self) -> int:
        return len(self.rows)

    @property
    def n_targets(self) -> int:
        """How many tokens are to be predicted, <stop> among them."""
        return len(self.target) + (self.n_examples if self.ends is None else int(self.ends.sum()))

    @property
    def source_lengths(self) -> Whole:
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> Whole:
        return np.diff(self.target_offsets)

    def source_of(self, i: int) -> NDArray[Any]:
        return self.source[self.source_offsets[i] : self.source_offsets[i + 1]]

    def target_of(self, i: int) -> NDArray[np.int32]:
        return self.target[self.target_offsets[i] : self.target_offsets[i + 1]]

    def targets(self) -> Section:
        """The targets alone, as examples of a language."""
        unknown = int((self.target == UNKNOWN).sum())
        n = len(self.target)
        return Section(self.target, self.target_offsets, None, n, n, unknown, False, self.rows, self.ends)

    def take(self, chosen: Whole) -> PairSection:
        """Some pairs, copied, in the order given."""
        sources, targets = self.texts or ((), ())
        texts = None if self.texts is None else ([sources[i] for i in chosen], [targets[i] for i in chosen])
        return replace(
            self,
            source=_joined([self.source_of(int(i)) for i in chosen], self.source),
            source_offsets=_offsets(self.source_lengths[chosen]),
            target=_joined([self.target_of(int(i)) for i in chosen], self.target),
            target_offsets=_offsets(self.target_lengths[chosen]),
            rows=self.rows[chosen],
            ends=None if self.ends is None else self.ends[chosen],
            texts=texts,
            kinds=None if self.kinds is None else [self.kinds[i] for i in chosen],
        )

    def spread(self, n: int) -> PairSection:
        """At most n pairs, evenly spread."""
        if n >= self.n_examples:
            return self
        return self.take(np.arange(n) * self.n_examples // n)

    def share(self, fraction: float) -> PairSection:
        """As many pairs, evenly spread, as `fraction` says."""
        return self if fraction >= 1 else self.spread(max(1, round(fraction * self.n_examples)))


def _offsets(lengths: Whole) -> Whole:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _joined(parts: list[NDArray[Any]], like: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([*parts, like[:0]]).astype(like.dtype)


def section_of_pairs(
    sources: Sequence[NDArray[Any]],
    targets: Sequence[NDArray[Any]],
    rows: Sequence[int] | None = None,
    ends: Sequence[bool] | None = None,
    texts: tuple[Sequence[Any], Sequence[str]] | None = None,
    kinds: Sequence[str] | None = None,
) -> PairSection:
    """Encoded pairs as a section: sources [S] ids or [S, D] numbers, targets [T] ids."""
    like = sources[0] if len(sources) and sources[0].ndim == 2 else np.empty(0, np.int32)
    return PairSection(
        _joined(list(sources), like[:0] if like.ndim == 2 else like),
        _offsets(np.array([len(each) for each in sources], np.int64)),
        _joined(list(targets), np.empty(0, np.int32)),
        _offsets(np.array([len(each) for each in targets], np.int64)),
        np.array(range(len(sources)) if rows is None else rows, np.int64),
        None if ends is None or all(ends) else np.array(ends, bool),
        texts,
        kinds if kinds is not None and any(kinds) else None,
    )


def pad_pairs(section: PairSection, rows: Whole) -> Batch:
    """These pairs as one batch."""
    S, T = int(section.source_lengths[rows].max()), int(section.target_lengths[rows].max()) + 1
    ids = section.source.ndim == 1
    source = np.full((len(rows), S, *section.source.shape[1:]), EMPTY, np.int64 if ids else np.float32)  # [B, S] + [D]
    x = np.full((len(rows), T), EMPTY, np.int64)  # [B, T]
    y = np.full((len(rows), T), EMPTY, np.int64)  # [B, T]
    for i, row in enumerate(rows):
        text, target = section.source_of(int(row)), section.target_of(int(row))
        source[i, : len(text)] = text
        x[i, 0], x[i, 1 : len(target) + 1] = START, target
        y[i, : len(target)] = target
        y[i, len(target)] = STOP if section.ends is None or section.ends[row] else EMPTY
    mask = np.arange(S) < section.source_lengths[rows][:, None]  # [B, S]
    return Batch(
        torch.from_numpy(x), targets={TARGET: torch.from_numpy(y)}, sources={SOURCE: torch.from_numpy(source)},
        source_masks={SOURCE: torch.from_numpy(mask)}, rows=torch.from_numpy(np.array(rows, np.int64)),
    )  # fmt: skip


# ---- which pairs stand together


def _bucket(lengths: Whole) -> Whole:
    """The number of the bucket of each length.

    >>> _bucket(np.array([1, 8, 9, 10, 20])).tolist()
    [1, 8, 8, 9, 14]
    """
    wide = EXACT + np.floor(np.log(np.maximum(lengths, EXACT) / EXACT) / np.log(WIDER))
    return np.where(lengths <= EXACT, lengths, wide).astype(np.int64)


def _longest_in(bucket: Whole, lengths: Whole) -> Whole:
    """For each pair, the largest length in its bucket."""
    most = np.zeros(int(bucket.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, bucket, lengths)
    return most[bucket]


class _Buckets:
    """The pairs of a section in an order of lengths, and where it is cut into batches of at most `tokens`."""

    def __init__(self, section: PairSection, tokens: int) -> None:
        S, T = section.source_lengths, section.target_lengths + 1
        s, t = _bucket(S), _bucket(T)
        self.keys = (np.where(t % 2 == 1, -s, s), t)  # to and fro, so that neighbours are alike
        order = self.order(np.zeros(len(S)))
        self.cuts = _cuts(_longest_in(s, S)[order], _longest_in(t, T)[order], tokens)

    def order(self, tie: NDArray[Any]) -> Whole:
        return np.lexsort((tie, *self.keys))


def _cuts(S: Whole, T: Whole, tokens: int) -> Whole:
    """Where batches begin and the last one ends; a pair that is too large by itself stands alone."""
    cuts, longest_s, longest_t = [0], 0, 0
    for i, (s, t) in enumerate(zip(S.tolist(), T.tolist())):
        longest_s, longest_t = max(longest_s, s), max(longest_t, t)
        if i > cuts[-1] and (i + 1 - cuts[-1]) * (longest_s + longest_t) > tokens:
            cuts.append(i)
            longest_s, longest_t = s, t
    return np.array([*cuts, len(S)], np.int64)


class PairExamples(Epochs):
    """Training batches of pairs.

    `tokens` bounds the positions of a batch, source and target, padding among them; None: as many as `batch_size` pairs
    of mean length have.
    """

    def __init__(self, section: PairSection, tokens: int | None, batch_size: int = 32, seed: int = 0) -> None:
        n = section.n_examples
        if n == 0:
            raise DataError(f"this split of the data has no pairs; give more data or another {option('split')}")
        self.section = section
        self.tokens = round(batch_size * (len(section.source) + section.n_targets) / n) if tokens is None else tokens
        buckets = _Buckets(section, self.tokens)
        super().__init__(buckets.cuts, lambda random: buckets.order(random.random(n)), seed)
        self.tokens_per_step = max(1, round(section.n_targets / self.steps_per_epoch))

    def batch(self, step: int) -> Batch:
        return pad_pairs(self.section, self.rows(step))


def pair_batches(section: PairSection, tokens: int) -> Iterator[Batch]:
    """Every pair once for figures, those of about equal lengths together; `rows` says which is which."""
    if section.n_examples == 0:
        return
    buckets = _Buckets(section, tokens)
    order = buckets.order(np.arange(section.n_examples))
    for first, last in zip(buckets.cuts[:-1], buckets.cuts[1:]):
        yield pad_pairs(section, order[first:last])
