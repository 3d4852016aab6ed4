"""Whether some data has targets, and of what kind: for tasks that are asked if a source is meant for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from unrolled.core.errors import MissingColumn, UnrolledError
from unrolled.core.front import option
from unrolled.data.builtin_sets import known
from unrolled.data.files.cell_values import is_number
from unrolled.data.files.file_names import named_files
from unrolled.data.files.folders import is_about
from unrolled.data.files.tables import Table
from unrolled.data.files.text_file import TextFile
from unrolled.data.formats import ending_of, suffixes_of
from unrolled.data.labelled import LabelledSource
from unrolled.data.look import Look
from unrolled.data.readers.arrays import ANSWER_ARRAYS, open_arrays
from unrolled.data.reading import Answers, Names, Reading, names_of
from unrolled.data.sources.labelled_table import TARGETS, open_columns, target_by_content
from unrolled.data.sources.line_kinds import answers_in
from unrolled.data.sources.open_labelled import by_ending, most_of

LOOKED_AT = 300  # examples
FILES = 3  # of a folder of texts
MOST_WHOLE = 20  # different whole numbers that are still taken for classes
NOISY = {"noisy", "clean"}  # folders of sounds that belong together by name


def guess_answers(look: Look, reading: Reading) -> Answers | None:
    """The kind of targets that a source shows; None: it shows none, so it is no labelled data."""
    found: Answers | None = look.once(("answers", reading), lambda: _guess(look.first, reading))
    return found


def _guess(look: Look, reading: Reading) -> Answers | None:
    if look.builtin:
        return _builtin(look.builtin)
    if look.folder is not None:
        return _by_names(look, reading)
    if look.suffix in suffixes_of("conll") and look.lines:
        return "tags"
    if look.suffix == ".ts":
        return _of_header(look.lines)
    if look.table is None and look.lines:
        return answers_in(look.lines)
    if look.table is not None:
        _require_columns(look.table, target=reading.target, column=reading.column, bag=reading.bag)
    tried = {answers: _answers(look, reading, answers) for answers in _order(reading)}
    best = max(tried, key=lambda answers: tried[answers].fits)
    found = tried[best].answers
    return None if not found else _numbers_or_class(found) if best == "class" else best


def _require_columns(table: Table, **named: Names | None) -> None:
    """Columns that are named must be there, whatever the task."""
    try:
        known = table.columns()
    except UnrolledError:  # told by whoever prepares the data
        return
    for setting, wanted in named.items():
        for name in names_of(wanted, known):
            if name not in known:
                raise MissingColumn(table.name, name, option(setting), known)


def _order(reading: Reading) -> tuple[Answers, ...]:
    return ("classes",) if reading.class_separator is not None else ("class", "numbers", "tags", "series")


class _Tried(NamedTuple):
    """The first targets, read as of one kind."""

    answers: list[str]
    whole: bool  # all of them are of that kind

    @property
    def fits(self) -> tuple[bool, int]:
        """The first kind that all are of, otherwise the one that most are: a bad cell makes no other task of it."""
        return (True, 0) if self.answers and self.whole else (False, len(self.answers))


def _answers(look: Look, reading: Reading, answers: Answers) -> _Tried:
    found: list[str] = []
    try:
        opened = _opened(look, reading, answers)
        chosen = set() if opened is None else {name.lower() for name in names_of(opened.reading.target)}
        if opened is None:
            return _Tried([], False)
        if reading.target is None and chosen and not chosen & {*TARGETS[answers], *ANSWER_ARRAYS}:
            found_by = look.table and target_by_content(look.table, reading)
            if not found_by or {found_by[0].lower()} != chosen:
                return _Tried([], False)  # what is left over, such as a number of the row, is no sign of a target
        for example in islice(opened, LOOKED_AT):
            found.append(example.answer)
    except UnrolledError:
        return _Tried(found, False)
    return _Tried(found, True)


def _opened(look: Look, reading: Reading, answers: Answers) -> LabelledSource | None:
    if look.table is not None:
        return open_columns(look.table, reading, answers)
    if not look.arrays:
        return None
    return open_arrays(look.source if isinstance(look.source, tuple) else look.arrays, look.name, reading, answers)


def _builtin(name: str) -> Answers | None:
    spec = known(name)
    return None if spec is None else spec.answers


def _by_names(look: Look, reading: Reading) -> Answers | None:
    """What the names of the files in a folder say."""
    assert look.folder is not None
    if any("-ubyte" in path.name for path in look.beside()):
        return "class"
    if by_ending(look.beside()):
        return "class"
    kind, files = most_of(look.files)
    if kind == "text" and any(answers_in(_beginning(path)) == "tags" for path in files[:FILES]):
        return "tags"
    if not files:
        return "tags" if any(ending_of(path) in suffixes_of("conll") for path in look.files) else None
    if kind == "sound" and {path.relative_to(look.folder).parts[0] for path in files} == NOISY:
        return "series"
    if kind in ("text", "table") and reading.pattern is None and all(path.parent == look.folder for path in files):
        return "class" if kind == "text" and len([path for path in files if not is_about(path)]) > 1 else None
    try:
        named = named_files(files, look.folder, reading, "class")
        return _numbers_or_class(file.answer for file in named[:LOOKED_AT])
    except UnrolledError:
        return None if kind in ("text", "table") else "class"  # which are to be named, as is said then


def _beginning(path: Path) -> list[str]:
    try:
        return list(islice(TextFile(path).lines(), LOOKED_AT))
    except UnrolledError:
        return []


def _of_header(lines: Sequence[str]) -> Answers | None:
    """The lines of a .ts file before its data say what the labels are."""
    told = {tuple(line.lower().split()[:2]) for line in lines if line.startswith("@")}
    return "class" if ("@classlabel", "true") in told else "numbers" if ("@targetlabel", "true") in told else None


def _numbers_or_class(found: Iterable[str]) -> Answers:
    """Numbers with a fraction, or of many different values, are numbers."""
    names = set(found)
    if not all(is_number(name) for name in names):
        return "class"
    whole = all(float(name).is_integer() for name in names)
    return "class" if whole and len(names) <= MOST_WHOLE else "numbers"
