"""From examples to batches: the only place of padding, which is on the right, and of the shift from input to target.

    next      x_t = token t, y_t = token t + ahead, between <start> and <stop>; vectors begin with one of zeros instead
    beside    x with its own targets: y_t of each step, or one y of the whole

A target is <empty> (tags: NO_ANSWER) where nothing is to be predicted; numbers have a mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.tokens import EMPTY, NO_ANSWER, START, STOP
from unrolled.data.examples import ENDS, INPUT, Column, Examples, Ragged, Whole


@dataclass(frozen=True)
class Form:
    """Which field a model reads and what its target is; a source goes along with what is continued."""

    x: str
    ahead: int | None = None
    """the target is x itself so many steps on; None: it is beside x, of each step (a field) or the whole (a column)"""
    filling: int = NO_ANSWER
    """what stands behind the last target of each step, where these are ids"""


NEXT = Form(TARGET, ahead=1)
BESIDE = Form(INPUT)
FRAMES = Form(SOURCE, filling=EMPTY)  # the source with its target beside it, as CTC takes them


def collate(examples: Examples, rows: Whole, form: Form) -> Batch:
    """These examples as one batch."""
    numbers = torch.from_numpy(np.array(rows, np.int64))
    if form.ahead is not None:
        return _continued(examples, rows, form.x, form.ahead, numbers)
    x, mask = pad(examples.fields[form.x], rows)
    targets = {}
    if TARGET in examples.fields:
        targets = {TARGET: torch.from_numpy(pad(examples.fields[TARGET], rows, form.filling)[0])}  # [B, T] + [D']
    elif TARGET in examples.columns:
        targets = {TARGET: torch.from_numpy(np.ascontiguousarray(examples.values(TARGET)[rows]))}  # [B] or [B, C]
    return Batch(torch.from_numpy(x), torch.from_numpy(mask), targets, rows=numbers)


def pad(field: Ragged, rows: Whole, filling: int = EMPTY) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Sequences [B, T] + [D] of ids (int64) or numbers (float32), and their mask [B, T]; of bags [B, I, T] etc."""
    if len(field.offsets) > 1:
        return _pad_bags(field.take(rows), filling)
    lengths = field.lengths_at(rows)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # [B, T]
    ids = field.values.dtype.kind in "iu"
    kind = np.int64 if ids else np.float32
    values = np.full((*mask.shape, *field.values.shape[1:]), filling if ids else 0, kind)
    for i, row in enumerate(rows):
        values[i, : lengths[i]] = field[int(row)]
    return values, mask


def _pad_bags(bags: Ragged, filling: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    places = np.arange(bags.lengths.max(initial=0)) < bags.lengths[:, None]  # [B, I]
    lengths = np.zeros(places.shape, np.int64)
    lengths[places] = bags.inside.lengths
    mask = np.arange(lengths.max(initial=0)) < lengths[..., None]  # [B, I, T]
    ids = bags.values.dtype.kind in "iu"
    values = np.full((*mask.shape, *bags.values.shape[1:]), filling if ids else 0, np.int64 if ids else np.float32)
    values[mask] = bags.values  # both in the order of bags, instances and steps
    return values, mask


def _continued(examples: Examples, rows: Whole, name: str, ahead: int, numbers: torch.Tensor) -> Batch:
    field, real = examples.fields[name], None
    if field.values.ndim == 1:
        x, y = _framed_ids(field, rows, examples.columns.get(ENDS), ahead)
    else:
        x, y, real = _framed_vectors(field, rows, ahead)
    masks = {} if real is None else {TARGET: torch.from_numpy(real)}
    sources, source_masks = {}, {}
    if SOURCE in examples.fields:
        source, mask = pad(examples.fields[SOURCE], rows)  # [B, S] + [D]
        sources, source_masks = {SOURCE: torch.from_numpy(source)}, {SOURCE: torch.from_numpy(mask)}
    elif SOURCE in examples.columns:
        sources = {SOURCE: torch.from_numpy(examples.values(SOURCE)[rows].astype(np.int64))}  # [B]
    targets = {TARGET: torch.from_numpy(y)}
    return Batch(
        torch.from_numpy(x), targets=targets, target_masks=masks, sources=sources, source_masks=source_masks,
        rows=numbers,
    )  # fmt: skip


def _framed_ids(field: Ragged, rows: Whole, ends: Column | None, ahead: int) -> tuple[Whole, Whole]:
    """`<start> t1 .. tn` and `t1 .. tn <stop>` (for ahead = 1); what was cut has no <stop> to predict."""
    lengths = field.lengths_at(rows)
    width = max(int(lengths.max()) + 2 - ahead, 1)
    whole = np.full((len(rows), width + ahead), EMPTY, np.int64)  # [B, T + ahead]
    whole[:, 0] = START
    for i, (row, n) in enumerate(zip(rows.tolist(), lengths.tolist())):
        whole[i, 1 : n + 1] = field[row]
        whole[i, n + 1] = STOP if ends is None or ends[row] else EMPTY
    x, y = whole[:, :width].copy(), whole[:, ahead:].copy()
    x[np.arange(width) >= np.maximum(lengths + 2 - ahead, 1)[:, None]] = EMPTY  # what has no target is not read
    return x, y


def _framed_vectors(
    field: Ragged, rows: Whole, ahead: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:  # fmt: skip
    """`0 v1 .. vn-1` and `v1 .. vn` (for ahead = 1): every vector is predicted once; there is no <stop>."""
    width = max(int(field.lengths_at(rows).max()) + 1 - ahead, 1)
    x = np.zeros((len(rows), width, field.values.shape[1]), np.float32)  # [B, T, D]
    y, mask = np.zeros_like(x), np.zeros(x.shape[:2], bool)
    for i, row in enumerate(rows):
        values = field[int(row)]
        n = len(values) + 1 - ahead  # positions with a target
        x[i, 1 : max(n, 1)] = values[: max(n - 1, 0)]
        y[i, : max(n, 0)] = values[ahead - 1 :]
        mask[i, : max(n, 0)] = True
    return x, y, mask


def collate_spans(
    examples: Examples, first: Whole, last: Whole, counted: Whole, width: int, ahead: int = 1
) -> Batch:  # fmt: skip
    """Spans of a stream, [first, last) of each row, as one batch; only positions from `counted` on have a target."""
    tokens = examples.values(TARGET)
    x = np.full((len(first), width), EMPTY, np.int64)  # [B, T]
    y = np.full_like(x, EMPTY)
    for row, (begin, end, told) in enumerate(zip(first.tolist(), last.tolist(), counted.tolist())):
        if begin < end:
            x[row, : end - begin] = tokens[begin:end]
        if (told := max(told, begin)) < end:
            y[row, told - begin : end - begin] = tokens[told + ahead : end + ahead]
    return Batch(torch.from_numpy(x), targets={TARGET: torch.from_numpy(y)})


def n_targets(examples: Examples, ahead: int = 1) -> int:
    """How much there is to predict in sequences that are continued, <stop> among it."""
    field = examples.fields[TARGET]
    if field.values.ndim > 1:  # vectors have no <stop>
        return int(np.maximum(field.lengths + 1 - ahead, 0).sum())
    possible = field.lengths + 2 - ahead
    return int((np.maximum(possible, 0) - ((possible > 0) & ~examples.ends)).sum())
