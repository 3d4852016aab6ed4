"""Sentences to tag, from files: in a form of training, whose tags are left out, or plain words, a sentence a line.

A tag is not part of its word. Whether a file has tags is decided by those of the run: most words carry one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from unrolled.core.errors import DataError
from unrolled.data.files.text_file import TextFile
from unrolled.data.formats import ending_of, suffixes_giving
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.readers.conll import DOCUMENT, READER, form_of, open_tagged
from unrolled.data.reading import Reading

LOOKED_AT = 1000  # words of a file
MARKS = "_/"


def sentence_files(path: Path) -> list[Path]:
    """The files of sentences at a path; none where there is something else."""
    if path.is_file():
        claimed = {*suffixes_giving("table"), *suffixes_giving("examples")} - {*READER.suffixes}
        return [] if ending_of(path) in claimed else [path]
    found = (file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
    return sorted(file for file in found if ending_of(file) in (".txt", *READER.suffixes))


def open_words(files: Sequence[Path], reading: Reading, tags: Collection[str]) -> LabelledSource:
    """The words of all sentences in some files; `tags` are those of the run."""
    known = frozenset(tags)

    def read() -> Iterator[Labelled]:
        for path in files:
            if _has_tags(path, reading, known):
                yield from open_tagged([path], path.parent, str(path), reading, "none")
            else:
                yield from _plain(path)

    return LabelledSource(str(files[0]), "words", "none", read, {}, reading)


def words_alone(words: list[str], tags: Collection[str]) -> list[str]:
    """The words of one line, without tags where most of them carry one that is known.

    >>> words_alone(["The_DT", "dog_NN"], ["DT", "NN"]), words_alone(["snake_case", "dog"], ["DT", "NN"])
    (['The', 'dog'], ['snake_case', 'dog'])
    """
    for mark in MARKS:
        cut = [word.rpartition(mark) for word in words]
        if 2 * sum(bool(word) and tag in tags for word, _, tag in cut) > len(words):
            return [word if word and tag else word + sign + tag for word, sign, tag in cut]
    return words


def _plain(path: Path) -> Iterator[Labelled]:
    for number, line in enumerate(TextFile(path).lines(), start=1):
        if words := line.split():
            yield Labelled(words, None, f"{path}, line {number}")


def _has_tags(path: Path, reading: Reading, tags: Collection[str]) -> bool:
    """Whether a file is in a form of training; one whose words carry other tags is refused."""
    if ending_of(path) in READER.suffixes:
        return True
    form = form_of([path])
    cells = [row for row in islice(_carried(path, form), LOOKED_AT) if row]
    at = reading.tag_column if form == "columns" else -1
    found = [row[at] if len(row) > 1 and -len(row) <= at < len(row) else "" for row in cells]
    known = [tag for tag in found if tag in tags]
    if 2 * len(known) > len(found) and (form != "columns" or _are_columns(cells, known)):
        return True
    tabs = form == "columns" and any("\t" in line for line in islice(TextFile(path).lines(), LOOKED_AT))
    if tabs or form != "columns":
        other = next((tag for tag in found if tag and tag not in tags), "")
        raise DataError(
            f"{path}: its words seem to have tags, but most of them, such as '{other[:20]}', are not tags of "
            "this run; give the words alone, one sentence per line, or lists of words in a .jsonl file"
        )
    return False


def _are_columns(cells: list[list[str]], known: list[str]) -> bool:
    """Whether lines are equally long, and more than the full stop at the end of a sentence, which may be a tag too."""
    worded = sum(any(map(str.isalnum, tag)) for tag in known)
    return len({len(row) for row in cells}) == 1 and 4 * worded > len(cells)


def _carried(path: Path, form: str) -> Iterator[list[str]]:
    """A word and what it carries: the cells of each line, or what is before and after the mark of each word."""
    for line in TextFile(path).lines():
        if form != "columns":
            yield from (token.rsplit(form, 1) for token in line.split())
        elif not line.startswith(("# ", DOCUMENT)):
            yield [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
