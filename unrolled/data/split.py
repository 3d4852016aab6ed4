"""Splits that do not leak: a stream by position, examples by a seeded hash that keeps exact duplicates together.

Labelled examples are split class by class (`stratified`), or by whole groups (`grouped`). Windows of series are split
by whole series, or by position where there are too few (`by_position`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option


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
    """A 64-bit number for a text and its class; equal ones get equal numbers, and the seed decides their order.

    Numbers are equal where they are so in single precision, in whichever they are held.
    """
    if isinstance(text, np.ndarray) and text.dtype == np.float64:
        text = text.astype(np.float32)
    data = text.encode("utf-8") if isinstance(text, str) else text.tobytes()
    tail = b"" if label is None else b"\0" + label.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data + tail, digest_size=8, salt=seed.to_bytes(16, "little"))
    return int.from_bytes(digest.digest(), "little")


def _require(n: int, n_parts: int, name: str) -> None:
    """As many different examples as parts, at least."""
    if n < n_parts:
        words = "only one example" if n == 1 else f"only {n} different examples"
        raise DataError(f"{name}: too small to split: {words} for {n_parts} splits; add more data")


def split_rows(keys: NDArray[np.uint64], shares: Mapping[str, float], name: str) -> NDArray[np.uint8]:
    """The number of the section of each row (0 train, 1 valid, 2 test).

    Rows with equal keys form a group. In the order of the keys, which is random but the same every time, groups fill
    the validation split, then the test split; the rest, and groups too large for a part, are for training.
    """
    groups, group_of, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    _require(len(groups), len(shares), name)
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


def stratified(
    keys: NDArray[np.uint64], classes: NDArray[np.int64], shares: Mapping[str, float], name: str
) -> NDArray[np.uint8]:
    """The number of the section of each row, so that the shares hold in each class as in the whole.

    Rows with equal keys (the same input) form a unit, which counts for the rarest of its classes. Class by class, in
    the order of the keys, units fill the sections after the first; what rounding owes one class the next one pays, and
    the last unit of a class is for training, so that nothing is asked that was never shown.
    """
    _, first, unit_of, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    _require(len(sizes), len(shares), name)
    rarity = np.bincount(classes)[classes]  # [n] how many rows have the class of this one
    stratum = classes[first].copy()  # [units]
    order = np.lexsort((classes, -rarity))  # the rarest class is written last
    stratum[unit_of[order]] = classes[order]
    side = np.zeros(len(sizes), np.uint8)
    owed = dict.fromkeys(range(1, len(shares)), 0.0)
    for each in np.unique(stratum):
        units = np.flatnonzero(stratum == each)  # in the order of their keys
        left = len(units)
        for number, share in list(enumerate(shares.values()))[1:]:
            owed[number] = min(owed[number], 1.0) + sizes[units].sum() * share
            for unit in units[side[units] == 0]:
                if owed[number] < 0.5 or left == 1:
                    break
                if owed[number] >= sizes[unit] / 2:  # else too large: a smaller one may follow
                    side[unit] = number
                    owed[number] -= sizes[unit]
                    left -= 1
    for number in range(1, len(shares)):
        if not (side == number).any():  # too few rows for any whole one: the first unit that training can spare
            spare = [unit for unit in np.flatnonzero(side == 0) if (stratum[side == 0] == stratum[unit]).sum() > 1]
            if not spare:
                part, n = list(shares)[number], len(np.unique(classes))
                raise DataError(
                    f"{name}: too small to split: no class has an example to spare for the {part} split "
                    f"({len(keys)} examples of {n} classes); add more data, or check that this is the column of "
                    "classes"
                )
            side[spare[0]] = number
    return side[unit_of]


def fold_shares(n_folds: int) -> dict[str, float]:
    """Equal sections, for cross-validation."""
    return {str(fold): 1 / n_folds for fold in range(n_folds)}


def together(keys: NDArray[np.uint64], owners: NDArray[np.integer]) -> NDArray[np.uint64]:
    """One key for all rows of an owner, the smallest of theirs: an owner of one row keeps its own.

    >>> together(np.array([5, 3, 9], np.uint64), np.array([0, 0, 1])).tolist()
    [3, 3, 9]
    """
    _, owner = np.unique(owners, return_inverse=True)
    least = np.full(owner.max(initial=0) + 1, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(least, owner, keys)
    return least[owner]


def by_position(series: NDArray[np.integer], shares: Mapping[str, float], name: str) -> NDArray[np.uint8]:
    """The number of the section of each row: in each series spans after each other, so that what is at one place of
    several versions of a series is in one section.

    >>> by_position(np.array([0, 0, 0, 0, 1, 1, 1, 1]), {"train": 0.5, "valid": 0.25, "test": 0.25}, "here").tolist()
    [0, 0, 1, 2, 0, 0, 1, 2]
    """
    _, owner, counts = np.unique(series, return_inverse=True, return_counts=True)
    order = np.argsort(owner, kind="stable")
    place = np.empty(len(series), np.int64)  # of each row in its series
    place[order] = np.arange(len(series)) - (np.cumsum(counts) - counts)[owner[order]]
    side = np.zeros(len(series), np.uint8)
    for length in np.unique(counts):
        rows = np.flatnonzero(counts[owner] == length)
        side[rows] = np.searchsorted(stream_cuts(int(length), shares), place[rows], side="right")
    if len(np.unique(side)) < len(shares):
        raise DataError(
            f"{name}: too small to split: {len(series)} windows cannot be divided into {len(shares)} splits"
        )
    return side


def grouped(groups: list[str], shares: Mapping[str, float], seed: int, name: str) -> NDArray[np.uint8]:
    """The number of the section of each row, whole groups (documents, speakers) to a section."""
    keys = np.array([row_key(group, None, seed) for group in groups], np.uint64)
    try:
        return split_rows(keys, shares, name)
    except DataError:
        raise DataError(
            f"{name}: {len(set(groups))} groups cannot be divided into {len(shares)} splits; give more groups "
            f"or another {option('split')}"
        ) from None
