"""Sentences with a tag for each word: CoNLL-style columns, or `word_TAG` and `word/TAG` lines.

    EU B-ORG                          a word a line, a blank line between sentences; -DOCSTART- begins a document
                                      (.conllu: id, word, lemma, universal tag, and so on)
    The_DT dog_NN barks_VBZ ._.       a sentence a line; the tag is behind the last '_' or '/'

A file is a document, or the text from one -DOCSTART- to the next; `group = "file"` keeps documents together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.files.text_file import TextFile
from unrolled.data.formats import ending_of
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Answers, Reading

DOCUMENT = "-DOCSTART-"


def open_tagged(files: Sequence[Path], _folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    """Files of tagged sentences, or with `answers="none"` of sentences without tags."""
    if answers not in ("tags", "none"):
        raise UsageError(f"{name}: tagged words can give tags, not {answers}")
    if reading.group not in (None, "file", "document"):
        raise UsageError(
            f"{name}: the groups of tagged sentences are documents: {option('group', 'file')}, not '{reading.group}'"
        )
    form = form_of(files)
    folder = Path(os.path.commonpath([path.parent for path in files]))

    def read() -> Iterator[Labelled]:
        lost: list[int] = []
        for path in files:
            file = TextFile(path)
            columns = form == "columns"
            sentences = _columns(file, reading, answers) if columns else _pairs(file, form, reading, answers, lost)
            for document, example in sentences:
                group = f"{path.relative_to(folder).as_posix()} {document}" if reading.group else None
                yield example._replace(group=group)
            source.notes.update(file.notes)
        if lost:
            source.notes[f"{sum(lost)} words without a tag were skipped"] = None

    source = LabelledSource(name, "words", answers, read, {}, reading)
    return source


def form_of(files: Sequence[Path]) -> str:
    """`columns`, `_` or `/`, by the ending or by the first lines of the first file that is not empty.

    A list of other things among the documents (masc's categories.txt) would mislead, so most lines decide.
    """
    if all(ending_of(path) in READER.suffixes for path in files):
        return "columns"
    votes = {"_": 0, "/": 0, "columns": 0}
    for path in files[:20]:
        for number, line in enumerate(TextFile(path).lines()):
            if words := line.split():
                mark = next((m for m in "_/" if sum(m in w.strip(m) for w in words) > 0.5 * len(words)), "columns")
                votes[mark] += len(words)
            if number > 50:
                break
    return max(votes, key=lambda form: votes[form])


def _columns(file: TextFile, reading: Reading, answers: Answers) -> Iterator[tuple[int, Labelled]]:
    universal = ending_of(file.path) == ".conllu"  # id, word, lemma, tag, ...; "1-2" and "1.1" are no words
    word_column = 1 if universal else 0
    tag_column = 3 if universal and reading.tag_column == -1 else reading.tag_column
    words: list[str] = []
    tags: list[str] = []
    document, first, width = 0, 1, None

    def sentence() -> tuple[int, Labelled]:
        tags_or_none = list(tags) if answers == "tags" else None
        return document, Labelled(list(words), tags_or_none, f"{file.name}, line {first}")

    for number, line in enumerate([*file.lines(), ""], start=1):
        cells = line.split("\t") if "\t" in line else line.split()
        is_document = bool(cells) and cells[0] == DOCUMENT
        if (not "".join(cells).strip() or is_document) and words:
            yield sentence()
            words.clear()
            tags.clear()
        document += is_document
        if not "".join(cells).strip() or is_document or line.startswith("# "):
            continue
        place = f"{file.name}, line {number}"
        width = width or len(cells)
        if len(cells) != width:
            raise DataError(
                f"{place}: found {len(cells)} columns, but the first line has {width}; each word needs all columns"
            )
        if universal and not cells[0].isdigit():
            continue
        if not words:
            first = number
        words.append(cells[word_column].strip())
        if answers == "tags":
            tags.append(_tag(cells, tag_column, place))


def _tag(cells: list[str], column: int, place: str) -> str:
    if not -len(cells) <= column < len(cells) or len(cells) == 1:
        raise DataError(f"{place}: found {len(cells)} columns, so there is no column {column} for the tag")
    return cells[column].strip()


def _pairs(
    file: TextFile, mark: str, reading: Reading, answers: Answers, lost: list[int]
) -> Iterator[tuple[int, Labelled]]:
    """Sentences of one document; `lost` gets the number of words that each line has lost."""
    for number, line in enumerate(file.lines(), start=1):
        words: list[str] = []
        tags: list[str] = []
        held = ""  # words without a tag that wait for the next
        place = f"{file.name}, line {number}"
        for token in line.split():
            word, _, tag = token.rpartition(mark)
            if word and tag:
                words.append(held + word)
                tags.append(tag)
                held = ""
            elif reading.untagged == "error":
                raise DataError(
                    f"{place}: the word '{token[:30]}' has no tag after a '{mark}'; fix it, or use "
                    f"{option('untagged', 'join')} (to the next word) or {option('untagged', 'skip')}"
                )
            else:
                held += token + " "
                if reading.untagged == "skip":
                    lost.append(1)
                    held = ""
        if held:
            lost.append(len(held.split()))
        if words:
            yield 0, Labelled(words, tags if answers == "tags" else None, place)


READER = ReaderSpec(
    summary="words with tags, in columns",
    suffixes=(".conll", ".conllu", ".iob", ".iob2", ".bio"),
    gives="examples",
    read=open_tagged,
    many=True,
)
