"""Batches of labelled examples: padded inputs, their mask, and answers.

    x [B, T] ids, [B, T, 1 + L] ids with letters, or [B, T, D] numbers;  mask [B, T] True = real, padding on the right
    y [B] classes;  [B, C] sets or numbers;  [B, T] tags, NO_ANSWER in the padding;  [B, T, D'] clean series

A sampler is a pure function of the step number, so that a training run resumes from one integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import TARGET, Batch
from unrolled.core.tokens import EMPTY, NO_ANSWER
from unrolled.data.epochs import AlikeInLength, pooled


@dataclass(frozen=True)
class LabelledSection:
    """One part of the data as arrays in memory."""

    x: NDArray[Any]
    """[N] or [N, 1 + L] ids, or [N, D] float32: all examples after each other"""
    offsets: NDArray[np.int64]
    """[n+1]: example i is x[offsets[i]:offsets[i+1]]"""
    y: NDArray[Any]
    """[n] int64 classes; [n, C] float32; where `aligned`, [N] int64 tags or [N, D'] float32"""
    aligned: bool
    """True: there is an answer at each step"""
    rows: NDArray[np.int64]
    """[n]: the number of each example in its source, counted from 0"""

    @property
    def n_examples(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_steps(self) -> int:
        return len(self.x)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def input(self, i: int) -> NDArray[Any]:
        return self.x[self.offsets[i] : self.offsets[i + 1]]

    def answer(self, i: int) -> Any:
        return self.y[self.offsets[i] : self.offsets[i + 1]] if self.aligned else self.y[i]

    def take(self, chosen: NDArray[np.int64]) -> LabelledSection:
        """Some examples, copied, in the order given."""
        spans = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in chosen]
        steps = np.concatenate([*spans, np.empty(0, np.int64)]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(self.lengths[chosen])]).astype(np.int64)
        y = self.y[steps if self.aligned else chosen]
        return replace(self, x=self.x[steps], offsets=offsets, y=y, rows=self.rows[chosen])

    def share(self, fraction: float) -> LabelledSection:
        """As many examples, evenly spread, as `fraction` says."""
        if fraction >= 1:
            return self
        n = max(1, round(fraction * self.n_examples))
        return self.take(np.arange(n) * self.n_examples // n)


def section_of(
    inputs: Sequence[NDArray[Any]], answers: Sequence[Any], aligned: bool, rows: Sequence[int]
) -> LabelledSection:
    """Encoded examples as a section; there must be one at least."""
    offsets = np.cumsum([0, *map(len, inputs)]).astype(np.int64)
    y = np.concatenate(answers) if aligned else np.stack(answers)
    return LabelledSection(np.concatenate(inputs), offsets, y, aligned, np.array(rows, np.int64))


def pad_labelled(section: LabelledSection, rows: NDArray[np.int64]) -> Batch:
    """These examples as one batch."""
    lengths = section.lengths[rows]
    width = int(lengths.max())
    inner = section.x.shape[1:]
    is_ids = section.x.dtype.kind in "iu"
    x = np.full((len(rows), width, *inner), EMPTY, np.int64 if is_ids else np.float32)  # [B, T] or [B, T, D]
    mask = np.arange(width) < lengths[:, None]  # [B, T]
    y: NDArray[Any]
    if section.aligned:
        tags = section.y.dtype.kind in "iu"
        shape = (len(rows), width, *section.y.shape[1:])
        y = np.full(shape, NO_ANSWER if tags else 0, np.int64 if tags else np.float32)  # [B, T] or [B, T, D']
    else:
        y = section.y[rows]  # [B] or [B, C]
    for i, row in enumerate(rows):
        x[i, : lengths[i]] = section.input(int(row))
        if section.aligned:
            y[i, : lengths[i]] = section.answer(int(row))
    return Batch(
        torch.from_numpy(x), torch.from_numpy(mask), {TARGET: torch.from_numpy(np.ascontiguousarray(y))},
        rows=torch.from_numpy(np.array(rows, np.int64)),
    )  # fmt: skip


class LabelledBatches(AlikeInLength):
    """Training batches, examples of about equal length together; a step has so many steps of input in the mean."""

    def __init__(self, section: LabelledSection, batch_size: int, seed: int = 0) -> None:
        super().__init__(section.lengths, batch_size, seed)
        self.section = section
        self.tokens_per_step = max(1, round(section.n_steps / self.steps_per_epoch))

    def batch(self, step: int) -> Batch:
        return pad_labelled(self.section, self.rows(step))


def labelled_batches(section: LabelledSection, batch_size: int) -> Iterator[Batch]:
    """Every example once for figures, those of about equal length together; `rows` says which is which."""
    order = pooled(np.arange(section.n_examples), section.lengths, batch_size)
    for start in range(0, len(order), batch_size):
        yield pad_labelled(section, order[start : start + batch_size])
