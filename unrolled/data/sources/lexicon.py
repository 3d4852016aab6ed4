"""Entries of a lexicon, a word and then its sounds, as pairs: `hello HH AH0 L OW1`.

What stands after a blank and `#`, and lines that begin with `#` or `;;;`, are comments. Further pronunciations of a
word, written `hello(2)`, are pairs of that word, so that all of them stay in one split.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from unrolled.data.files.cell_values import is_number
from unrolled.data.files.text_file import TextFile
from unrolled.data.pairs import Pair, PairSource
from unrolled.data.reading import PairReading

LOOKED_AT = 300  # lines
LEAST = 20  # entries, of which something is said
DIFFERENT = 0.5  # share of words that come once
SOUNDS, LETTERS = 0.1, 4  # different sounds by all of them, at most, and letters of a sound in the mean
COMMENT = re.compile(r"(^|\s)(#|;;;)(\s.*|$)")
AGAIN = re.compile(r"(?<=.)\(\d+\)$")


class Entry(NamedTuple):
    word: str
    sounds: tuple[str, ...]
    has_comment: bool
    is_again: bool


def entry_of(line: str) -> Entry | None:
    """The entry of a line; None: it is blank or a comment.

    >>> entry_of("aalborg(2) AA1 L B # place")
    Entry(word='aalborg', sounds=('AA1', 'L', 'B'), has_comment=True, is_again=True)
    """
    plain = COMMENT.sub("", line)
    word, *sounds = plain.split() or [""]
    once = AGAIN.sub("", word)
    return Entry(once, tuple(sounds), plain != line, once != word) if word else None


def are_entries(lines: Sequence[str]) -> bool:
    """Whether lines are words with their sounds: words that nearly all differ, followed by more or fewer of a few short
    signs again and again, which are no words of the first column."""
    found = [entry for line in lines[:LOOKED_AT] if (entry := entry_of(line))]
    sounds = [sound for entry in found for sound in entry.sounds]
    words, known = {entry.word for entry in found}, set(sounds)
    first = sum(not entry.is_again for entry in found)
    if len(found) < LEAST or not all(entry.sounds for entry in found) or len(words) < DIFFERENT * first:
        return False
    if len({len(entry.sounds) for entry in found}) == 1 and not all(map(str.strip, lines)):  # sentences in columns
        return False
    few = 1 < len(known) <= SOUNDS * len(sounds) and sum(map(len, sounds)) <= LETTERS * len(sounds)
    numbers = sum(map(is_number, known)) > len(known) / 2 or sum(map(is_number, words)) > len(words) / 2
    return few and not numbers and len(sounds) > len(found) and len(words & known) < 0.1 * len(words)


def is_lexicon(path: Path) -> bool:
    return are_entries(list(islice(TextFile(path).lines(), LOOKED_AT)))


def open_lexicon(path: Path, reading: PairReading) -> PairSource:
    """Every entry as a word and its sounds with blanks between them."""
    file = TextFile(path)

    def read() -> Iterator[Pair]:
        comments = again = 0
        for number, line in enumerate(file.lines(), start=1):
            entry = entry_of(line)
            comments += bool(line.strip()) and (entry is None or entry.has_comment)
            if entry is not None:
                again += entry.is_again
                yield Pair(entry.word, " ".join(entry.sounds), f"{path}, line {number}")
        if comments:
            source.notes[f"{path}: {comments:,} comments were left out"] = None
        if again:
            source.notes[f"{path}: {again:,} further pronunciations, such as word(2), belong to the same word"] = None
        source.notes.update(file.notes)

    told = f"{path}: each line is read as a word and, behind it, its target"
    source = PairSource(str(path), read, reading, {told: None})
    return source
