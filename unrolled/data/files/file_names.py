"""What the names of files say of examples: the class by folder or by a pattern, a group, a part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.opening import shortened
from unrolled.data.files.cell_values import as_number
from unrolled.data.files.name_pattern import groups_in
from unrolled.data.given_splits import ALL, given_part, part_in
from unrolled.data.reading import Answers, Reading


class NamedFile(NamedTuple):
    """A file and what its name says; the answer is of the kind that was asked for."""

    path: Path
    answer: Any
    group: str | None
    part: str


def named_files(files: Sequence[Path], folder: Path, reading: Reading, answers: Answers) -> list[NamedFile]:
    """Every file with the class that its name, by `pattern`, or else its folder gives.

    Folders called train, valid or test above those of the classes are parts.
    """
    if answers not in ("class", "classes", "numbers", "none"):
        raise UsageError(f"{folder}: file names can give classes or numbers, not {answers}")
    if reading.pattern is not None:
        found = groups_in([path.name for path in files], reading.pattern)
        return [_by_pattern(path, values, reading, answers) for path, values in zip(files, found, strict=True)]
    return [_by_folder(path, folder, reading.group, answers) for path in files]


def file_of_row(name: Any, homes: Sequence[Path], place: str) -> Path | None:
    """The file that a row of a table names, in one of the folders; None where there is none.

    A table is data: it does not decide what else of this machine is read. A name that leads out of the folders, as an
    absolute path, by `..` or through a link, is refused.
    """
    text = str(name).strip()
    if not text or "\0" in text:
        return None
    roots = {Path(os.path.realpath(home)) for home in homes}
    named = [home / text for home in homes]
    inside = [file for file in named if roots & set(Path(os.path.realpath(file)).parents)]
    found = next((file for file in inside if os.path.isfile(file)), None)  # False of a name that is too long
    if found is None and any(os.path.lexists(file) for file in named if file not in inside):
        raise DataError(
            f"{place}: '{shortened(text)}' points outside {homes[0].absolute()}, so it is not opened; move it "
            "there, or give the folder that contains all files as the data, and the table with "
            f"{option('target_file')}"
        )
    return found


def _by_pattern(path: Path, values: Mapping[str, str | None], reading: Reading, answers: Answers) -> NamedFile:
    group, answer, part = reading.group, values["answer"], values.get("part")
    if group is not None and group not in values:
        raise UsageError(f"the pattern {reading.pattern} has no group (?P<{group}>...) for {option('group')}")
    if answer is None:
        if answers == "none":
            return NamedFile(path, None, None, ALL)
        raise DataError(f"{path}: the name does not match the pattern {reading.pattern}; fix the pattern or the name")
    side = given_part(part, str(path)) if part else ALL
    return NamedFile(path, _answer(answer, answers, path), values[group] if group else None, side)


def _by_folder(path: Path, folder: Path, group: str | None, answers: Answers) -> NamedFile:
    if group not in (None, "file"):
        raise UsageError(f"{folder}: files have no group '{group}'; name it in {option('pattern')} as (?P<{group}>...)")
    inner = path.relative_to(folder).parts[:-1]
    part = part_in(inner[0]) if len(inner) > 1 else None
    if not inner and answers != "none":
        raise DataError(
            f"{path}: the class of this file is not known; put the files of each class into a folder named "
            f"after it, or give {option('pattern')} for the file names"
        )
    answer = _answer(inner[1 if part else 0], answers, path) if inner else None
    return NamedFile(path, answer, path.relative_to(folder).as_posix() if group else None, part or ALL)


def _answer(name: str, answers: Answers, path: Path) -> Any:
    if answers == "numbers":
        return np.array([as_number(name, str(path))])
    if answers == "classes":
        return (name,)
    return name if answers == "class" else None
