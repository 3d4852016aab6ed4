"""Texts and their classes in plain files: a folder or a file per class, fastText lines, or `text<TAB>label` lines.

positive/0001.txt                            a folder for each class, a file for each text
Greek.txt                                    a file for each class, a line for each text
__label__sport __label__news the text        fastText: the labels first
the text<TAB>sport                           the label last, or first where only that side has few different values
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, UsageError, some
from unrolled.data.files.cell_values import as_class, as_classes, as_number
from unrolled.data.files.file_names import named_files
from unrolled.data.files.text_file import TextFile, notes_of, unpacked
from unrolled.data.given_splits import ALL
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Answers, Reading
from unrolled.data.sources.line_kinds import FASTTEXT, LOOKED_AT, two_cells

LABEL = re.compile(r"__label__(\S+)\s*")


def open_folder(files: Sequence[Path], folder: Path, reading: Reading, answers: Answers) -> LabelledSource:
    """Folders of classes, or, where the files lie side by side, a file of lines for each class."""
    flat = all(path.parent == folder for path in files)
    if flat and reading.pattern is None:
        return _file_per_class(files, folder, reading, answers)
    found = named_files(files, folder, reading, answers)

    def read() -> Iterator[Labelled]:
        opened = [TextFile(named.path) for named in found]
        for file, (path, answer, group, part) in zip(opened, found, strict=True):
            yield Labelled(file.text(), answer, str(path), group, part)
        source.notes.update(dict.fromkeys(notes_of(opened)))

    source = LabelledSource(str(folder), "text", answers, read, {}, reading)
    return source


def _file_per_class(files: Sequence[Path], folder: Path, reading: Reading, answers: Answers) -> LabelledSource:
    if answers not in ("class", "none"):
        raise UsageError(f"{folder}: one file per class can give one class per line, not {answers}")
    if len(files) == 1 and answers == "class":
        raise DataError(
            f"{folder}: found only one file, {files[0].name}, so there is only one class; at least two are needed"
        )

    def read() -> Iterator[Labelled]:
        blank, opened = 0, [TextFile(path) for path in files]
        for path, file in zip(files, opened, strict=True):
            stem, _, ending = unpacked(path.name).rpartition(".")
            label = stem if ending == "txt" else ending
            for number, line in enumerate(file.lines(), start=1):
                if not line.strip():
                    blank += 1
                    continue
                group = path.name if reading.group else None
                yield Labelled(line, label if answers == "class" else None, f"{path}, line {number}", group)
        if blank:
            source.notes[f"{blank} blank lines were skipped"] = None
        source.notes.update(dict.fromkeys(notes_of(opened)))

    source = LabelledSource(str(folder), "text", answers, read, {}, reading)
    which = "file names" if all(unpacked(path.name).endswith(".txt") for path in files) else "endings of file names"
    source.notes[f"{folder}: the classes are the {which}, with one example per line"] = None
    return source


def open_lines(path: Path, reading: Reading, answers: Answers) -> LabelledSource:
    """A file of lines: fastText where the first line begins with __label__, otherwise text, a tab and the label, in the
    order that the first lines show."""
    file = TextFile(path)
    begin = list(islice((line for line in file.lines() if line.strip()), LOOKED_AT))
    first = begin[0] if begin else ""
    if first.startswith(FASTTEXT) and answers in ("numbers", "series"):
        raise UsageError(f"{path}: lines with __label__ can give classes, not {answers}")
    found = two_cells(begin)
    split = _fasttext if first.startswith(FASTTEXT) else _label_first if found and found.target == 0 else _tabbed

    def read() -> Iterator[Labelled]:
        blank, named = 0, found is not None and found.named
        for number, line in enumerate(file.lines(), start=1):
            if not line.strip():
                blank += 1
                continue
            if named:
                named = False
                source.notes[f"{path}: line {number} names the columns, so it is no example"] = None
                continue
            place = f"{path}, line {number}"
            text, answer = split(line, place, answers)
            yield Labelled(text, _answer(answer, answers, reading.class_separator, place), place, None, ALL)
        if blank:
            source.notes[f"{blank} blank lines were skipped"] = None
        source.notes.update(file.notes)

    source = LabelledSource(str(path), "text", answers, read, {}, reading)
    if found and answers != "none":
        order = "before" if found.target == 0 else "behind"
        source.notes[f"{path}: the target is {order} the tab of each line, chosen by its content"] = None
    return source


def _fasttext(line: str, place: str, answers: Answers) -> tuple[str, Any]:
    """`__label__a __label__b text`; without labels only where nothing is to be learned."""
    labels, at = [], 0
    while found := LABEL.match(line, at):
        labels.append(found[1])
        at = found.end()
    if answers == "none":
        return line[at:], None
    if not labels or (answers == "class" and len(labels) > 1):
        what = "no label at the start" if not labels else f"{len(labels)} labels ({some(labels)})"
        raise DataError(f"{place}: found {what}, expected one __label__ before the text")
    return line[at:], labels if answers == "classes" else labels[0]


def _tabbed(line: str, place: str, answers: Answers) -> tuple[str, Any]:
    text, tab, answer = line.rpartition("\t")
    if answers == "none":
        return (text if tab else line), None
    if not tab:
        raise DataError(
            f"{place}: found no tab, expected the text, a tab and the label (or __label__NAME and the text)"
        )
    return text, answer


def _label_first(line: str, place: str, answers: Answers) -> tuple[str, Any]:
    answer, tab, text = line.partition("\t")
    if not tab and answers != "none":
        raise DataError(f"{place}: found no tab, expected the label, a tab and the text, as in the first lines")
    return text if tab else line, None if answers == "none" else answer


def _answer(value: Any, answers: Answers, separator: str | None, place: str) -> Any:
    if answers == "class":
        return as_class(value, place)
    if answers == "classes":
        return as_classes(value, separator, place)
    if answers == "numbers":
        return np.array([as_number(value, place)])
    return None
