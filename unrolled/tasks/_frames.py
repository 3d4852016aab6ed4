"""Writing by CTC: a model answers at every frame of its source, and what it says is merged to a text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from unrolled.core.batch import TARGET, Batch
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.pairs_batch import PairExamples, PairSection, pair_batches

TOKENS = 8192  # positions of a batch


def as_frames(batch: Batch) -> Batch:
    """A batch of pairs as frames x [B, S, D] with their mask, and targets y [B, T] without <start> and <stop>."""
    assert batch.source is not None
    return Batch(batch.source, batch.source_mask, {TARGET: batch.x[:, 1:]}, rows=batch.rows)


class FrameExamples:
    """Training batches of frames, in the order of `PairExamples`."""

    def __init__(self, pairs: PairExamples) -> None:
        self._pairs = pairs
        self.steps_per_epoch, self.tokens_per_step = pairs.steps_per_epoch, pairs.tokens_per_step
        self.notes = pairs.notes

    def epoch(self, step: int) -> int:
        return self._pairs.epoch(step)

    def batch(self, step: int) -> Batch:
        return as_frames(self._pairs.batch(step))


def check_frames(section: PairSection, part: str) -> None:
    """Refuse a target that its frames are too few for, before any work is done."""
    target, offsets = section.target, section.target_offsets
    repeats = np.concatenate([[0], np.cumsum(target[1:] == target[:-1])])  # up to and with each token
    first, last = offsets[:-1], np.maximum(offsets[1:] - 1, offsets[:-1])
    if not len(target):
        return
    inside = repeats[np.minimum(last, len(target) - 1)] - repeats[np.minimum(first, len(target) - 1)]
    needed = section.target_lengths + inside
    if (short := np.flatnonzero(section.source_lengths < needed)).size:
        i = int(short[0])
        frames, tokens = int(section.source_lengths[i]), int(section.target_lengths[i])
        raise DataError(
            f"example {int(section.rows[i]) + 1} of the data (part {part}): {frames} frames cannot say {tokens} tokens "
            f"by CTC, which needs {int(needed[i])}; take frames that follow one another faster (a smaller hop), "
            f"longer tokens ({option('tokens', 'bpe')}), or the attention objective"
        )


def mask_of(y: Tensor, batch: Batch) -> Tensor:
    """Which outputs [B, S, V] are real: those of the frames, one by one."""
    assert batch.mask is not None
    if y.shape[1] != batch.mask.shape[1]:
        raise UsageError(
            f"this model gives {y.shape[1]} outputs for {batch.mask.shape[1]} frames, but CTC needs one for each; "
            "choose a model that keeps the length, such as bilstm"
        )
    return batch.mask


def frame_batches(section: PairSection) -> Iterator[Batch]:
    """Every example once; `rows` says which is which."""
    return map(as_frames, pair_batches(section, TOKENS))
