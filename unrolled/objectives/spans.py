"""Spans of tags: names, places and the like, written as B-X I-X I-X O (IOB2), found or not found as a whole.

A span counts as found when its kind and both its ends are right (Tjong Kim Sang & De Meulder 2003). An I-X that
continues nothing, after O or after another kind, begins a span of its own, so tags of the older IOB1 are read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from unrolled.objectives.classes import Hits


class Span(NamedTuple):
    """Positions start .. stop - 1."""

    kind: str
    start: int
    stop: int


def is_bio(tags: Iterable[str]) -> bool:
    """Whether a set of tags marks spans: O and B-X, I-X, nothing else, and at least one span.

    >>> is_bio(["O", "B-PER", "I-PER"]), is_bio(["NN", "VB", "O"]), is_bio(["O"])
    (True, False, False)
    """
    tags = set(tags)
    inside = {tag for tag in tags if tag[:2] in ("B-", "I-") and len(tag) > 2}
    return bool(inside) and tags - inside <= {"O"}


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of one sequence of tags.

    >>> spans(["B-PER", "I-PER", "O", "B-LOC", "B-LOC"])
    [Span(kind='PER', start=0, stop=2), Span(kind='LOC', start=3, stop=4), Span(kind='LOC', start=4, stop=5)]
    """
    found: list[Span] = []
    begun: tuple[str, int] | None = None
    for t, tag in enumerate([*tags, "O"]):
        mark, _, kind = tag.partition("-")
        continues = mark == "I" and begun is not None and begun[0] == kind
        if begun is not None and not continues:
            found.append(Span(*begun, t))
            begun = None
        if begun is None and mark in ("B", "I"):
            begun = kind, t
    return found


def span_hits(predicted: Iterable[Sequence[str]], actual: Iterable[Sequence[str]]) -> tuple[list[str], Hits]:
    """The kinds of spans, sorted, and the hits of each, over sequences of tags (without padding).

    `classes.micro_f1(hits)` is the usual span F1, `classes.class_table(hits, kinds)` the table by kind.
    """
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for guess, truth in zip(predicted, actual, strict=True):
        if len(guess) != len(truth):
            raise ValueError(f"{len(guess)} predicted tags for {len(truth)} true ones")
        said, real = set(spans(guess)), set(spans(truth))
        found.update(span.kind for span in said & real)
        false.update(span.kind for span in said - real)
        missed.update(span.kind for span in real - said)
    kinds = sorted({*found, *false, *missed})
    return kinds, Hits(*(torch.tensor([count[kind] for kind in kinds]) for count in (found, false, missed)))
