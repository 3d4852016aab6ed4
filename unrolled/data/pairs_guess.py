"""Whether some data is pairs of texts, for translation, and not texts with classes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from unrolled.core.errors import UnrolledError
from unrolled.core.task import Guess
from unrolled.data.cells import is_number
from unrolled.data.labelled import BUILTIN, ending_of, part_in
from unrolled.data.pairs import Pair, open_pairs
from unrolled.data.pairs_config import PairReading
from unrolled.data.pairs_files import TABBED, TABLES, sides
from unrolled.data.plain import unpacked
from unrolled.data.tables import open_table

LOOKED_AT = 300  # pairs
LEAST = 0.5  # share of different targets; fewer are classes
FEW = 20  # different targets that may still be all there are in a small file


def guess_pairs(source: Any, given: Mapping[str, Any]) -> Guess | None:
    """What the beginning of the data, and what was said of it, show."""
    reading = PairReading.parse({key: given[key] for key in PairReading.model_fields if key in given})
    if given.get("column") or given.get("target") or given.get("condition"):
        return None  # said of the data of other tasks
    if reading.target_file or reading.source_column or reading.target_column:
        return Guess(0.95, "it was said where sources and targets are")
    if isinstance(source, str) and source.startswith(BUILTIN):
        from unrolled.data.pair_builtin import PROBLEMS

        known = source.removeprefix(BUILTIN).split(",")[0] in PROBLEMS
        return Guess(0.95, "it is built-in pairs") if known else None
    if not _could_be(source):
        return None
    try:
        found = list(islice(open_pairs(source, reading.updated({"skip_bad": True})), LOOKED_AT))
    except (UnrolledError, OSError):
        return None
    return Guess(0.9, "its examples are pairs of texts") if found and are_pairs(found) else None


def are_pairs(found: list[Pair]) -> bool:
    """Two texts each: not numbers, and not a few targets again and again, which are classes."""
    for texts in ([pair.source for pair in found], [pair.target for pair in found]):
        if sum(is_number(text) for text in texts) > 0.1 * len(texts):
            return False
    targets = {pair.target for pair in found}
    return len(targets) >= max(2, LEAST * len(found)) or (len(found) <= FEW and len(targets) > len(found) // 2)


def _could_be(source: Any) -> bool:
    """Whether a look is worth while: names that say so, or exactly two things to a line."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            return _is_aligned(path)
        if not path.is_file():
            return False
        if ending_of(path) in TABLES:
            return _named(path)
        return ending_of(path) in TABBED
    if isinstance(source, Mapping):
        return bool(source) and all(part_in(str(name)) for name in source) and _could_be(next(iter(source.values())))
    if isinstance(source, list) and source:
        first = source[0]
        if isinstance(first, Mapping):
            return sides([str(name) for name in first]) is not None
        return isinstance(first, tuple) and len(first) == 2 and all(isinstance(side, str) for side in first)
    return False


def _named(path: Path) -> bool:
    """Whether the columns of a table are called source and target, or by languages."""
    try:
        table = open_table(path)
        return table is not None and sides(table.columns()) is not None
    except UnrolledError:
        return False


def _is_aligned(folder: Path) -> bool:
    """Whether a folder has files train.xx and train.yy, whose endings are no kind of file that is known."""
    names = [unpacked(path.name) for path in folder.iterdir() if path.is_file()]
    endings = {name.rpartition(".")[2] for name in names if part_in(name) == "train"}
    return sides(sorted(endings)) is not None or {"source", "target"} <= endings or {"src", "tgt"} <= endings
