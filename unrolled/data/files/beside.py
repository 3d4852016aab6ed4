"""What lies beside a file to train on: the test file of an archive, or files that seem to be other parts of a set."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.errors import listed
from unrolled.core.front import option
from unrolled.data.given_splits import part_in

ARCHIVE = re.compile(r"(.+)_TRAIN(\..+)")  # the UCR and UEA archives: GunPoint_TRAIN.ts and GunPoint_TEST.ts


class Beside(NamedTuple):
    """The source to read, and what is to be said about it."""

    source: Any
    notes: list[str]


def with_beside(source: Any) -> Beside:
    """A file to train on with the test file that an archive gives with it.

    `GunPoint_TRAIN.ts` stands for itself and `GunPoint_TEST.ts`. Other files that are called like the other parts of a
    set (`test.csv` beside `train.csv`) may have no targets: they are not read, and a note says so.
    """
    if not isinstance(source, str | os.PathLike) or not os.path.isfile(source):
        return Beside(source, [])
    path = Path(source)
    found = ARCHIVE.fullmatch(path.name)
    test = path.with_name(f"{found[1]}_TEST{found[2]}") if found else None
    if test is not None and test.is_file():
        return Beside({"train": path, "test": test}, [f"{test.name} next to {path.name} is used as test data"])
    others = _others(path)
    if not others:
        return Beside(source, [])
    names, many = listed(sorted(each.name for each in others)), len(others) > 1
    asked = " and ".join(sorted({option(str(part_in(each.name)), each) for each in others}))
    return Beside(source, [
        f"{names} next to {path.name} {'are' if many else 'is'} not used: held-out data is split off "
        f"{path.name}; to use {'them' if many else 'it'}, add {asked}"
    ])  # fmt: skip


def _others(path: Path) -> list[Path]:
    """Files called like this one but for the word that names the part, where this one is for training."""
    if part_in(path.name) != "train":
        return []
    rest = _rest(path)
    try:
        names = [each for each in path.parent.iterdir() if each != path and each.is_file()]
    except OSError:
        return []
    return [each for each in names if part_in(each.name) in ("valid", "test") and _rest(each) == rest]


def _rest(path: Path) -> tuple[list[str], str]:
    """The words of a name without that of its part, and its ending.

    >>> _rest(Path("reviews_train.csv")) == _rest(Path("reviews_test.csv")), _rest(Path("train.csv"))
    (True, ([], '.csv'))
    """
    stem, dot, ending = path.name.partition(".")
    return [word for word in re.split(r"[^A-Za-z0-9]+", stem) if word and part_in(word) is None], dot + ending
