"""Batches for next-token and next-frame models: the only place of padding and of the shift from input to target.

    input x_t = token t,  target y_t = token t + ahead;  y_t = <empty> where nothing is to be predicted

A sampler is a pure function of the step number, `sampler.batch(step)`, so that a training run resumes from one integer.
Sample order is a function of (seed, epoch). Padding is on the right, always.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.core.tokens import EMPTY, START, STOP
from unrolled.data.epochs import AlikeInLength, pooled, random_of
from unrolled.data.section import Section

WARM_UP = 256  # tokens of context before a row of an evaluation that carries its state


def _gather(section: Section, starts: NDArray[np.int64], length: int, ahead: int) -> tuple[Tensor, Tensor]:
    """Windows [B, length] from these starts, and the same `ahead` tokens later."""
    wide = np.stack([section.tokens[start : start + length + ahead] for start in starts]).astype(np.int64)
    both = torch.from_numpy(wide)  # [B, length + ahead]
    return both[:, :length].clone(), both[:, ahead:].clone()  # two tensors: the targets are changed later


class Sampler:
    """The base of samplers of a stream: counts steps and epochs."""

    steps_per_epoch: int
    tokens_per_step: int
    """targets of an ordinary step"""

    def __init__(self, section: Section, batch_size: int, ahead: int, seed: int) -> None:
        self.section, self.batch_size, self.ahead, self.seed = section, batch_size, ahead, seed
        self.notes: list[str] = []

    def epoch(self, step: int) -> int:
        return step // self.steps_per_epoch

    def batch(self, step: int) -> Batch:
        raise NotImplementedError

    def _fit_batch_size(self, possible: int, length: int) -> None:
        """Fewer rows where the section has not enough tokens for all of them."""
        if possible < 1:
            raise DataError(
                f"this part of the data has {self.section.n_tokens} tokens, too few for one row of {length}; "
                f"give more text or a smaller {option('length')}"
            )
        if possible < self.batch_size:
            self.notes.append(
                f"the batch size is {possible} instead of {self.batch_size}: there are {self.section.n_tokens} tokens, "
                f"too few for more rows of {length}"
            )
            self.batch_size = possible


class StreamRows(Sampler):
    """A stream in contiguous rows that carry their state: truncated back-propagation through time.

    With k1 = length and k2 = back, batch i covers positions [i k1, i k1 + k2) of each row: the gradient reaches back
    at least k2 - k1 steps behind each new target, and the state moves on by k1 (`keep`). The targets are the last k1
    positions, in the first batch of an epoch all k2; so each is predicted once (Williams and Peng 1990). An epoch
    starts at a random offset and from the initial state.
    """

    def __init__(
        self, section: Section, batch_size: int, length: int, back: int | None = None, ahead: int = 1, seed: int = 0
    ) -> None:
        super().__init__(section, batch_size, ahead, seed)
        self.length, self.back = length, length if back is None else back
        if self.back < length:
            raise ValueError(f"back = {back} is shorter than length = {length}")
        usable = section.n_tokens - ahead  # positions that have a target
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
        starts = offset + np.arange(self.batch_size) * self._row + i * self.length
        x, y = _gather(self.section, starts, self.back, self.ahead)  # [B, back]
        if i > 0:
            y[:, : self.back - self.length] = EMPTY  # predicted by the batches before
        return Batch(x, targets={TARGET: y}, fresh=i == 0, keep=None if self.back == self.length else self.length)


class Windows(Sampler):
    """Random windows of a stream, each from the initial state.

    An epoch lays windows side by side from a random offset and visits them in a random order, so that each token is
    a target at most once.
    """

    def __init__(self, section: Section, batch_size: int, length: int, ahead: int = 1, seed: int = 0) -> None:
        super().__init__(section, batch_size, ahead, seed)
        self.length = length
        usable = section.n_tokens - ahead
        windows = (usable - (length - 1)) // length or usable // length
        self._fit_batch_size(min(batch_size, windows), length)
        self.steps_per_epoch = windows // self.batch_size
        self.tokens_per_step = self.batch_size * length
        slack = min(usable - windows * length, length - 1)
        self._epoch = lru_cache(maxsize=1)(lambda epoch: _window_order(seed, epoch, windows, slack))

    def batch(self, step: int) -> Batch:
        epoch, i = divmod(step, self.steps_per_epoch)
        offset, order = self._epoch(epoch)
        starts = offset + order[i * self.batch_size : (i + 1) * self.batch_size] * self.length
        x, y = _gather(self.section, starts, self.length, self.ahead)
        return Batch(x, targets={TARGET: y})


def _window_order(seed: int, epoch: int, windows: int, slack: int) -> tuple[int, NDArray[np.int64]]:
    random = random_of(seed, epoch)
    return int(random.integers(slack + 1)), random.permutation(windows)


class Examples(AlikeInLength):
    """Separate examples, those of about equal length together."""

    def __init__(self, section: Section, batch_size: int, ahead: int = 1, seed: int = 0) -> None:
        lengths = np.diff(section.offsets)
        super().__init__(lengths, batch_size, seed)
        self.section, self.ahead = section, ahead
        ends = 2 if section.tokens.ndim == 1 else 1  # <start> and <stop>; vectors have only a start
        targets = int(np.maximum(lengths + ends - ahead, 0).sum())
        self.tokens_per_step = max(1, round(targets / self.steps_per_epoch))

    def batch(self, step: int) -> Batch:
        return pad_examples(self.section, self.rows(step), self.ahead)


def pad_examples(section: Section, rows: NDArray[np.int64], ahead: int = 1) -> Batch:
    """`<start> t1 .. tn` as input and `t1 .. tn <stop>` as target (for ahead = 1), padded on the right.

    An example that was cut because it was too long has no <stop> to predict. Vectors: see `pad_frames`.
    """
    if section.tokens.ndim == 2:
        return pad_frames(section, rows, ahead)
    texts = [section.example(int(row)) for row in rows]
    width = max(max(map(len, texts)) + 2 - ahead, 1)
    x = np.full((len(rows), width), EMPTY, np.int64)  # [B, T]
    y = np.full((len(rows), width), EMPTY, np.int64)  # [B, T]
    for i, (row, text) in enumerate(zip(rows, texts)):
        ends = section.ends is None or section.ends[row]
        whole = np.concatenate(([START], text, [STOP if ends else EMPTY]))
        n = len(whole) - ahead  # positions with a target
        x[i, : max(n, 1)] = whole[: max(n, 1)]
        y[i, : max(n, 0)] = whole[ahead:]
    classes = section.classes
    sources = {} if classes is None else {SOURCE: torch.from_numpy(classes[rows].astype(np.int64))}
    numbers = torch.from_numpy(np.array(rows, np.int64))
    return Batch(torch.from_numpy(x), targets={TARGET: torch.from_numpy(y)}, sources=sources, rows=numbers)


def pad_frames(section: Section, rows: NDArray[np.int64], ahead: int = 1) -> Batch:
    """`0 v1 .. vn-1` as input and `v1 .. vn` as target (for ahead = 1), padded on the right with zeros.

    The input begins with a vector of zeros, so that every vector is predicted once; there is no <stop>.
    """
    frames = [section.example(int(row)) for row in rows]  # [T, D] each
    width = max(max(map(len, frames)) + 1 - ahead, 1)
    x = np.zeros((len(rows), width, section.tokens.shape[1]), np.float32)  # [B, T, D]
    y, mask = np.zeros_like(x), np.zeros(x.shape[:2], bool)
    for i, row in enumerate(frames):
        n = len(row) + 1 - ahead  # positions with a target
        x[i, 1 : max(n, 1)] = row[: max(n - 1, 0)]
        y[i, : max(n, 0)] = row[ahead - 1 :]
        mask[i, : max(n, 0)] = True
    numbers = torch.from_numpy(np.array(rows, np.int64))
    targets, masks = {TARGET: torch.from_numpy(y)}, {TARGET: torch.from_numpy(mask)}
    return Batch(torch.from_numpy(x), targets=targets, target_masks=masks, rows=numbers)


def example_batches(section: Section, batch_size: int, ahead: int = 1) -> Iterator[Batch]:
    """Every example once, those of about equal length together; `rows` says which is which."""
    order = pooled(np.arange(section.n_examples), np.diff(section.offsets), batch_size)
    for start in range(0, len(order), batch_size):
        yield pad_examples(section, order[start : start + batch_size], ahead)


def evaluation_batches(
    section: Section,
    batch_size: int,
    length: int,
    ahead: int = 1,
    context: int | None = None,
    carried: bool = True,
) -> Iterator[Batch]:
    """Batches in which every token is a target exactly once, but the first `ahead` tokens of a stream.

    Carried: the stream in `batch_size` equal shares side by side, each after the first preceded by `context` tokens
    (256) of warm-up, in chunks of one length. Not carried: windows that overlap, so that each target has at least
    `context` tokens before it (half a window) where there are so many. Separate examples are taken as they are.
    """
    if not section.is_stream:
        return example_batches(section, batch_size, ahead)
    if section.n_tokens <= ahead:
        raise DataError(f"there is nothing to predict in {section.n_tokens} tokens; give more text")
    if carried:
        return _carried_batches(section, batch_size, length, ahead, WARM_UP if context is None else context)
    return _window_batches(section, batch_size, length, ahead, length // 2 if context is None else context)


def _carried_batches(section: Section, batch_size: int, length: int, ahead: int, context: int) -> Iterator[Batch]:
    positions = section.n_tokens - ahead  # each has a target
    n_rows = max(1, min(batch_size, positions // max(context, 1)))  # no more warm-up than text
    share = -(-positions // n_rows)
    first = np.minimum(np.arange(n_rows) * share, positions)  # [B] the first position that counts
    last = np.minimum(first + share, positions)  # [B] and the end
    start = np.maximum(first - context, 0)  # [B] where the warm-up begins
    width = int((last - start).max())
    length = min(length, width)
    for chunk in range(0, width, length):
        x = np.full((n_rows, length), EMPTY, np.int64)  # [B, T]
        y = np.full((n_rows, length), EMPTY, np.int64)  # [B, T]
        for row in range(n_rows):
            begin, end = start[row] + chunk, min(start[row] + chunk + length, last[row])
            counted = max(begin, first[row])
            if begin < end:
                x[row, : end - begin] = section.tokens[begin:end]
            if counted < end:
                y[row, counted - begin : end - begin] = section.tokens[counted + ahead : end + ahead]
        there = torch.from_numpy(start + chunk)
        yield Batch(torch.from_numpy(x), targets={TARGET: torch.from_numpy(y)}, places=there, fresh=chunk == 0)


def _window_batches(section: Section, batch_size: int, length: int, ahead: int, context: int) -> Iterator[Batch]:
    positions = section.n_tokens - ahead
    length = min(length, positions)
    stride = max(length - context, 1)
    n_windows = 1 + -(-(positions - length) // stride)
    for begin in range(0, n_windows, batch_size):
        number = np.arange(begin, min(begin + batch_size, n_windows))
        done = np.where(number == 0, 0, length + (number - 1) * stride)  # [B] predicted by the windows before
        start = np.minimum(number * stride, positions - length)  # [B] the last window ends with the text
        x, y = _gather(section, start, length, ahead)  # [B, T]
        y[torch.arange(length) < torch.from_numpy(done - start)[:, None]] = EMPTY
        yield Batch(x, targets={TARGET: y}, places=torch.from_numpy(start))
