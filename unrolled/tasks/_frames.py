"""Writing by CTC: a model predicts at every frame of its source, and the predictions are merged to a text."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.examples import Examples


def check_frames(section: Examples, part: str) -> None:
    """Refuse a target that its frames are too few for, before any work is done."""
    target, (offsets,) = section.values(TARGET), section.fields[TARGET].offsets
    repeats = np.concatenate([[0], np.cumsum(target[1:] == target[:-1])])  # up to and with each token
    first, last = offsets[:-1], np.maximum(offsets[1:] - 1, offsets[:-1])
    if not len(target):
        return
    inside = repeats[np.minimum(last, len(target) - 1)] - repeats[np.minimum(first, len(target) - 1)]
    needed = section.lengths(TARGET) + inside
    if (short := np.flatnonzero(section.lengths(SOURCE) < needed)).size:
        i = int(short[0])
        frames, tokens = int(section.lengths(SOURCE)[i]), int(section.lengths(TARGET)[i])
        raise DataError(
            f"example {int(section.rows[i]) + 1} of the data ({part} split): {frames} frames are too few for "
            f"{tokens} tokens with CTC, which needs {int(needed[i])}; use more frames (a smaller hop), longer "
            f"tokens ({option('tokens', 'bpe')}), or the attention objective"
        )


def mask_of(y: Tensor, batch: Batch) -> Tensor:
    """Which outputs [B, S, V] are real: those of the frames, one by one."""
    assert batch.mask is not None
    if y.shape[1] != batch.mask.shape[1]:
        raise UsageError(
            f"this model has {y.shape[1]} outputs for {batch.mask.shape[1]} frames, but CTC needs one per "
            "frame; choose a model that keeps the length, such as bilstm"
        )
    return batch.mask
