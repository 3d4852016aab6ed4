"""Prepared data: examples by split, their codecs and what is known of them; prepared once for all who use it.

| data | where it is kept |
|---|---|
| small, for one run | in memory |
| large, or of a comparison | in the store, by the settings and the content of the files that were read |
| of a comparison, and in memory itself | in memory, once for all runs |

Which files belong to a source is known when they have been read: the store keeps their names, by the settings and the
name of the source, and then the data, by these and the content of the files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache as once
from pathlib import Path
from typing import Any

import unrolled
from unrolled.core import discover
from unrolled.core.errors import CannotWrite, DataError, UsageError
from unrolled.core.opening import Opened, open_regular, recorded
from unrolled.data.builtin_sets import BUILTIN
from unrolled.data.codecs.labels import AnswerCodec, ClassCodec, answers_from_json
from unrolled.data.codecs.patterns import PatternCodec
from unrolled.data.codecs.text import Codec
from unrolled.data.codecs.vectors import VectorCodec
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.files.file_form import current_form
from unrolled.data.files.passes import changed
from unrolled.data.storage import cache, store
from unrolled.data.storage.store import Draft, Entry
from unrolled.data.storage.stored import put_examples, stored_examples
from unrolled.data.time_series.codec import SeriesCodec

LARGE = 64 * 2**20  # bytes of files; less is prepared again rather than kept, but for the runs of a comparison
NOT_AS_WRITTEN = (ValueError, KeyError, TypeError, AttributeError, UsageError, DataError)
PIECE = 1 << 20  # bytes that are hashed at once


@dataclass(frozen=True)
class Prepared:
    """What preparing gives; codecs by name, and in `told` what a task keeps beside, as JSON values."""

    sections: dict[str, Examples]
    codecs: dict[str, Any]
    facts: dict[str, Any]
    fingerprint: str
    told: dict[str, Any]


_held: ContextVar[dict[str, tuple[Any, Prepared]] | None] = ContextVar("held", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """A block in which prepared data is kept for others: for the runs of a comparison, in this process and in more."""
    if _held.get() is not None:
        yield
        return
    token = _held.set({})
    try:
        yield
    finally:
        _held.reset(token)


def kept(source: Any, asked: Mapping[str, Any], make: Callable[[], Prepared]) -> Prepared:
    """What `make` gives for a source under these settings, from where it is kept, or made and kept."""
    paths, held = _paths_of(source), _held.get()
    if paths is None:
        return make() if held is None else _held_once(held, source, asked, make)
    if held is None and not _is_large(paths):
        return make()
    named = [[*each, os.path.abspath(each[1]), _names_beside(each[1])] for each in paths]
    recipe = _key({"asked": asked, "source": named, "form": current_form()[:4]})
    try:
        found, note = _read(recipe, _files(recipe))
    except CannotWrite as error:
        return _noted(make(), _not_kept(error))
    return found or _made(recipe, str(source), make, note)


def _held_once(
    held: dict[str, tuple[Any, Prepared]], source: Any, asked: Mapping[str, Any], make: Callable[[], Prepared]
) -> Prepared:
    same = {str(name): id(part) for name, part in source.items()} if isinstance(source, Mapping) else id(source)
    key = f"{same} {_key(asked)}"  # they stay the same objects as long as the source is held
    if key not in held:
        held[key] = source, make()
    return held[key][1]


USE = {"ahead", "fraction", "held_out"}  # settings of data that say how prepared data is used


def used(
    sections: Mapping[str, Examples], config: DataConfig, size: Callable[[Examples], int]
) -> dict[str, Examples]:  # fmt: skip
    """As much of each split as is asked for: a fraction of training, of the others no more (in `size`) than a limit."""
    most = config.held_out or math.inf
    return {
        split: section.share(config.fraction if split == "train" else most / max(size(section), 1))
        for split, section in sections.items()
    }


def settings_of(config: DataConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude=USE)


def n_values(section: Examples) -> int:
    """How many targets there are, <stop> not counted."""
    return len(section.values("target"))


# ---- which files


def _paths_of(source: Any) -> list[tuple[str, str]] | None:
    """The files and folders that a source names, with the splits that they are for; None: it is in memory itself."""
    parts = source if isinstance(source, Mapping) else {"": source}
    if not parts or not all(isinstance(part, str | os.PathLike) for part in parts.values()):
        return None
    return [(str(name), os.fspath(part)) for name, part in parts.items()]


def _inside(folder: str) -> Iterator[Path]:
    return (path for path in Path(folder).rglob("*") if os.path.isfile(path) and not path.name.startswith("."))


def _is_large(paths: Sequence[tuple[str, str]]) -> bool:
    size = 0
    for _, path in paths:
        for file in _inside(path) if os.path.isdir(path) else [path]:
            with suppress(OSError, ValueError):  # whoever reads it tells what is wrong with it
                size += os.path.getsize(file)
            if size >= LARGE:
                return True
    return False


def _names_beside(name: str) -> list[str]:
    """The names in a folder, or of files that may belong to a file or a prefix: the same ending or beginning."""
    path = Path(name)
    if name.startswith(BUILTIN):
        return []
    if os.path.isdir(name):
        return sorted(file.relative_to(path).as_posix() for file in _inside(name))
    try:
        names = sorted(entry.name for entry in os.scandir(path.parent) if entry.is_file())
    except (OSError, ValueError):
        return []
    return [each for each in names if Path(each).suffix == path.suffix or each.startswith(path.stem)]


def _files(recipe: str) -> list[str] | None:
    """The names of the files that were read; None: they are not known."""
    try:
        entry = store.read(recipe)
    except store.Damaged:
        return None
    return None if entry is None else [str(name) for name in entry.index["read"]]


def _digest(files: Sequence[str]) -> str:
    """Of the content of files in their order; a file that cannot be read has none."""
    digest = hashlib.sha256()
    for name in files:
        own = hashlib.sha256()
        try:
            with open_regular(name) as stream:
                while piece := stream.read(PIECE):
                    own.update(piece)
        except (DataError, OSError):
            return "unreadable"
        digest.update(f"{name}\0{own.hexdigest()}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@once
def _package() -> list[Any]:
    """The code that prepares data: after a change to it, or with another version, nothing of before is found."""
    home = Path(unrolled.__file__).parent
    files = sorted(file for room in ("data", "tasks") for file in (home / room).rglob("*.py"))
    return [unrolled.__version__, *sys.version_info[:2], *([f.name, *Opened.of(f.stat())[2:]] for f in files)]


def _own_files() -> list[str]:
    """The sha256 of each file of a user's own that data may be prepared by."""
    rooms = [room for room in discover.MADE_OF if room not in (discover.models, discover.readouts)]
    files = {file for room in rooms for name in room.names() if (file := room.file(name)) is not None}
    return sorted(_digest([str(file)]) for file in files)


def _key(values: Mapping[str, Any]) -> str:
    code = {"format": store.FORMAT, "package": _package(), "own": _own_files()}
    return hashlib.sha256(json.dumps({**code, **values}, sort_keys=True).encode()).hexdigest()[:32]


# ---- to the store and back


def _read(recipe: str, files: Sequence[str] | None) -> tuple[Prepared | None, str]:
    """What is in the store, if it is; and what is to be told where that is damaged."""
    if files is None:
        return None, ""
    key = _key({"recipe": recipe, "content": _digest(files)})
    try:
        entry = store.read(key)
        return (None if entry is None else _restored(entry)), ""
    except store.Damaged as error:
        return None, f"the prepared data in {cache.place_of(key)} was damaged ({error}), so it was prepared again"


def _made(recipe: str, name: str, make: Callable[[], Prepared], note: str) -> Prepared:
    with recorded() as opened:
        found = make()
    files = sorted(opened)
    key = _key({"recipe": recipe, "content": _digest(files)})
    if any(_now(file) != then for file, then in opened.items()):
        raise changed(name)
    if _files(recipe) != files:
        cache.discard(cache.place_of(recipe))
    try:
        restored = _restored(store.write(key, lambda draft: _fill(draft, found)))
        store.write(recipe, lambda draft: draft.finish({"read": files}))
    except CannotWrite as error:
        return _noted(found, _not_kept(error))
    return _noted(restored, note) if note else restored


def _not_kept(error: CannotWrite) -> str:
    return f"the prepared data could not be cached, so every run prepares it again: {error}"


def _noted(found: Prepared, note: str) -> Prepared:
    return replace(found, facts={**found.facts, "notes": [*found.facts.get("notes", []), note]})


def _now(file: str) -> Opened | None:
    try:
        with open_regular(file) as stream:
            return Opened.of(os.fstat(stream.fileno()))
    except DataError:
        return None


def _fill(draft: Draft, found: Prepared) -> None:
    splits = {split: put_examples(draft, split, section) for split, section in found.sections.items()}
    codecs = {}
    for name, codec in found.codecs.items():
        draft.write(f"{name}.json", codec.to_json().encode())
        family = next(family for family, (kind, _) in _FAMILIES.items() if isinstance(codec, kind))
        codecs[name] = {"family": family, "unseen": codec.unseen if isinstance(codec, ClassCodec) else []}
    told = {"facts": found.facts, "fingerprint": found.fingerprint, "told": found.told}
    draft.finish({"splits": splits, "codecs": codecs, **told})


def _restored(entry: Entry) -> Prepared:
    try:
        codecs = {name: _codec(entry, name, told) for name, told in entry.index["codecs"].items()}
        known = {name: entry.index[name] for name in ("facts", "fingerprint", "told")}
        return Prepared(stored_examples(entry), codecs, **known)
    except NOT_AS_WRITTEN as error:  # of another version of a library
        raise store.Damaged(f"it cannot be read: {error}") from None


_FAMILIES: dict[str, tuple[type, Callable[[str], Any]]] = {
    "tokens": (Codec, Codec.from_json),
    "words": (WordListCodec, WordListCodec.from_json),
    "targets": (AnswerCodec, answers_from_json),
    "series": (SeriesCodec, SeriesCodec.from_json),
    "patterns": (PatternCodec, PatternCodec.from_json),
    "vectors": (VectorCodec, lambda text: VectorCodec(answers_from_json(text))),  # type: ignore[arg-type]
}


def _codec(entry: Entry, name: str, told: Mapping[str, Any]) -> Any:
    _, load = _FAMILIES[told["family"]]
    codec = load(bytes(entry.files[f"{name}.json"]).decode())
    return codec.with_unseen(told["unseen"]) if isinstance(codec, ClassCodec) else codec
