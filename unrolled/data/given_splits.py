"""Splits that are given: sources by the name of their split, names in a folder, or a column; always respected.

| given as | example |
|---|---|
| files beside the data | `unrolled train train.csv --valid valid.csv --test test.csv` |
| a mapping in Python | {"train": source, "valid": source, "test": source} |
| names in a folder | train.csv, valid.csv, test.csv, or folders of these names |
| a column | one value of train, valid or test a row |

Nothing of a given validation or test source is trained on, whatever it says of itself. A split that is not given is
taken from the training data, by the shares of `split`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from unrolled.core.errors import DataError, UsageError, listed, nearest
from unrolled.core.front import option
from unrolled.data.files.cell_values import shown
from unrolled.data.files.folders import is_about, only_file

ALL = "all"
MEMORY = "memory"
PARTS = ("train", "valid", "test")
_WORDS = {"train": "train", "training": "train", "valid": "valid", "validation": "valid", "val": "valid",
          "dev": "valid", "test": "test", "t10k": "test"}  # fmt: skip

Source = TypeVar("Source")


def part_in(name: str) -> str | None:
    """The split that a file or folder name speaks of at its beginning or end.

    >>> part_in("GunPoint_TRAIN.ts"), part_in("t10k-images-idx3-ubyte.gz"), part_in("dev"), part_in("contest.csv")
    ('train', 'test', 'valid', None)
    """
    words = [word for word in re.split(r"[^a-z0-9]+", name.split(".")[0].lower()) if word]
    found = [_WORDS[word] for word in words[:1] + words[-1:] if word in _WORDS]
    return found[0] if found else None


def is_part(name: Any) -> bool:
    """Whether a name is that of a split."""
    return str(name).strip().lower() in _WORDS


def given_part(value: Any, place: str) -> str:
    """The split that a cell or a file name gives."""
    part = _WORDS.get(str(value).strip().lower())
    if part is None:
        raise DataError(f"{place}: found {shown(value)}, expected a split; {nearest(str(value), PARTS)}")
    return part


# ---- sources by split


def with_given(data: Any, valid: Any = None, test: Any = None) -> Any:
    """The data with the sources that are given for validation and test, by split; alone where none is given.

    A folder that holds one file of data stands for that file.
    """
    given = {part: only_file(source) for part, source in (("valid", valid), ("test", test)) if source is not None}
    return _once(given_sources(only_file(data)), given) if given else only_file(data)


def given_sources(data: Any) -> dict[str, Any]:
    """The sources of the splits that were handed over, {"train": data} where the data is one source; {} for None."""
    return _by_name(data) or ({} if data is None else {"train": data})


def sources_by_split(source: Any) -> dict[str, Any] | None:
    """The source of each split where the source says so itself, by names in a mapping or in a folder; None: it does
    not. Training data that holds other splits too gives those that are not given beside it."""
    found = _by_name(source) or _in_folder(source)
    if found is None:
        return None
    for part in found:
        inner = sources_by_split(found[part])
        if inner is not None and part != "train":
            raise UsageError(f"{found[part]}: holds {listed(list(inner))}, but is given as {part}; name one of them")
        if inner is not None:
            rest = {name: each for name, each in found.items() if name != "train"}
            return _once(inner, rest)
    return found


def names_of_sources(data: Any) -> dict[str, str]:
    """The path of each source that was handed over, by split, or that it is in memory."""
    found = given_sources(data)
    return {part: str(each) if isinstance(each, str | os.PathLike) else MEMORY for part, each in found.items()}


def opened_alike(
    sources: Mapping[str, Any], first: Callable[[Any], Source], other: Callable[[Any, Source], Source]
) -> dict[str, Source]:
    """The sources of all splits opened, those beside training as it was read: `other(source, opened training)`."""
    opened: dict[str, Source] = {}
    for part, each in sources.items():
        opened[part] = other(each, next(iter(opened.values()))) if opened else first(each)
    return opened


def settled(own: str, part: str, given: Iterable[str], place: str) -> str:
    """The split of an example of the source of a split, which may say it itself, by a column or by its name."""
    if own in (ALL, part):
        return part
    if part == "train" and own not in given:
        return own
    if part == "train":
        raise DataError(
            f"{place}: already defines the {own} split, but the {own} split is given too; leave out one of them"
        )
    raise DataError(f"{place}: belongs to the {own} split, but is given as {part}; remove it, or leave {part} out")


def _once(first: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    twice = [part for part in first if part in others]
    if twice:
        sources = " and ".join(_called(each[twice[0]]) for each in (first, others))
        raise UsageError(f"the {twice[0]} split is given twice, as {sources}; leave out one of them")
    whole = {**first, **others}
    return {part: whole[part] for part in PARTS if part in whole}


def _called(source: Any) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else f"a {type(source).__name__}"


def _by_name(source: Any) -> dict[str, Any] | None:
    if not isinstance(source, Mapping) or not source or not all(map(is_part, source)):
        return None
    found: dict[str, Any] = {}
    for name, each in source.items():
        found = _once(found, {given_part(name, "the data"): each})
    return found


def _in_folder(source: Any) -> dict[str, Any] | None:
    """Files or folders whose names all speak of a split, training among them."""
    if not isinstance(source, str | os.PathLike) or not os.path.isdir(source):
        return None
    entries = named_by_split(Path(source))
    found = dict(entries)
    return {part: found[part] for part in PARTS if part in found} if len(found) == len(entries) > 1 else None


def named_by_split(folder: Path) -> list[tuple[str, Path]]:
    """What lies in a folder with the split that its name speaks of, training among them; [] where some names do not."""
    entries = sorted(path for path in folder.iterdir() if not is_about(path))
    parts = [part_in(path.name) for path in entries]
    if None in parts or "train" not in parts or len(set(parts)) < 2:
        return []
    return [(str(part), path) for part, path in zip(parts, entries)]


def require_one_for_each(folder: Path) -> None:
    """Refuse a folder in which several files are for one split: some of them must not be read as training data."""
    entries = named_by_split(folder)
    if entries and sources_by_split(folder) is None:
        one = folder / re.split(r"[-_.]", entries[0][1].name)[0]
        raise UsageError(
            f"{folder}: several files are for the same split; name one set, such as {one}, or put the files into "
            "folders train, valid and test"
        )


# ---- which splits there are


def given_among(counts: Mapping[str, int], name: str) -> list[str]:
    """The splits that examples say they are for, by how many of them there are; none, or training among them."""
    given = [part for part in PARTS if counts.get(part)]
    if given and counts.get(ALL):
        raise DataError(
            f"{name}: some examples have no split, others have {', '.join(given)}; give a split for all examples "
            "or for none"
        )
    if given and "train" not in given:
        raise DataError(f"{name}: there is no train split; it has {', '.join(given)}")
    return given


def own_shares(shares: Mapping[str, float], given: Sequence[str]) -> dict[str, float]:
    """How training data is divided between training and the splits that are not given.

    >>> own_shares({"train": 0.5, "valid": 0.125, "test": 0.5}, ["train", "test"])
    {'train': 0.8, 'valid': 0.2}
    """
    left = {part: share for part, share in shares.items() if part == "train" or part not in given}
    others = {part: share / sum(left.values()) for part, share in left.items() if part != "train"}
    return {"train": 1 - sum(others.values()), **others} if given else dict(shares)


def how_split(shares: Mapping[str, float], given: Sequence[str], split: str) -> str:
    """Where the splits are from, in a word or two."""
    names = {"valid": "validation", "test": "test"}
    missing = [names[part] for part in own_shares(shares, given) if part != "train"]
    if not given:
        return split
    return f"given; {listed(missing)} taken from the training data" if missing else "given"


def notes_on(shares: Mapping[str, float], given: Sequence[str]) -> Iterator[str]:
    """What is taken from the training data for splits that are not given beside it."""
    own = own_shares(shares, given) if given else {}
    for part in own:
        if part != "train":
            yield (
                f"no {part} split is given, so {100 * own[part]:.3g} % of the training data is used for it; "
                f"{option('split')} changes that"
            )
