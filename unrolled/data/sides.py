"""Who goes where: the part of every example, so that nothing that is measured was seen in training.

Equal inputs are in one part, and so are the examples of a group, the windows of a series, and the noisy versions of
one clean series. Where whole groups or series share an input, it is left out of the later part. Parts that the data
names itself stay as they are.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.codecs.labels import CLASS_CODECS
from unrolled.data.config import DataConfig
from unrolled.data.given_splits import ALL, PARTS, given_among, how_split, notes_on, own_shares
from unrolled.data.labelled import Bag, Labelled
from unrolled.data.reading import Answers, Fold
from unrolled.data.split import by_position, fold_shares, grouped, row_key, stratified, together

NAMED = (ALL, *PARTS)
WHOLE = Fold()  # no cross-validation


@dataclass(frozen=True)
class Scan:
    """What the first pass keeps of every example."""

    keys: NDArray[np.uint64]
    pairs: NDArray[np.uint64]
    classes: NDArray[np.int64]
    parts: NDArray[np.uint8]
    """the part that each names itself, as its number in NAMED"""
    groups: list[str] | None
    counts: Counter[str]
    classes_found: frozenset[str] = frozenset()
    """the names of all classes or tags"""
    series: NDArray[np.int64] | None = None
    """of windows: the number of the series that each was cut from"""
    clean: NDArray[np.uint64] | None = None
    """where targets are series: a key of each, whole; of one that never varies, such as silence, a key of its own"""


def scan_examples(examples: Iterable[Labelled], seed: int, answers: Answers) -> Scan:
    keys, pairs, classes = array("Q"), array("Q"), array("q")  # of very many examples too
    parts, series, whole = bytearray(), array("q"), []
    groups: list[str] = []
    found: set[str] = set()
    number_of: dict[str, int] = {}
    series_of: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for example in examples:
        content = _content(example.input)
        answer = example.answer
        keys.append(row_key(content, None, seed))
        pairs.append(row_key(content, str(answer.tolist() if isinstance(answer, np.ndarray) else answer), seed))
        stratum = "|".join(answer) if isinstance(answer, tuple) else answer if isinstance(answer, str) else ""
        classes.append(number_of.setdefault(stratum, len(number_of)))
        if parts and (example.group is None) == bool(groups):
            raise DataError(
                f"{example.place}: some examples have a group and others do not; give a group for all examples or for "
                "none"
            )
        parts.append(NAMED.index(example.part))
        if example.group is not None:
            groups.append(str(example.group))
        if answers == "series":
            whole.append(answer)
        if example.series is not None:
            series.append(series_of.setdefault(example.series, len(series_of)))
        counts[example.part] += 1
        if answers in CLASS_CODECS:
            found.update(CLASS_CODECS[answers].parts(answer))
    windows = np.array(series, np.int64) if series else None
    return Scan(
        np.frombuffer(keys, np.uint64),
        np.frombuffer(pairs, np.uint64),
        np.frombuffer(classes, np.int64),
        np.frombuffer(parts, np.uint8),
        groups or None,
        counts,
        frozenset(found),
        windows,
        _whole_answers(whole, windows, seed) if answers == "series" else None,
    )


def _content(value: Any) -> Any:
    """An input as a text or an array, equal where inputs are; of a bag whatever the order of its instances."""
    if not isinstance(value, Bag):
        return "\n".join(value) if isinstance(value, list) else value
    found = [_content(each) for each in value]
    if isinstance(found[0], str):
        return "\n\n".join(sorted(found))
    rows = sorted(each.astype(np.float32).tobytes() for each in found)  # of equal steps: [T, D] in the order of bytes
    return np.frombuffer(b"".join(rows), np.float32)


def _whole_answers(
    answers: Sequence[NDArray[Any]], windows: NDArray[np.int64] | None, seed: int
) -> NDArray[np.uint64]:  # fmt: skip
    """A key for the answer of each example, or for the whole series of answers that a window is from."""
    owners = np.arange(len(answers)) if windows is None else windows
    order = np.argsort(owners, kind="stable")
    found = np.zeros(len(answers), np.uint64)
    for rows in np.split(order, np.flatnonzero(np.diff(owners[order])) + 1):
        series = np.concatenate([answers[row] for row in rows])  # [T, D]
        varies = bool((series != series[0]).any())
        found[rows] = row_key(series, None if varies else f"alone {rows[0]}", seed)
    return found


def sides(
    scan: Scan, keep: NDArray[np.bool_], config: DataConfig, name: str, fold: Fold = WHOLE
) -> tuple[NDArray[np.int64], list[str], dict[str, Any]]:
    """The number of the part of every example (-1: left out), the names of the parts, and facts of the split."""
    shares = config.shares()
    side = np.full(len(keep), -1, np.int64)
    given = given_among(scan.counts, name)
    how, own = how_split(shares, given, config.split), own_shares(shares, given)
    names = [*(given or ["train"]), *(part for part in own if part != "train")]
    for number, part in enumerate(given):
        side[(scan.parts == NAMED.index(part)) & keep] = number
    open_rows = np.flatnonzero(side == 0 if given else keep)
    if len(own) > 1:
        side[open_rows] = np.array([names.index(part) for part in own])[_split(scan, open_rows, own, config.seed, name)]
    if fold.of is not None:
        how = _cross(scan, side, names, fold, config.seed, name)
    left_out = _leave_out(scan, side, names, [part for part in given if fold.of is None or part == "test"], name)
    facts = {"examples": int((side >= 0).sum()), "dropped": int((~keep).sum()), "split_is": how, "given": given}
    found = _repeats(scan, side, names)
    taken = notes_on(shares, [*given, "valid"] if given and fold.of is not None else given)
    return side, names, facts | found | {"notes": [*found["notes"], *left_out, *taken]}


def _split(scan: Scan, rows: NDArray[np.int64], shares: Mapping[str, float], seed: int, name: str) -> NDArray[np.uint8]:
    """The section of each row: equal inputs, the rows of a group and the windows of a series in one."""
    if scan.groups is not None:
        return grouped([scan.groups[row] for row in rows], shares, seed, name)
    units = _units(scan, rows)
    if scan.series is not None and len(np.unique(units)) < len(shares):  # fewer different series than parts
        return by_position(scan.series[rows], shares, name)
    return stratified(units, scan.classes[rows], shares, name)


def _units(scan: Scan, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A key of each row, the same for all that belong together: the smallest of theirs."""
    ties: list[NDArray[Any]] = [scan.keys[rows] if scan.series is None else scan.series[rows]]
    if scan.clean is not None:
        ties.append(scan.clean[rows])
    units, before = scan.keys[rows], None
    while before is None or (units != before).any():
        before = units
        for tie in ties:
            units = together(units, tie)
    return units


def _leave_out(
    scan: Scan, side: NDArray[np.int64], names: list[str], given: Sequence[str], name: str
) -> list[str]:  # fmt: skip
    """Take away, in place, the inputs of validation and test that are in a part before too, because groups or series
    that stay whole share them; parts that are given stay as they are. Returns notes."""
    if scan.groups is None and scan.series is None:
        return []
    notes = []
    for number, part in enumerate(names):
        if number == 0 or part in given:
            continue
        own = np.flatnonzero(side == number)
        before = np.isin(side, [i for i, other in enumerate(names) if i != number and (other in given or i < number)])
        again = own[np.isin(scan.keys[own], scan.keys[before])]
        if len(own) and len(again) == len(own):
            raise DataError(
                f"{name}: every input of the {part} split is in another split too; give more data or other groups"
            )
        side[again] = -1
        if len(again):
            notes.append(
                f"{len(again)} examples of the {part} split were left out, because their input is in another split too"
            )
    return notes


def _cross(scan: Scan, side: NDArray[np.int64], names: list[str], fold: Fold, seed: int, name: str) -> str:
    """Divide all that is not for test anew between training and validation, in place; returns how."""
    if "test" not in names:
        raise UsageError(
            f"{name}: folds need a test split that no fold contains; give a {option('split')} with three percentages"
        )
    assert fold.of is not None
    rows = np.flatnonzero((side >= 0) & (side != names.index("test")))
    own = _split(scan, rows, fold_shares(fold.of), seed, name)
    side[rows] = np.where(own == (-1 if fold.number is None else fold.number), names.index("valid"), 0)
    if fold.number is None:
        return f"all data outside the test split; each model was trained on {fold.of - 1} of {fold.of} folds"
    return f"fold {fold.number + 1} of {fold.of} for validation"


def _repeats(scan: Scan, side: NDArray[np.int64], names: list[str]) -> dict[str, Any]:
    """How many inputs are there again, and how many of other parts are in training too (given parts and groups)."""
    kept = side >= 0
    duplicates = int(kept.sum() - len(np.unique(scan.keys[kept])))
    seen = np.unique(scan.keys[side == 0])
    notes = []
    if duplicates:
        notes.append(f"{duplicates} examples have the same input as another one")
    leaks = {part: int(np.isin(scan.keys[side == i], seen).sum()) for i, part in enumerate(names) if i}
    for part, n in leaks.items():
        if n:
            notes.append(f"{n} inputs of {part} are in train too, because the splits are given")
    if duplicates and not any(leaks.values()):
        notes.append("equal inputs are in the same split")
    if scan.groups is not None:
        notes.append(f"each of the {len(set(scan.groups))} groups is in one split")
    elif scan.series is not None:
        notes.append(_of_series(scan, side))
    return {"duplicates": duplicates, "in_train_too": leaks, "notes": notes}


def _of_series(scan: Scan, side: NDArray[np.int64]) -> str:
    """How the windows of series were split."""
    assert scan.series is not None
    kept = side >= 0
    sides = {(series, part) for series, part in zip(scan.series[kept].tolist(), side[kept].tolist())}
    n = len({series for series, _ in sides})
    if len(sides) == n:
        return f"the windows of each of the {n} series are in one split"
    return f"{n} series are too few to keep each in one split, so their windows are split by position"
