"""From examples to a memory: all patterns are stored, and queries are damaged copies of them.

The training split holds the patterns; validation and test hold queries, each drawn with a seed of its own, so that what
is chosen by one is measured on the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.codecs.patterns import PatternCodec, Scaling, Vector, codec_of_texts, two_values
from unrolled.data.examples import INPUT, ROWS, Examples, Ragged
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.prepared import Prepared

Damage = Literal["flip", "mask", "cover", "noise"]
NAMES = "names"
QUERIES = 1000  # of a split at most
LARGEST = 1 << 28  # numbers of all patterns


@dataclass(frozen=True)
class Asked:
    """What a task wants to know of patterns."""

    bits: Literal["auto", "yes", "no"]
    threshold: float | None
    scaling: Scaling
    damage: Damage | None
    amount: float
    seed: int


def prepare_patterns(
    source: LabelledSource, asked: Asked, fitted: PatternCodec | None,
    damaged: Callable[[torch.Tensor, str, float, torch.Generator], torch.Tensor],
) -> Prepared:  # fmt: skip
    """Read all patterns, and draw queries."""
    examples, notes = list(source), dict(source.notes)
    codec = fitted or _fit(source, examples, asked, notes)
    every = np.stack([codec.encode(each.input, each.place) for each in examples])  # [n, d]
    first = np.sort(np.unique(every, axis=0, return_index=True)[1])
    if len(first) < len(every):
        notes[f"{len(every) - len(first)} patterns are equal to others and were stored once"] = None
    encoded, names = every[first], [examples[i].place for i in first]  # [N, d]
    kind = asked.damage or ("flip" if codec.are_bits else "noise")
    if kind == "flip" and not codec.are_bits:
        raise DataError(f"{source.name}: only bits can be flipped; set {option('damage', 'noise')}, mask or cover")
    rows = np.arange(min(len(encoded), QUERIES)) * len(encoded) // min(len(encoded), QUERIES)
    sections = {"train": _section(codec.keys(encoded), encoded, np.arange(len(encoded)), names)}
    for number, split in enumerate(("valid", "test"), 1):
        random = torch.Generator().manual_seed(asked.seed + number)
        queries = damaged(torch.from_numpy(encoded[rows]), kind, asked.amount, random).numpy()
        sections[split] = _section(codec.keys(queries), encoded[rows], rows, [names[i] for i in rows])
    facts = {
        "patterns": len(encoded), "numbers": codec.size, "shape": list(codec.shape), "bits": codec.are_bits,
        "damage": kind, "amount": asked.amount, "queries": len(rows), "notes": list(notes | dict(source.notes)),
    }  # fmt: skip
    digest = hashlib.sha256(encoded.tobytes()).hexdigest()
    told = {"kind": source.kind, "reading": source.reading.model_dump(mode="json")}
    return Prepared(sections, {"patterns": codec}, facts, digest, told)


def _fit(source: LabelledSource, examples: list[Labelled], asked: Asked, notes: dict[str, None]) -> PatternCodec:
    if source.kind == "words":
        raise DataError(f"{source.name}: patterns are texts, images or numbers, but this holds lists of words")
    if source.kind == "text":
        codec = codec_of_texts([each.input for each in examples])
    else:
        codec = _numbers(examples, asked, notes)
    if codec.size * len(examples) > LARGEST:
        raise DataError(f"{source.name}: {len(examples):,} patterns of {codec.size:,} numbers are too many to store")
    return codec


def _numbers(examples: list[Labelled], asked: Asked, notes: dict[str, None]) -> PatternCodec:
    first = np.asarray(examples[0].input, np.float64)
    arrays = [np.asarray(each.input, np.float64) for each in examples]
    shape = (first.shape[0], first.shape[1])
    pair = None if asked.bits == "no" else two_values(arrays)
    if pair is not None:
        return PatternCodec(shape, None, pair, sum(pair) / 2)
    if asked.bits == "yes" or asked.threshold is not None:
        cut = float(np.mean([array.mean() for array in arrays])) if asked.threshold is None else asked.threshold
        notes[f"numbers above {cut:g} are taken as 1, others as 0; {option('threshold')} changes that"] = None
        return PatternCodec(shape, None, (0.0, 1.0), cut)
    return PatternCodec(shape, scaling=asked.scaling)


def _section(x: Vector, target: Vector, rows: NDArray[np.int64], names: list[str]) -> Examples:
    each = np.arange(len(x) + 1)
    fields = {INPUT: Ragged(x, (each,)), TARGET: Ragged(target, (each,))}
    return Examples(fields, {ROWS: rows, NAMES: names})


def queries_of(given: list[tuple[Any, str]], codec: PatternCodec) -> Examples:
    """Patterns to complete, as a saved run takes them."""
    x = np.stack([codec.encode(value, place) for value, place in given])
    return _section(codec.keys(x), x, np.arange(len(x)), [place for _, place in given])
