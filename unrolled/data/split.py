"""Splits that do not leak: a stream by position, examples by a seeded hash that keeps exact duplicates together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError


def stream_cuts(total: int, shares: Mapping[str, float]) -> list[int]:
    """Where each section of a stream ends, in characters; the last one at the end of the text.

    >>> stream_cuts(1000, {"train": 0.9, "valid": 0.1})
    [900, 1000]
    """
    ends = [int(total * share + 1e-6) for share in accumulate(shares.values())]
    return [*ends[:-1], total]


def cut_pieces(pieces: Iterable[Any], cuts: list[int]) -> Iterator[tuple[int, Any]]:
    """The pieces of a stream with the number of the section they are in, cut where a section ends.

    >>> list(cut_pieces(["abcd", "efg"], [3, 6, 7]))
    [(0, 'abc'), (1, 'd'), (1, 'ef'), (2, 'g')]
    """
    section = position = 0
    for piece in pieces:
        while len(piece):
            while section < len(cuts) - 1 and position >= cuts[section]:
                section += 1
            room = cuts[section] - position if section < len(cuts) - 1 else len(piece)
            yield section, piece[:room]
            position += len(piece[:room])
            piece = piece[room:]


def row_key(text: Any, label: str | None, seed: int) -> int:
    """A 64-bit number for a text and its class; equal ones get equal numbers, and the seed decides their order."""
    data = text.encode("utf-8") if isinstance(text, str) else text.tobytes()
    tail = b"" if label is None else b"\0" + label.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data + tail, digest_size=8, salt=seed.to_bytes(16, "little"))
    return int.from_bytes(digest.digest(), "little")


def split_rows(keys: NDArray[np.uint64], shares: Mapping[str, float], name: str) -> NDArray[np.uint8]:
    """The number of the section of each row (0 train, 1 valid, 2 test).

    Rows with equal keys form a group. In the order of the keys, which is random but the same every time, groups fill
    the validation part, then the test part; the rest, and groups too large for a part, are for training.
    """
    groups, group_of, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    if len(groups) < len(shares):
        words = "one example" if len(groups) == 1 else f"{len(groups)} different examples"
        raise DataError(f"{name}: too small to split, there is only {words} for {len(shares)} parts; add more data")
    side = np.zeros(len(groups), np.uint8)
    free = np.ones(len(groups), bool)
    for number, share in list(enumerate(shares.values()))[1:]:
        most = int(free.sum()) - (len(shares) - number)  # something must be left for the parts after this, and training
        wanted = max(1, round(len(keys) * share))
        fits = np.flatnonzero(free & (sizes <= max(wanted, sizes[free].min())))
        middle = np.cumsum(sizes[fits]) - sizes[fits] / 2  # a group belongs to the part that its middle falls into
        chosen = fits[: min(most, max(1, int(np.searchsorted(middle, wanted, side="right"))))]
        side[chosen], free[chosen] = number, False
    return side[group_of]
