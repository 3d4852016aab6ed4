"""Batches of separate examples that are too long to be trained on as a whole.

    Chunks    every example in chunks that follow one another, the state carried from one to the next; or, for models
              that cannot carry it, in chunks that stand alone
    Crops     one stretch of each example an epoch, drawn at random: for targets of the whole, or models that look ahead

Like all samplers they are pure functions of the step (sampler.py), and an epoch has the same number of steps each time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.core.batch import TARGET, Batch
from unrolled.core.outline import Outline
from unrolled.core.tokens import EMPTY
from unrolled.data.collate import Form, collate
from unrolled.data.examples import Examples, Ragged, Whole
from unrolled.data.sampler import Pooled, Sampler, random_of


def outline_of(lengths: Whole, joined: bool = False) -> Outline:
    """What is known of separate examples with these lengths, which may be cut.

    >>> outline_of(np.array([10, 10])).usual, outline_of(np.array([1, 99])).usual
    (10.0, 98.02)
    """
    total, squares = int(lengths.sum()), float((lengths.astype(np.float64) ** 2).sum())
    return Outline(len(lengths), total, int(lengths.max(initial=0)), squares / max(total, 1), cut=True, joined=joined)


def example_batches(examples: Examples, batching: Any, form: Form, carried: bool, seed: int) -> Sampler:
    """Training batches of separate examples: whole, or cut where they are longer than `batching.chunk`."""
    if batching.chunk is None or int(examples.lengths(form.x).max(initial=0)) <= batching.chunk:
        return Pooled(examples, batching.batch_size, form, seed)
    if form.ahead is None:
        return Crops(examples, batching.batch_size, batching.chunk, form, seed)
    return Chunks(examples, batching.batch_size, batching.chunk, form, carried, seed)


class Chunks(Sampler):
    """Every position of every example is a target once an epoch, in chunks of `length` positions.

    Carried: examples with equally many chunks stand side by side, as many as `batch_size`, and are read to their end,
    chunk by chunk; then come others. An example that ends before its neighbours leaves padding. Not carried: chunks of
    all examples in any order, each from the initial state.
    """

    def __init__(
        self, examples: Examples, batch_size: int, length: int, form: Form, carried: bool = True, seed: int = 0
    ) -> None:  # fmt: skip
        super().__init__(examples, seed)
        self.form, self.length, self.carried = form, length, carried
        assert form.ahead is not None
        vectors = examples.fields[form.x].values.ndim > 1
        positions = np.maximum(examples.lengths(form.x) + (1 if vectors else 2) - form.ahead, 1)  # as collate makes
        self.chunks = -(-positions // length)  # [n]
        self.batch_size = min(batch_size, len(positions) if carried else int(self.chunks.sum()))
        if carried:
            many = np.sort(self.chunks)[self.batch_size - 1 :: self.batch_size]
            rest = [] if len(positions) % self.batch_size == 0 else [int(self.chunks.max())]
            self.starts = np.cumsum([0, *many, *rest])  # the first step of each group of examples, and the last's end
            self.steps_per_epoch = int(self.starts[-1])
            self._drawn = lru_cache(maxsize=1)(self._groups)
        else:
            self.steps_per_epoch = -(-int(self.chunks.sum()) // self.batch_size)
            self._alone = lru_cache(maxsize=1)(self._places)
        self.tokens_per_step = max(1, round(int(positions.sum()) / self.steps_per_epoch))
        self._whole = lru_cache(maxsize=1)(lambda rows: collate(self.examples, np.array(rows), self.form))

    def batch(self, step: int) -> Batch:
        epoch, i = divmod(step, self.steps_per_epoch)
        if not self.carried:
            rows, places = self._alone(epoch)
            some = slice(i * self.batch_size, (i + 1) * self.batch_size)
            return stretches(collate(self.examples, rows[some], self.form), places[some], self.length)
        groups, starts = self._drawn(epoch)
        group = int(np.searchsorted(starts, i, side="right")) - 1
        chunk = i - int(starts[group])
        whole = self._whole(tuple(groups[group].tolist()))
        first = np.full(len(groups[group]), chunk * self.length)
        return replace(stretches(whole, first, self.length), fresh=chunk == 0)

    def _groups(self, epoch: int) -> tuple[list[Whole], Whole]:
        """Examples that are read together, in a random order, and the first step of each group."""
        random = random_of(self.seed, epoch)
        order = np.lexsort((random.random(len(self.chunks)), self.chunks))
        groups = [order[at : at + self.batch_size] for at in range(0, len(order), self.batch_size)]
        steps, turn = np.diff(self.starts), random.permutation(len(groups))
        return [groups[k] for k in turn], np.cumsum([0, *steps[turn]])

    def _places(self, epoch: int) -> tuple[Whole, Whole]:
        """The example of each chunk and where it begins, in a random order."""
        rows = np.repeat(np.arange(len(self.chunks)), self.chunks)
        ends = np.cumsum(self.chunks)
        places = (np.arange(len(rows)) - np.repeat(ends - self.chunks, self.chunks)) * self.length
        order = random_of(self.seed, epoch).permutation(len(rows))
        return rows[order], places[order]


class Crops(Pooled):
    """At most `length` positions of each example: another stretch of a longer one in every epoch."""

    def __init__(self, examples: Examples, batch_size: int, length: int, form: Form, seed: int = 0) -> None:
        self.length = length
        super().__init__(examples, batch_size, form, seed)

    def _lengths(self, field: Ragged) -> Whole:
        return np.minimum(field.lengths, self.length)

    def _steps(self, field: Ragged) -> int:
        return int(self._lengths(field).sum())

    def batch(self, step: int) -> Batch:
        whole = super().batch(step)
        assert whole.rows is not None
        too_long = self.examples.fields[self.form.x].lengths_at(whole.rows.numpy()) - self.length
        random = np.random.default_rng((self.seed, step, 1))
        first = (random.random(len(whole.rows)) * (np.maximum(too_long, 0) + 1)).astype(np.int64)
        return stretches(whole, first, self.length, aligned=TARGET in self.examples.fields)


def stretches(batch: Batch, first: Whole, length: int, aligned: bool = True) -> Batch:
    """The positions [first, first + length) of each row, and of its targets where these are aligned with positions.

    >>> x = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    >>> batch = Batch(x, x > 0)
    >>> found = stretches(batch, np.array([2, 0]), 2)
    >>> found.x.tolist(), found.mask.tolist()
    ([[3, 4], [5, 6]], [[True, True], [True, True]])
    """
    T = batch.x.shape[1]
    places = torch.from_numpy(first)[:, None] + torch.arange(min(length, int((T - first).max())))  # [B, length]
    rows, inside = torch.arange(len(first))[:, None], places < T

    def cut(values: Tensor) -> Tensor:
        found = values[rows, places.clamp(max=T - 1)]
        outside = ~inside.reshape(*inside.shape, *[1] * (found.ndim - 2))
        return found.masked_fill(outside, EMPTY) if bool(outside.any()) else found

    mask = None if batch.mask is None else cut(batch.mask)
    width = places.shape[1] if mask is None else max(int(mask.sum(1).max()), 1)
    found = replace(batch, x=cut(batch.x)[:, :width], mask=None if mask is None else mask[:, :width])
    if not aligned:
        return found
    targets = {name: cut(value)[:, :width] for name, value in batch.targets.items()}
    masks = {name: cut(value)[:, :width] for name, value in batch.target_masks.items()}
    return replace(found, targets=targets, target_masks=masks)
