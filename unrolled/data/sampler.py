"""Which examples stand in the batch of a step: for training a pure function of the step number, so that a run resumes
from one integer; for figures every example or token once.

    StreamRows    a stream in rows that follow one another
    Windows       windows of a stream in a random order
    Pooled        separate examples, those of about equal length together
    PooledBags    bags, of which some instances are drawn anew each time
    Bucketed      sources and targets, both of about equal length together, as many as fit into so many tokens

The order is a function of (seed, epoch).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.collate import NEXT, Form, collate, collate_spans, n_targets
from unrolled.data.examples import Examples, Ragged, Whole

PIECE = 1 << 16  # numbers that are turned into Python's at a time
POOL = 100  # batches that are sorted by length together: short padding, and still a random order
EXACT, WIDER = 8, 1.15  # buckets: every length up to the first by itself, then by this factor
INSTANCES = 1 << 14  # of bags, padding included, that are evaluated together
POSITIONS = 1 << 17  # of other examples: 64 of 2,048
WARM_UP = 256  # tokens of context before a row of an evaluation that carries its state


def random_of(seed: int, epoch: int) -> np.random.Generator:
    return np.random.default_rng((seed, epoch))


class Sampler:
    """The base: counts steps and epochs."""

    steps_per_epoch: int
    tokens_per_step: int
    """of an ordinary step"""

    def __init__(self, examples: Examples, seed: int) -> None:
        self.examples, self.seed = examples, seed
        self.notes: list[str] = []

    def epoch(self, step: int) -> int:
        return step // self.steps_per_epoch

    def batch(self, step: int) -> Batch:
        raise NotImplementedError


# ---- streams


class Stream(Sampler):
    """The base of samplers of a stream."""

    def __init__(self, examples: Examples, batch_size: int, ahead: int, seed: int) -> None:
        super().__init__(examples, seed)
        self.batch_size, self.ahead, self.n_tokens = batch_size, ahead, len(examples.values(TARGET))

    def _fit_batch_size(self, possible: int, length: int) -> None:
        """Fewer rows where there are not enough tokens for all of them."""
        if possible < 1:
            raise DataError(
                f"this split has {self.n_tokens} tokens, too few for one row of {length}; give more text or a "
                f"smaller {option('length')}"
            )
        if possible < self.batch_size:
            self.notes.append(
                f"the batch size is {possible} instead of {self.batch_size}: {self.n_tokens} tokens are too few "
                f"for more rows of {length}"
            )
            self.batch_size = possible


class StreamRows(Stream):
    """A stream in contiguous rows that carry their state: truncated back-propagation through time.

    With k1 = length and k2 = back, batch i covers positions [i k1, i k1 + k2) of each row: the gradient reaches back
    at least k2 - k1 steps behind each new target, and the state moves on by k1 (`keep`). The targets are the last k1
    positions, in the first batch of an epoch all k2; so each is predicted once (Williams and Peng 1990). An epoch
    starts at a random offset and from the initial state.
    """

    def __init__(
        self, examples: Examples, batch_size: int, length: int, back: int | None = None, ahead: int = 1,
        seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(examples, batch_size, ahead, seed)
        self.length, self.back = length, length if back is None else back
        if self.back < length:
            raise ValueError(f"invalid value back = {back}: expected at least length = {length}")
        usable = self.n_tokens - ahead  # positions that have a target
        self._fit_batch_size(min(batch_size, usable // self.back), self.back)
        row = usable // self.batch_size
        self.steps_per_epoch = (row - self.back) // length + 1
        self._row = (self.steps_per_epoch - 1) * length + self.back
        self._slack = usable - self.batch_size * self._row
        if self._slack < length - 1 and self.steps_per_epoch > 1:  # leave room for offsets that differ
            self.steps_per_epoch -= 1
            self._row -= length
            self._slack += self.batch_size * length
        self.tokens_per_step = self.batch_size * length

    def batch(self, step: int) -> Batch:
        epoch, i = divmod(step, self.steps_per_epoch)
        offset = int(random_of(self.seed, epoch).integers(self._slack + 1))
        first = offset + np.arange(self.batch_size) * self._row + i * self.length
        counted = first + (self.back - self.length if i > 0 else 0)  # the others were predicted by the batches before
        batch = collate_spans(self.examples, first, first + self.back, counted, self.back, self.ahead)
        return replace(batch, fresh=i == 0, keep=None if self.back == self.length else self.length)


class Windows(Stream):
    """Random windows of a stream, each from the initial state.

    An epoch lays windows side by side from a random offset and visits them in a random order, so that each token is
    a target at most once.
    """

    def __init__(
        self, examples: Examples, batch_size: int, length: int, ahead: int = 1, seed: int = 0
    ) -> None:  # fmt: skip
        super().__init__(examples, batch_size, ahead, seed)
        self.length = length
        usable = self.n_tokens - ahead
        windows = (usable - (length - 1)) // length or usable // length
        self._fit_batch_size(min(batch_size, windows), length)
        self.steps_per_epoch = windows // self.batch_size
        self.tokens_per_step = self.batch_size * length
        slack = min(usable - windows * length, length - 1)
        self._epoch = lru_cache(maxsize=1)(lambda epoch: _window_order(seed, epoch, windows, slack))

    def batch(self, step: int) -> Batch:
        epoch, i = divmod(step, self.steps_per_epoch)
        offset, order = self._epoch(epoch)
        first = offset + order[i * self.batch_size : (i + 1) * self.batch_size] * self.length
        return collate_spans(self.examples, first, first + self.length, first, self.length, self.ahead)


def _window_order(seed: int, epoch: int, windows: int, slack: int) -> tuple[int, Whole]:
    random = random_of(seed, epoch)
    return int(random.integers(slack + 1)), random.permutation(windows)


def stream_batches(
    examples: Examples,
    batch_size: int,
    length: int,
    ahead: int = 1,
    context: int | None = None,
    carried: bool = True,
) -> Iterator[Batch]:
    """Batches in which every token of a stream is a target exactly once, but the first `ahead`.

    Carried: the stream in `batch_size` equal shares side by side, each after the first preceded by `context` tokens
    (256) of warm-up, in chunks of one length. Not carried: windows that overlap, so that each target has at least
    `context` tokens before it (half a window) where there are so many.
    """
    n_tokens = len(examples.values(TARGET))
    positions = n_tokens - ahead  # each has a target
    if positions <= 0:
        raise DataError(f"there is nothing to predict in {n_tokens} tokens; give more text")
    if carried:
        return _carried(examples, positions, batch_size, length, ahead, WARM_UP if context is None else context)
    return _overlapping(examples, positions, batch_size, length, ahead, length // 2 if context is None else context)


def _carried(
    examples: Examples, positions: int, batch_size: int, length: int, ahead: int, context: int
) -> Iterator[Batch]:
    n_rows = max(1, min(batch_size, positions // max(context, 1)))  # no more warm-up than text
    share = -(-positions // n_rows)
    counted = np.minimum(np.arange(n_rows) * share, positions)  # [B] the first position that counts
    last = np.minimum(counted + share, positions)  # [B] and the end
    start = np.maximum(counted - context, 0)  # [B] where the warm-up begins
    width = int((last - start).max())
    length = min(length, width)
    for chunk in range(0, width, length):
        first = start + chunk
        batch = collate_spans(examples, first, np.minimum(first + length, last), counted, length, ahead)
        yield replace(batch, places=torch.from_numpy(first), fresh=chunk == 0)


def _overlapping(
    examples: Examples, positions: int, batch_size: int, length: int, ahead: int, context: int
) -> Iterator[Batch]:
    length = min(length, positions)
    stride = max(length - context, 1)
    n_windows = 1 + -(-(positions - length) // stride)
    for begin in range(0, n_windows, batch_size):
        number = np.arange(begin, min(begin + batch_size, n_windows))
        done = np.where(number == 0, 0, length + (number - 1) * stride)  # [B] predicted by the windows before
        first = np.minimum(number * stride, positions - length)  # [B] the last window ends with the text
        batch = collate_spans(examples, first, first + length, done, length, ahead)
        yield replace(batch, places=torch.from_numpy(first))


# ---- separate examples


class Epochs(Sampler):
    """The base of samplers of separate examples: an order of them, cut at the same places in every epoch.

    `order` draws the order of an epoch; the batches, from one of `cuts` to the next, then come in a random order too.
    """

    def __init__(
        self, examples: Examples, form: Form, seed: int, cuts: Whole, order: Callable[[np.random.Generator], Whole]
    ) -> None:
        super().__init__(examples, seed)
        self.form, self.cuts = form, cuts
        self.steps_per_epoch = len(cuts) - 1
        self._drawn = lru_cache(maxsize=1)(lambda epoch: self._draw(random_of(seed, epoch), order))

    def batch(self, step: int) -> Batch:
        epoch, i = divmod(step, self.steps_per_epoch)
        order, batches = self._drawn(epoch)
        first, last = self.cuts[batches[i] : batches[i] + 2]
        return self._collated(order[first:last], epoch)

    def _collated(self, rows: Whole, epoch: int) -> Batch:
        return collate(self.examples, rows, self.form)

    def _draw(self, random: np.random.Generator, order: Callable[[np.random.Generator], Whole]) -> tuple[Whole, Whole]:
        return order(random), random.permutation(self.steps_per_epoch)


def pooled(order: Whole, lengths: Whole, batch_size: int) -> Whole:
    """The order with each pool sorted by length; equal lengths stay in the order given."""
    pool = np.arange(len(order)) // (POOL * batch_size)
    return order[np.lexsort((lengths[order], pool))]


class Pooled(Epochs):
    """Batches of so many examples, those of about equal length together.

    In a random order, pools of 100 batches are sorted by length and cut into batches.
    """

    def __init__(self, examples: Examples, batch_size: int, form: Form, seed: int = 0) -> None:
        lengths, n = self._lengths(examples.fields[form.x]), examples.n_examples
        if n == 0:
            raise DataError(f"this split has no examples; give more data or another {option('split')}")
        self.batch_size = size = min(batch_size, n)
        cuts = np.arange(0, n + size, size).clip(max=n)
        super().__init__(examples, form, seed, cuts, lambda random: pooled(random.permutation(n), lengths, size))
        if batch_size > n:
            self.notes.append(f"the batch size is {n} instead of {batch_size}: there are no more examples")
        steps = n_targets(examples, form.ahead) if form.ahead is not None else self._steps(examples.fields[form.x])
        self.tokens_per_step = max(1, round(steps / self.steps_per_epoch))

    def _lengths(self, field: Ragged) -> Whole:
        return field.lengths

    def _steps(self, field: Ragged) -> int:
        """Of all sequences, as they are read in an epoch."""
        return len(field.values)


class PooledBags(Pooled):
    """Bags, of each of which at most so many instances are read at a time: a draw from (seed, epoch, bag)."""

    def __init__(self, examples: Examples, batch_size: int, form: Form, instances: int, seed: int = 0) -> None:
        self.instances = instances
        super().__init__(examples, batch_size, form, seed)

    def _lengths(self, field: Ragged) -> Whole:
        return np.minimum(field.lengths, self.instances)

    def _steps(self, field: Ragged) -> int:
        return round(len(field.values) * self._lengths(field).sum() / len(field.inside))

    def _collated(self, rows: Whole, epoch: int) -> Batch:
        bags = self.examples.fields[self.form.x]
        chosen = [self._drawn_from(int(n), epoch, int(row)) for row, n in zip(rows, bags.lengths_at(rows))]
        columns = {TARGET: self.examples.values(TARGET)[rows]} if TARGET in self.examples.columns else {}
        drawn = Examples({self.form.x: bags.thinned(rows, chosen)}, columns)
        return replace(collate(drawn, np.arange(len(rows)), self.form), rows=torch.from_numpy(np.array(rows, np.int64)))

    def _drawn_from(self, n: int, epoch: int, row: int) -> Whole:
        if n <= self.instances:
            return np.arange(n)
        random = np.random.default_rng((self.seed, epoch, row))
        return np.sort(random.choice(n, self.instances, replace=False, shuffle=False))


def pooled_batches(examples: Examples, batch_size: int, form: Form) -> Iterator[Batch]:
    """Every example once for figures, those of about equal length together; `rows` says which is which.

    No more together than have so many positions, or instances where they are bags, but at least one: long ones would
    take memory without an end.
    """
    field = examples.fields[form.x]
    most = INSTANCES if len(field.offsets) > 1 else POSITIONS
    order = pooled(np.arange(examples.n_examples), field.lengths, batch_size)
    start = 0
    while start < len(order):
        rows = order[start : start + batch_size]
        width = np.maximum.accumulate(field.lengths_at(rows)) * np.arange(1, len(rows) + 1)
        rows = rows[: max(1, int((width <= most).sum()))]
        yield collate(examples, rows, form)
        start += len(rows)


# ---- sources and targets


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


class Buckets:
    """Pairs in an order of lengths, and where it is cut into batches of at most `tokens`.

    Both lengths are put into buckets (8 steps of one, then a seventh wider each), pairs are sorted by bucket and cut
    where n (S + T) would pass the number of tokens. As the buckets of the sorted pairs are the same in every epoch,
    so are the cuts and the steps of an epoch.
    """

    def __init__(self, examples: Examples, tokens: int) -> None:
        S, T = examples.lengths(SOURCE), examples.lengths(TARGET) + 1
        s, t = _bucket(S), _bucket(T)
        self.keys = (np.where(t % 2 == 1, -s, s), t)  # to and fro, so that neighbours are alike
        order = self.order(np.zeros(len(S)))
        self.cuts = _cuts(_longest_in(s, S)[order], _longest_in(t, T)[order], tokens)

    def order(self, tie: NDArray[np.float64] | Whole) -> Whole:
        return np.lexsort((tie, *self.keys))


def _each(numbers: Whole) -> Iterator[int]:
    """One by one, of which there may be very many."""
    for at in range(0, len(numbers), PIECE):
        yield from numbers[at : at + PIECE].tolist()


def _cuts(S: Whole, T: Whole, tokens: int) -> Whole:
    """Where batches begin and the last one ends; a pair that is too large by itself stands alone."""
    cuts, longest_s, longest_t = array("q", [0]), 0, 0
    for i, (s, t) in enumerate(zip(_each(S), _each(T))):
        longest_s, longest_t = max(longest_s, s), max(longest_t, t)
        if i > cuts[-1] and (i + 1 - cuts[-1]) * (longest_s + longest_t) > tokens:
            cuts.append(i)
            longest_s, longest_t = s, t
    return np.array([*cuts, len(S)], np.int64)


class Bucketed(Epochs):
    """Batches of pairs, both of about equal length together, in a random order within a bucket.

    `tokens` bounds the positions of a batch, source and target, padding among them; None: as many as `batch_size` pairs
    of mean length have.
    """

    def __init__(
        self, examples: Examples, tokens: int | None, batch_size: int = 32, form: Form = NEXT, seed: int = 0
    ) -> None:
        n = examples.n_examples
        if n == 0:
            raise DataError(f"this split has no pairs; give more data or another {option('split')}")
        targets = n_targets(examples)
        self.tokens = round(batch_size * (len(examples.values(SOURCE)) + targets) / n) if tokens is None else tokens
        buckets = Buckets(examples, self.tokens)
        super().__init__(examples, form, seed, buckets.cuts, lambda random: buckets.order(random.random(n)))
        self.tokens_per_step = max(1, round(targets / self.steps_per_epoch))


def bucketed_batches(examples: Examples, tokens: int, form: Form = NEXT) -> Iterator[Batch]:
    """Every pair once for figures, those of about equal lengths together; `rows` says which is which."""
    if examples.n_examples == 0:
        return
    buckets = Buckets(examples, tokens)
    order = buckets.order(np.arange(examples.n_examples))
    for first, last in zip(buckets.cuts[:-1], buckets.cuts[1:]):
        yield collate(examples, order[first:last], form)
