"""Windows of series: what is read before a forecast, and what should have been forecast. They are views until a batch
is made.

    x_t = (values, whether observed, past covariates, calendar, known of t+1 .. t+H, static)        [B, L, d_in]
    y_t = values of t+1 .. t+H                                                                     [B, L or 1, H D]

An end `e` of a series means that its steps up to e - 1 are read; the first target is step e.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.examples import Examples, Whole
from unrolled.data.sampler import Sampler, random_of
from unrolled.data.time_series.codec import SeriesCodec
from unrolled.data.time_series.prepare import CALENDAR, FIRST, KNOWN, LAST, PAST, SCALE, STATIC

MOST_WINDOWS = 1 << 20  # of an epoch
ENOUGH = 256  # of an epoch, before they are taken from farther apart
TARGETS, FEWEST_PLACES = 4096, 8  # numbers that a window predicts in training, and steps of it that do so at least
AT_ONCE, NUMBERS, FEWEST_STEPS = 64, 1 << 20, 64  # of streams: series, numbers that are predicted, steps of each
OVERLAP = 4  # windows that a step of a series is in, where every position of a window has a target


class Spots(NamedTuple):
    """Ends of series: which series, and where."""

    series: Whole
    ends: Whole

    def __len__(self) -> int:
        return len(self.series)

    def some(self, n: int) -> Spots:
        """At most n, evenly spread."""
        if n >= len(self):
            return self
        kept = np.arange(n) * len(self) // max(n, 1)
        return Spots(self.series[kept], self.ends[kept])

    def at(self, rows: Whole) -> Spots:
        return Spots(self.series[rows], self.ends[rows])

    def within(self, steps: int) -> Whole:
        """A number for each: the same for those of a series within one span of so many steps, whose forecasts overlap,
        so that their errors are not independent.

        >>> Spots(np.array([0, 0, 0, 1]), np.array([4, 5, 6, 4])).within(3).tolist()
        [0, 0, 1, 2]
        """
        pairs = np.stack([self.series, self.ends // steps], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def origins(section: Examples, codec: SeriesCodec, stride: int = 1) -> Spots:
    """Where forecasts are made so that they are wholly inside of the span, counted back from its end."""
    first, last = np.asarray(section.columns[FIRST]), np.asarray(section.columns[LAST])
    newest, begin = last - codec.horizon, np.maximum(first, 1)
    counts = np.maximum(-((begin - newest - 1) // stride), 0)  # [n]
    series = np.repeat(np.arange(len(counts)), counts)
    behind = counts[series] - 1 - (np.arange(len(series)) - (np.cumsum(counts) - counts)[series])  # others follow
    return Spots(series, newest[series] - stride * behind)


class Cutter:
    """Makes batches of windows of one section."""

    def __init__(self, section: Examples, codec: SeriesCodec, every: bool) -> None:
        self.section, self.codec, self.every = section, codec, every
        """every: each position has targets, not the last one alone"""
        self.limits = np.asarray(section.columns[LAST])  # no target is behind the span

    def batch(self, spots: Spots, rows: Whole | None = None, length: int | None = None) -> Batch:
        """Windows that end at these spots, right-padded where a series is shorter before them; targets belong to the
        last step of each, or to some of its steps."""
        length = length or self.codec.lookback
        used = np.minimum(spots.ends, length)  # [B]
        T = int(used.max())
        back = self._back(T) if self.every else np.zeros(1, np.int64)  # [K] steps before the last
        mask = np.arange(T) < used[:, None]  # [B, T]
        x, y = self._read(spots, used, mask), self._targets(spots, used, back)
        return self._batch(x, mask, y, spots, rows, np.maximum(used[:, None] - 1 - back, 0))

    def _read(self, spots: Spots, used: Whole, mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The inputs [B, T, d_in] of the last steps before spots, as many as are used, all windows at once."""
        codec, D = self.codec, self.codec.d_step
        x = np.zeros((*mask.shape, codec.d_in), np.float32)
        first = spots.ends - used  # [B]
        values = self._at(TARGET, spots.series, first[:, None] + np.arange(mask.shape[1]), mask)  # [B, T, D]
        missing = np.isnan(values)
        x[..., :D], at = np.where(missing, np.float32(0), values), D
        if codec.observed:
            x[..., D : 2 * D], at = ~missing & mask[..., None], 2 * D
        if codec.past:
            past = self._at(PAST, spots.series, first[:, None] + np.arange(mask.shape[1]), mask)
            x[..., at : at + len(codec.past)] = np.where(mask[..., None], past, np.float32(0))
        if (at := at + len(codec.past)) < codec.d_in:
            for b, (i, begin, n) in enumerate(zip(spots.series.tolist(), first.tolist(), used.tolist())):
                self._beside(x[b, :n], i, begin, begin + n, at)
        return x

    def _targets(self, spots: Spots, used: Whole, back: Whole) -> NDArray[np.float32]:
        """The H steps behind the K positions of each window that are so many steps before its last; NaN behind the
        span, and of positions that a window does not have: [B, K, H, D]."""
        at = (spots.ends[:, None] - back)[..., None] + np.arange(self.codec.horizon)  # [B, K, H]
        known = (at < self.limits[spots.series][:, None, None]) & (back < used[:, None])[..., None]
        return self._at(TARGET, spots.series, at, known)

    def _at(self, name: str, series: Whole, at: Whole, known: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Steps `at` [B, ..] of a field of series [B], NaN where they are not known: [B, .., n]."""
        field = self.section.fields[name]
        begun = field.offsets[0][series].reshape(-1, *[1] * (at.ndim - 1))
        found = np.take(field.values, np.where(known, begun + at, 0), axis=0)
        if not known.all():
            found = np.where(known[..., None], found, np.float32(np.nan))
        return found

    def _back(self, length: int) -> Whole:
        """Which steps of a window have targets, counted back from the last: not all where there is much to predict of
        each, because steps beside each other have nearly the same targets; none that has read little, where there are
        others."""
        read = length - min(_least_read(self.codec), length) + 1
        most = max(FEWEST_PLACES, TARGETS // (self.codec.horizon * self.codec.d_step))
        return np.arange(0, read, -(-read // most))

    def _batch(
        self, x: NDArray[np.float32], mask: NDArray[np.bool_], y: NDArray[np.float32], spots: Spots, rows: Whole | None,
        at: Whole,
    ) -> Batch:  # fmt: skip
        flat = y.reshape(*y.shape[:2], -1)  # [B, T', H D]
        real = ~np.isnan(flat)
        targets = np.where(real, flat, np.float32(0))
        scale = np.asarray(self.section.columns[SCALE])[spots.series]  # [B, 3, D]
        numbers = None if rows is None else torch.from_numpy(np.asarray(rows, np.int64))
        return Batch(
            torch.from_numpy(x), torch.from_numpy(mask), {TARGET: torch.from_numpy(targets)},
            {TARGET: torch.from_numpy(real)}, {SOURCE: torch.from_numpy(scale[:, :2].astype(np.float32))},
            scale=torch.from_numpy(scale), rows=numbers, at=torch.from_numpy(at),
        )  # fmt: skip

    def inputs(self, i: int, first: int, last: int) -> NDArray[np.float32]:
        """The inputs of steps first .. last - 1 of a series: [n, d_in]."""
        x = np.zeros((last - first, self.codec.d_in), np.float32)
        self._fill(x, i, first, last)
        return x

    def future(self, i: int, end: int, n: int) -> NDArray[np.float32]:
        """The inputs [n, d_in] of steps behind an end as far as they are known: no values, and none of the past
        covariates."""
        codec, x = self.codec, np.zeros((n, self.codec.d_in), np.float32)
        at = codec.d_step * (1 + codec.observed)
        x[:, codec.d_step : at] = 1.0  # what is fed back is a value
        self._beside(x, i, end, end + n, at + len(codec.past))
        return x

    def _fill(self, x: NDArray[np.float32], i: int, first: int, last: int) -> None:
        """The inputs of steps first .. last - 1 of a series."""
        fields, codec = self.section.fields, self.codec
        values = fields[TARGET][i][first:last]
        D, at = codec.d_step, codec.d_step
        missing = np.isnan(values)
        x[:, :D] = np.where(missing, 0.0, values)
        if codec.observed:
            x[:, D : 2 * D], at = ~missing, 2 * D
        if PAST in fields:
            x[:, at : at + len(codec.past)] = fields[PAST][i][first:last]
        self._beside(x, i, first, last, at + len(codec.past))

    def _beside(self, x: NDArray[np.float32], i: int, first: int, last: int, at: int) -> None:
        """What does not depend on values, from column `at` on."""
        fields, codec = self.section.fields, self.codec
        if CALENDAR in fields:
            part = fields[CALENDAR][i][first:last]
            x[: len(part), at : at + codec.d_calendar] = part
            at += codec.d_calendar
        if KNOWN in fields:
            K, H = codec.d_known, codec.horizon
            known = fields[KNOWN][i][first + 1 : last + H]
            ahead = np.zeros((last - first + H - 1, K), np.float32)
            ahead[: len(known)] = known
            windows = np.lib.stride_tricks.sliding_window_view(ahead, H, axis=0)  # [n, K, H]
            x[:, at : at + H * K] = windows.transpose(0, 2, 1).reshape(last - first, H * K)
            at += H * K
        if STATIC in self.section.columns:
            x[:, at:] = np.asarray(self.section.columns[STATIC])[i]

    def pairs(self, spots: Spots, n: int) -> Batch:
        """Windows as sources, and the n steps behind each to be written: x begins with the last step of the window."""
        source = self.batch(spots)
        assert source.mask is not None
        x = np.zeros((len(spots), n, self.codec.d_in), np.float32)
        y = np.full((len(spots), n, self.codec.d_step), np.nan, np.float32)
        for b, (i, end) in enumerate(zip(spots.series.tolist(), spots.ends.tolist())):
            last = min(end + n, int(self.limits[i]))
            read = max(last - end, 1)
            self._fill(x[b, :read], i, end - 1, end - 1 + read)
            y[b, : last - end] = self.section.fields[TARGET][i][end:last]
        real = ~np.isnan(y)
        return Batch(
            torch.from_numpy(x), targets={TARGET: torch.from_numpy(np.nan_to_num(y))},
            target_masks={TARGET: torch.from_numpy(real)}, sources={SOURCE: source.x},
            source_masks={SOURCE: source.mask}, scale=source.scale,
        )  # fmt: skip

    # ---- for figures

    def windows(self, spots: Spots, batch_size: int) -> Iterator[Batch]:
        """Every spot once; `rows` says which is which."""
        for begin in range(0, len(spots), batch_size):
            rows = np.arange(begin, min(begin + batch_size, len(spots)))
            yield self.batch(spots.at(rows), rows)

    def streams(self, series: Whole, first: Whole, last: Whole) -> Iterator[tuple[Batch, Whole, Whole]]:
        """Steps first .. last - 1 of each of some series in chunks that carry the state: the batch, which of the series
        these are, and the step of the first position of each."""
        order = np.argsort(first - last, kind="stable")  # the longest before
        for begin in range(0, len(order), AT_ONCE):
            some = order[begin : begin + AT_ONCE]
            longest = int((last - first)[some].max())
            length = max(FEWEST_STEPS, NUMBERS // (len(some) * self.codec.horizon * self.codec.d_step))
            scale = np.asarray(self.section.columns[SCALE])[series[some]]
            source = {SOURCE: torch.from_numpy(scale[:, :2].astype(np.float32))}
            for done in range(0, longest, length):
                n = min(length, longest - done)
                x = np.zeros((len(some), n, self.codec.d_in), np.float32)
                starts = first[some] + done
                for b, (k, start) in enumerate(zip(some.tolist(), starts.tolist())):
                    end = min(start + n, int(last[k]))
                    if end > start:
                        self._fill(x[b, : end - start], int(series[k]), start, end)
                yield Batch(torch.from_numpy(x), sources=source, fresh=done == 0), some, starts


class SeriesWindows(Sampler):
    """Windows of the training span in a random order; where every position has targets they overlap by three quarters,
    from an offset that differs between epochs."""

    def __init__(self, cutter: Cutter, batch_size: int, seed: int, sequence: int | None = None) -> None:
        """`sequence`: steps that a decoder writes behind a window, if one does."""
        super().__init__(cutter.section, seed)
        self.cutter, codec, self.sequence = cutter, cutter.codec, sequence
        last = np.asarray(cutter.section.columns[LAST])
        room = np.maximum(last - (sequence or codec.horizon) - _least_read(codec) + 1, 0)  # [n] ends of windows
        total = int(room.sum())
        if total == 0:
            raise DataError(
                f"no series has {_least_read(codec) + codec.horizon} steps for training, which a horizon of "
                f"{codec.horizon} needs; give longer series, or a smaller {option('horizon')}"
            )
        wanted = min(codec.lookback // OVERLAP, total // ENOUGH) if cutter.every else 1
        self.stride = max(wanted, 1, -(-total // MOST_WINDOWS))
        self.room = room
        self.counts = -(-room // self.stride)  # [n] windows
        self.starts = np.cumsum([0, *self.counts])
        self.n_windows = n = int(self.starts[-1])
        self.batch_size = min(batch_size, n)
        if n < batch_size:
            self.notes.append(f"the batch size is {n} instead of {batch_size}: there are no more examples")
        self.steps_per_epoch = n // self.batch_size
        self.tokens_per_step = self.batch_size * codec.lookback
        self._epoch = lru_cache(maxsize=1)(self._drawn)

    def _drawn(self, epoch: int) -> tuple[int, Whole]:
        random = random_of(self.seed, epoch)
        return int(random.integers(self.stride)), random.permutation(int(self.starts[-1]))

    def batch(self, step: int) -> Batch:
        epoch, i = divmod(step, self.steps_per_epoch)
        offset, order = self._epoch(epoch)
        chosen = order[i * self.batch_size : (i + 1) * self.batch_size]
        series = np.searchsorted(self.starts, chosen, side="right") - 1
        number = (chosen - self.starts[series]) * self.stride + offset
        ends = _least_read(self.cutter.codec) + np.minimum(number, self.room[series] - 1)
        spots = Spots(series, ends)
        return self.cutter.batch(spots) if self.sequence is None else self.cutter.pairs(spots, self.sequence)


def _least_read(codec: SeriesCodec) -> int:
    """Steps that are read at least before a forecast in training: half of what is read usually, or what there is."""
    return max(1, min(codec.lookback // 2, 64))
