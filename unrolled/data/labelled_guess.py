"""Whether some data has answers, and of what kind: for tasks that are asked if a source is meant for them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from unrolled.core.errors import UnrolledError
from unrolled.data.cells import is_number
from unrolled.data.labelled import BUILTIN, CONLL, ending_of, open_labelled
from unrolled.data.labelled_arrays import ANSWER_ARRAYS
from unrolled.data.labelled_table import TARGETS
from unrolled.data.plain import TextFile
from unrolled.data.reading import Answers, Reading, names_of

LOOKED_AT = 300  # examples
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".ndjson", ".parquet", ".ts", ".npz")  # of files that may hold answers
MOST_WHOLE = 20  # different whole numbers that are still taken for classes


def guess_answers(source: Any, reading: Reading) -> Answers | None:
    """The kind of answers that the beginning of a source shows; None: it shows none, so it is no labelled data."""
    if isinstance(source, str) and source.startswith(BUILTIN):
        return _builtin(source)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_file() and ending_of(path) in CONLL:
            return "tags"
        if path.is_file() and ending_of(path) == ".txt":
            return _lines(source, reading)
        if path.is_file() and ending_of(path) not in ENDINGS:
            return None
    for answers in _order(reading):
        found = _answers(source, reading, answers)
        if found is not None:
            return _numbers_or_class(found) if answers == "class" else answers
    return None


def _order(reading: Reading) -> tuple[Answers, ...]:
    return ("classes",) if reading.separator is not None else ("class", "numbers", "tags", "series")


def _answers(source: Any, reading: Reading, answers: Answers) -> list[Any] | None:
    try:
        opened = open_labelled(source, reading, answers)
        chosen = {name.lower() for name in names_of(opened.reading.target)}
        if reading.target is None and chosen and not chosen & {*TARGETS[answers], *ANSWER_ARRAYS}:
            return None  # a column that is left over, such as a number of the row, is no sign of an answer
        return [example.answer for example in islice(opened, LOOKED_AT)]
    except UnrolledError:
        return None


def _builtin(source: str) -> Answers | None:
    from unrolled.data.labelled_builtin import PROBLEMS

    name = source.removeprefix(BUILTIN).split(",")[0]
    return "class" if name == "digits" else PROBLEMS[name].answers if name in PROBLEMS else None


def _lines(source: Any, reading: Reading) -> Answers | None:
    """A plain text is a stream to most tasks: only __label__ at its start, or a mark on every word, say otherwise."""
    for answers in ("class", "classes"):
        found = open_labelled(source, reading, answers)
        try:
            first = next(iter(found)).answer
        except UnrolledError:
            continue
        line = next(TextFile(source).lines(), "")
        return answers if first and line.startswith("__label__") else None
    return None


def _numbers_or_class(found: Iterable[str]) -> Answers:
    """Numbers with a fraction, or of many different values, are numbers."""
    names = set(found)
    if not all(is_number(name) for name in names):
        return "class"
    whole = all(float(name).is_integer() for name in names)
    return "class" if whole and len(names) <= MOST_WHOLE else "numbers"
