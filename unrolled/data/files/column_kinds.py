"""What the cells of a column look like: texts, a few names again and again, numbers, or the numbers of rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Literal
from weakref import WeakKeyDictionary

from unrolled.core.errors import MissingColumn, UnrolledError, UsageError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import is_gap, is_number
from unrolled.data.files.tables import Table

LOOKED_AT = 300  # rows
FEW = 0.2  # different values by row, at most, that are names again and again
FEW_ALONE = 20  # different whole numbers that are still names
MANY = 0.5  # different values by row, at least, of texts
LONG_NAME = 40  # letters
WORDS, LETTERS = 3, 20  # of a text, in the mean, at least one of both
LONGER = 3  # times, that a text is longer than all others, so that it is the obvious one
COLUMNS = 4  # of numbers, one of which may be the class of the others
FEWEST = 10  # rows; of fewer nothing is said

TIME = re.compile(r"\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ]+\d{1,2}:.*)?|\d{1,2}:\d{2}(:\d{2}.*)?)\s*$")

NUMBERED = re.compile(r"(.*?)(\d+)$")
STEPS = 8  # columns with one name and consecutive numbers, at least, that are taken for steps
CODE = re.compile(r"\s*[+0]\d{6,}\s*$")  # digits that are no quantity, such as a number to call

Target = Literal["class", "numbers"]
_known: WeakKeyDictionary[Table, dict[str, ColumnKind]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ColumnKind:
    """Of some cells: how many there are and how many different ones, how long they are, whether they are numbers."""

    n: int
    different: int
    letters: float
    words: float
    numbers: bool
    whole: bool
    counts: bool
    """whether they number the rows"""
    in_runs: bool = False
    """whether equal ones come several times and stand together"""
    times: bool = False
    """whether they are dates or times of day"""

    @property
    def is_names(self) -> bool:
        """A few short values, each again and again; fractions are none."""
        few = 1 < self.different <= FEW * self.n and self.letters <= LONG_NAME
        return few and (not self.numbers or (self.whole and self.different <= FEW_ALONE))

    @property
    def is_various(self) -> bool:
        """Texts, or words that are nearly all different."""
        return not self.numbers and self.different >= MANY * self.n

    @property
    def is_text(self) -> bool:
        return self.is_various and not self.times and (self.words >= WORDS or self.letters >= LETTERS)


def kind_of_cells(cells: Iterable[Any]) -> ColumnKind:
    """What cells look like; those that are empty are left out, and of what is no text or number nothing is said."""
    known = [cell for cell in cells if not is_gap(cell)]
    numbers = bool(known) and all(map(is_number, known)) and not any(map(_is_code, known))
    texts = [cell if isinstance(cell, str) else str(cell) if is_number(cell) else "" for cell in known]
    values = [_value(cell) for cell in known] if numbers else []
    whole = numbers and all(value.is_integer() for value in values)
    counts = whole and len(values) > 1 and all(b - a == 1 for a, b in pairwise(values))
    n = max(len(texts), 1)
    return ColumnKind(
        len(texts), len(set(texts)), sum(map(len, texts)) / n, sum(len(text.split()) for text in texts) / n,
        numbers, whole, counts, 1 < len(set(texts)) < n and sum(a != b for a, b in pairwise(texts)) < len(set(texts)),
        bool(texts) and all(map(TIME.match, texts)),
    )  # fmt: skip


def _is_code(cell: Any) -> bool:
    return isinstance(cell, str) and CODE.match(cell) is not None


def _value(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:  # with a comma that may be either
        return 0.5


def kinds_in(table: Table, names: Sequence[str]) -> dict[str, ColumnKind]:
    """The kinds of some columns, by their first rows, as far as they can be read; found once for each table."""
    known = _known.setdefault(table, {})
    if new := [name for name in names if name not in known]:
        rows: list[tuple[Any, ...]] = []
        with suppress(UnrolledError):
            rows.extend(cells for _, cells in islice(table.rows(new), LOOKED_AT))
        columns = list(zip(*rows)) if rows else [()] * len(new)
        known |= {name: kind_of_cells(cells) for name, cells in zip(new, columns)}
    return {name: known[name] for name in names}


def obvious_text(kinds: Mapping[str, ColumnKind]) -> str | None:
    """The one column of texts; None: there is none, or there are several that are as likely."""
    texts = sorted((name for name, kind in kinds.items() if kind.is_text), key=lambda name: -kinds[name].letters)
    if texts and (len(texts) == 1 or kinds[texts[0]].letters >= LONGER * kinds[texts[1]].letters):
        return texts[0]
    words = [
        name for name, kind in kinds.items() if not (kind.numbers or kind.is_names or kind.times) and kind.n >= FEWEST
    ]
    return words[0] if not texts and len(words) == 1 and kinds[words[0]].is_various else None


def target_beside(text: str, kinds: Mapping[str, ColumnKind], others: Collection[str]) -> tuple[str, Target] | None:
    """The column that a text is labelled by, and with what, where there is just one such beside it, or where the last
    column of the table is one; not of several with numbers, which may be a class each."""
    rest = {name: kinds[name] for name in others if name != text and not kinds[name].counts}
    if kinds[text].n < FEWEST:
        return None
    classes = [name for name, kind in rest.items() if kind.is_names]
    alike = [name for name in classes if kinds[name].numbers]
    if len(classes) == 1 or (classes and classes[-1] == [*others][-1] and (len(alike) < 2 or alike[-1] != classes[-1])):
        return classes[-1], "class"
    numbers = [name for name, kind in rest.items() if kind.numbers and kind.different > 1 and not kind.is_names]
    return (numbers[0], "numbers") if not classes and len(numbers) == 1 and len(rest) == 1 else None


def names_before_numbers(kinds: Mapping[str, ColumnKind]) -> list[str]:
    """The first columns of a table of numbers that name its rows or groups of them; none where others hold words too,
    or where the names are so few that they may be classes."""
    words = [name for name, kind in kinds.items() if not kind.numbers]
    names = [name for name in words if kinds[name].words < 2 and kinds[name].letters <= LONG_NAME]
    many = all(kinds[name].different > FEW_ALONE for name in names)
    enough = len(kinds) - len(words) >= COLUMNS
    return names if enough and many and words == names == list(kinds)[: len(names)] else []


def class_at_an_end(kinds: Mapping[str, ColumnKind]) -> str | None:
    """The last or first column of a table of numbers, where that one has names or a few whole numbers, and each of the
    others has at least twice as many different values."""
    before = set(names_before_numbers(kinds))
    names = [name for name in kinds if name not in before]
    ends = [name for name in (names[0], names[-1]) if kinds[name].is_names] if len(names) >= COLUMNS else []
    found = min(ends, key=lambda name: kinds[name].different, default=None)
    others = [kinds[name] for name in names if name != found]
    if found is None or not all(kind.numbers for kind in others):
        return None
    constant = [kind for kind in others if kind.different < 2]  # such as a pixel that is always dark
    most = min((kind.different for kind in others if kind not in constant), default=0)
    return found if most >= 2 * kinds[found].different else None


def number_beside_steps(kinds: Mapping[str, ColumnKind]) -> str | None:
    """The last or first column of a table of numbers, where all others are one name with consecutive numbers, such as
    the steps of a series."""
    names = list(kinds)
    for name in (names[-1], names[0]) if len(names) > STEPS else ():
        parts = [NUMBERED.match(other) for other in names if other != name]
        found = [(part[1], int(part[2])) for part in parts if part is not None]
        consecutive = all(a[0] == b[0] and b[1] - a[1] == 1 for a, b in pairwise(found))
        own = NUMBERED.match(name)
        if own is not None and found and own[1] == found[0][0]:  # one of the steps
            continue
        if len(found) == len(names) - 1 and consecutive and all(kind.numbers for kind in kinds.values()):
            return name if kinds[name].different > 1 else None
    return None


def labelled_pair(first: ColumnKind, second: ColumnKind) -> tuple[int, Target] | None:
    """Which of two columns is the target of the other, and of what kind; None: neither is."""
    kinds = {"0": first, "1": second}
    for target, text in (("1", "0"), ("0", "1")):
        if kinds[text].is_various and (found := target_beside(text, kinds, [target])):
            return int(target), found[1]
    return None


def choose_column(table: Table, column: str | None, condition: str | None, part: str | None = None) -> str:
    """Which column holds the text, beside those of the class and of the split; a choice that is not plain is asked
    for, not guessed."""
    names = table.columns()
    for setting, wanted in (("column", column), ("data.condition", condition), ("part", part)):
        if wanted is not None and wanted not in names:
            raise MissingColumn(table.name, wanted, option(setting), names)
    if column is None:
        others = [name for name in names if name not in (condition, part)]
        obvious = None if "text" in others or len(others) < 2 else obvious_text(kinds_in(table, others))
        if len(others) != 1 and "text" not in others and obvious is None:
            known = f"it has {some(names)}"
            other = f"or which column to predict with {option('target')}"
            if len(others) == 2:
                other += f", or of pairs of texts {option('source_column')} and {option('target_column')}"
            raise UsageError(f"{table.name}: name the column of the text with {option('column')}, {other}; {known}")
        column = others[0] if len(others) == 1 else obvious or "text"
        if obvious is not None:
            table.notes[f"{table.name}: the text is column {obvious}, chosen by its content"] = None
    if column == condition:
        raise UsageError(f"{table.name}: column '{column}' cannot be both the text and the condition")
    return column
