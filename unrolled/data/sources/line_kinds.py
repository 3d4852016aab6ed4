"""What the first lines of a plain text file show: labels, a class or a number behind a tab, or words with tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from unrolled.data.files.column_kinds import ColumnKind, Target, kind_of_cells, labelled_pair
from unrolled.data.reading import Answers
from unrolled.data.sources.labelled_table import KNOWN

FASTTEXT = "__label__"
LOOKED_AT = 300  # lines
LEAST = 20  # lines, of which something is said
MOST = 0.95  # share of words that have a tag
TAGGED = re.compile(r"\S+[_/][A-Z$.,:;'`\-]{1,8}[\d$]?")
WIDEST = 12  # columns of words with tags


class TwoCells(NamedTuple):
    """Lines of two cells: which is the target, of what kind, and whether the first line names both."""

    target: int
    answers: Target
    named: bool


def two_cells(lines: Sequence[str]) -> TwoCells | None:
    """Lines with one tab each, of which one side is a class or a number; None: they are something else."""
    rows = [line.split("\t") for line in lines[:LOOKED_AT] if line.strip()]
    if len(rows) < LEAST or any(len(row) != 2 for row in rows):
        return None
    named = {cell.strip().lower() for cell in rows[0]} <= KNOWN
    first, second = (kind_of_cells(cells) for cells in zip(*rows[named:]))
    found = labelled_pair(first, second)
    return None if found is None else TwoCells(*found, named)


def answers_in(lines: Sequence[str]) -> Answers | None:
    """The kind of targets that lines show; None: they are a text like others."""
    first, second = [*(lines[0].split()[:2] if lines else ()), "", ""][:2]
    if first.startswith(FASTTEXT):
        return "classes" if second.startswith(FASTTEXT) else "class"
    if found := two_cells(lines):
        return found.answers
    return "tags" if _have_tags(lines) or _are_columns(lines) else None


def _have_tags(lines: Sequence[str]) -> bool:
    """Sentences of word_TAG or word/TAG."""
    words = [word for line in lines[:LOOKED_AT] for word in line.split()]
    tagged = sum(TAGGED.fullmatch(word) is not None for word in words)
    return len(words) >= LEAST and tagged >= MOST * len(words)


def _are_columns(lines: Sequence[str]) -> bool:
    """A word a line with its tag behind, and blank lines between sentences."""
    rows = [line.split() for line in lines if not line.startswith("-DOCSTART-")]
    filled = [row for row in rows if row]
    widths = {len(row) for row in filled}
    if len(filled) < LEAST or len(widths) != 1 or not 2 <= min(widths) <= WIDEST:
        return False
    ends = sum(not after and bool(row) for row, after in pairwise(rows))
    tags: ColumnKind = kind_of_cells(row[-1] for row in filled)
    words: ColumnKind = kind_of_cells(row[0] for row in filled)
    return 1 < ends <= len(filled) / 2 and tags.is_names and not words.numbers and words.different > tags.different
