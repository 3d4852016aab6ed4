"""Whether some data is pairs of texts, for translation, and not texts with classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from unrolled.core.errors import UnrolledError
from unrolled.core.task import Guess
from unrolled.data.builtin_sets import builtin_holds
from unrolled.data.files.cell_values import is_number
from unrolled.data.files.column_kinds import kind_of_cells
from unrolled.data.files.tables import ListTable
from unrolled.data.files.text_file import unpacked
from unrolled.data.given_splits import part_in
from unrolled.data.look import Look
from unrolled.data.pairs import Pair, PairSource
from unrolled.data.reading import PairReading
from unrolled.data.sources.lexicon import are_entries
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.data.sources.pairs_files import LANGUAGES, TABBED, open_columns, sides

LOOKED_AT = 300  # pairs
LEAST = 0.5  # share of different targets; fewer are classes
FEW = 20  # different targets that may still be all there are in a small file


def guess_pairs(look: Look, given: Mapping[str, Any]) -> Guess | None:
    """What the beginning of the data, and what was said of it, show."""
    reading = PairReading.parse({key: given[key] for key in PairReading.model_fields if key in given})
    if given.get("column") or given.get("target") or given.get("condition"):
        return None  # said of the data of other tasks
    if reading.target_file or reading.source_column or reading.target_column:
        return Guess(0.95, "settings name the sources and targets")
    if look.builtin:
        return Guess(0.95, "it is built-in pairs") if builtin_holds(look.builtin, "pairs") else None
    if _is_aligned(look):
        return Guess(0.9, "its files are named after sources and targets")
    if look.table is None and are_entries(look.lines):
        return Guess(0.85, "its lines are words with their pronunciations")
    try:
        opened = _opened(look.first, reading.updated({"skip_bad": True}))
        found = [] if opened is None else list(islice(opened, LOOKED_AT))
    except UnrolledError:
        return None
    return Guess(0.9, "its examples are pairs of texts") if found and are_pairs(found) else None


def are_pairs(found: list[Pair]) -> bool:
    """Two texts each: not numbers, and not a few texts again and again on one side, which are classes."""
    for texts in ([pair.source for pair in found], [pair.target for pair in found]):
        if sum(is_number(text) for text in texts) > 0.1 * len(texts) or kind_of_cells(texts).is_names:
            return False
    targets = {pair.target for pair in found}
    return len(targets) >= max(2, LEAST * len(found)) or (len(found) <= FEW and len(targets) > len(found) // 2)


def _opened(look: Look, reading: PairReading) -> PairSource | None:
    """The first pairs, where names say that there are any, or where there are two things to a line."""
    if look.is_file and look.suffix in TABBED:
        return open_columns(_tabbed(look.lines, look.name), reading)
    if look.table is not None:
        return open_columns(look.table, reading) if sides(look.table.columns()) is not None else None
    rows = look.source[:LOOKED_AT] if isinstance(look.source, list) else []
    first = rows[0] if rows else ()
    both = isinstance(first, tuple) and len(first) == 2 and all(isinstance(side, str) for side in first)
    return open_pairs(rows, reading) if both else None


def _tabbed(lines: Sequence[str], name: str) -> ListTable:
    """Lines with tabs as rows; known names in the first of them are a header."""
    cells = [line.split("\t") for line in lines if line.strip()]
    first = [cell.strip() for cell in cells[0]] if cells else []
    named = sides(first) is not None
    names = first if named else [str(number) for number in range(1, len(first) + 1)]
    return ListTable([dict(zip(names, row)) for row in cells[named:]], name)


def _is_aligned(look: Look) -> bool:
    """Whether a folder has files train.xx and train.yy, whose endings are no kind of file that is known."""
    names = [unpacked(path.name) for path in look.beside()]
    endings = {name.rpartition(".")[2] for name in names if part_in(name) == "train"}
    several = len(endings & {*LANGUAGES}) > 1
    return several or sides(sorted(endings)) is not None or {"source", "target"} <= endings or {"src", "tgt"} <= endings
