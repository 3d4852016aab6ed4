"""Which files of a folder are data, and which tell people about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from unrolled.core import discover
from unrolled.core.errors import DataError
from unrolled.data.files.text_file import TextFile, unpacked

ABOUT = frozenset({"readme", "license", "licence", "copying", "about", "notice", "changelog", "authors"})
PAGES = (".md", ".rst", ".html", ".htm", ".pdf", ".info", ".names")  # the last two lie beside the sets of the UCI


def is_about(path: Path) -> bool:
    """Whether a file tells about data and is none: README, LICENSE and the like; hidden files are no data either.

    >>> [is_about(Path(name)) for name in ("_about.txt", "LICENSE.mit", "iris.names", "reviews.csv", "about_cats.txt")]
    [True, True, True, False, False]
    """
    name = path.name.lower()
    return name.startswith(".") or name.lstrip("_").split(".")[0] in ABOUT or _ending(path) in PAGES


LISTED = 10  # lines of a file, of which each names another one where it is a list of files


def without_lists(files: Sequence[Path]) -> list[Path]:
    """Texts but for those above the folders of others that list them, such as the categories of a corpus."""
    above = {parent for path in files for parent in path.parent.parents}
    return [path for path in files if path.parent not in above or not _lists_files(path)]


def _lists_files(path: Path) -> bool:
    """Whether each of the first lines of a text begins with the name of another file below its folder."""
    try:
        lines = [*islice(TextFile(path).lines(), LISTED)]
    except DataError:  # which is told where the file is read
        return False
    names = [line.split()[0] for line in lines if line.strip()]
    return bool(names) and all(_is_below(path.parent, name) for name in names)


def _is_below(folder: Path, name: str) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts and (folder / name).is_file()


def only_file(source: Any) -> Any:
    """The one file of data in a folder, beside files that tell about it; every other source as it is.

    Files whose readers take a folder of them as examples, such as sounds and images, stay examples of the folder.
    """
    if not isinstance(source, str | os.PathLike) or not os.path.isdir(source):
        return source
    files = [path for path in sorted(Path(source).rglob("*")) if path.is_file() and not is_about(path)]
    if len(files) != 1 or files[0].parent != Path(source) or _is_one_of_many(files[0]):
        return source
    return files[0] if isinstance(source, Path) else str(files[0])


def _ending(path: Path) -> str:
    return Path(unpacked(path.name.lower())).suffix


def _is_one_of_many(path: Path) -> bool:
    told = (discover.readers.told(name) for name in discover.readers.names())  # which imports nothing
    return any(each.get("many") and _ending(path) in each.get("suffixes", ()) for each in told)
