"""Drawings: the moves of a pen from its first point on, read from .npz, .json, .jsonl, InkML and SVG files.

| file | what it holds |
|---|---|
| `.npz` | stroke-3 or stroke-5: `points` [N, 3] of all drawings with `offsets` [n+1], or an array of each drawing |
| `.json` `.jsonl` | a list of drawings, or objects with `strokes` and perhaps `text`; see strokes.py |
| `.inkml` `.svg` | one drawing; a folder of such files is one source |

A move [5] is (dx, dy, down, lift, end): the way from the point before, in units of the typical way in the training
data, and what the pen does after it. Where the pen first touches the paper is not predicted. Names that begin with
train, valid and test say which split a drawing is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, UnrolledError
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.files.cell_values import kind_of
from unrolled.data.files.folders import is_about
from unrolled.data.files.ink import read_ink
from unrolled.data.files.json_values import json_of
from unrolled.data.files.npz import load_npz
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.formats import ending_of
from unrolled.data.given_splits import ALL, part_in, settled, sources_by_split
from unrolled.data.look import Look
from unrolled.data.sources.pen_moves import Drawing, as_moves, drawing_of
from unrolled.data.sources.pianoroll import parts_of
from unrolled.data.sources.strokes import STROKE_COLUMNS, TEXT_COLUMNS

SUFFIXES = ".npz, .json, .jsonl, .inkml and .svg"


# ---- files: each gives the drawings in it


def read_drawings(source: Any) -> Iterator[Drawing]:
    """All drawings of a file, a folder, built-in data, a list in memory, or of such by split."""
    sources = sources_by_split(source)
    if sources is not None:
        for part, each in sources.items():
            for found in read_drawings(each):
                yield found._replace(part=settled(found.part, part, sources, found.place))
    elif isinstance(source, str) and source.startswith(BUILTIN):
        for made in asked(source, "drawings").read():
            yield Drawing(as_moves(made.input, made.place), made.target, made.place, made.part)
    elif isinstance(source, str | os.PathLike):
        yield from _at(named_path(source))
    else:
        yield from _values(source, "the data")


def _at(path: Path) -> Iterator[Drawing]:
    if path.is_dir():
        files = [each for each in sorted(path.rglob("*")) if each.is_file() and not is_about(each)]
        drawn = [each for each in files if ending_of(each) in READERS]
        if not drawn:
            raise DataError(f"{path}: there are no drawings in it; expected {SUFFIXES} files")
        parts = [part_in(each.relative_to(path).parts[0]) if each.parent != path else None for each in drawn]
        for file, part in zip(drawn, parts if all(parts) else [None] * len(drawn)):
            for found in _at(file):
                yield found if part is None else found._replace(part=settled(found.part, part, (), found.place))
        return
    TextFile(path).require()
    read = READERS.get(ending_of(path))
    if read is None:
        raise DataError(f"{path}: expected drawings in {SUFFIXES} files")
    yield from read(path)


def _in_npz(path: Path) -> Iterator[Drawing]:
    arrays = load_npz(path)
    part = parts_of(list(arrays), str(path))
    texts = {part[key]: array for key, array in arrays.items() if array.dtype.kind == "U"}
    number = dict.fromkeys(part.values(), 0)
    for place, side, rows in _arrays(path, arrays, part):
        i, own = number[side], texts.get(side)
        if own is not None and i >= len(own):
            raise DataError(f"{path}: {len(own)} texts, but more drawings; give each drawing a text")
        number[side] += 1
        yield Drawing(as_moves(rows, place), None if own is None else str(own[i]), place, side)
    for side, own in texts.items():
        if len(own) != number[side]:
            raise DataError(f"{path}: {len(own)} texts, but {number[side]} drawings; give each drawing a text")


def _arrays(path: Path, arrays: Mapping[str, Any], part: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """The rows of each drawing, with its place and split."""
    for key, array in arrays.items():
        if array.dtype.kind == "U" or key.endswith("offsets"):
            continue
        place = f"{path}, array '{key}'"
        if array.dtype.kind not in "iufb" or array.ndim not in (2, 3) or array.shape[-1] not in (3, 5):
            raise DataError(
                f"{place}: found shape {list(array.shape)} of {array.dtype}, expected rows [dx, dy, up] or "
                "[dx, dy, down, lift, end]"
            )
        beside = arrays.get(f"{key[: -len('points')]}offsets") if key.endswith("points") else None
        if beside is not None:
            cuts = np.asarray(beside)
            if cuts.ndim != 1 or len(cuts) < 2 or cuts[0] != 0 or cuts[-1] != len(array) or (np.diff(cuts) < 1).any():
                raise DataError(
                    f"{place}: its offsets do not rise from 0 to {len(array)}, so it is unknown where a drawing ends"
                )
            for i, (first, last) in enumerate(zip(cuts.tolist(), cuts[1:].tolist())):
                yield f"{place}, drawing {i}", part[key], array[first:last]
        elif array.ndim == 3:
            for i, rows in enumerate(array):
                yield f"{place}, drawing {i}", part[key], rows
        else:
            yield place, part[key], array


def _in_json(path: Path) -> Iterator[Drawing]:
    yield from _values(json_of(TextFile(path).text(), str(path), None), str(path))


def _in_lines(path: Path) -> Iterator[Drawing]:
    file = TextFile(path)
    for number, line in enumerate(file.lines(), 1):
        if line.strip():
            place = f"{path}, line {number}"
            yield drawing_of(json_of(line, place, number), place)


def _in_ink(path: Path) -> Iterator[Drawing]:
    ink = read_ink(path)
    yield Drawing(as_moves([stroke.tolist() for stroke in ink.strokes], str(path)), ink.text, str(path))


READERS: dict[str, Callable[[Path], Iterator[Drawing]]] = {
    ".npz": _in_npz, ".json": _in_json, ".jsonl": _in_lines, ".ndjson": _in_lines, ".inkml": _in_ink, ".svg": _in_ink,
}  # fmt: skip


def _values(values: Any, name: str) -> Iterator[Drawing]:
    """Drawings in a list, or in lists by split."""
    groups = values if isinstance(values, Mapping) else {ALL: values}
    part = parts_of(list(groups), name) if isinstance(values, Mapping) else {ALL: ALL}
    for key, drawings in groups.items():
        place = name if key == ALL else f"{name}, {key}"
        if not isinstance(drawings, Sequence) or isinstance(drawings, str):
            raise DataError(f"{place}: found {kind_of(drawings)}, expected a list of drawings")
        for i, value in enumerate(drawings):
            yield drawing_of(value, f"{place}, drawing {i}")._replace(part=part[key])


# ---- guess


def is_like_drawings(arrays: Mapping[str, Any]) -> bool:
    """Whether all arrays are rows [dx, dy, up] or [dx, dy, down, lift, end], with their offsets or texts."""
    rows = [a for key, a in arrays.items() if not key.endswith("offsets") and np.asarray(a).dtype.kind != "U"]
    return bool(rows) and all(map(_is_like_rows, rows))


def is_ink(path: Path) -> bool:
    return ending_of(path) in (".inkml", ".svg")


def strokes_alone(look: Look) -> str | None:
    """Why a table is drawings without texts; None: it is not."""
    try:
        names = [] if look.table is None else look.table.columns()
        cells = next(look.table.rows(names), (0, ()))[1] if look.table is not None else ()
    except UnrolledError:
        return None
    found = [name for name, cell in zip(names, cells) if name in STROKE_COLUMNS[:2] and isinstance(cell, list)]
    alone = found and not any(name.lower() in TEXT_COLUMNS for name in names)
    return f"its column '{found[0]}' holds pen strokes, without texts" if alone else None


def _is_like_rows(array: Any) -> bool:
    if np.ndim(array) not in (2, 3) or np.shape(array)[-1] not in (3, 5):
        return False
    first = np.asarray(array[:1000]).reshape(-1, np.shape(array)[-1])
    if first.dtype.kind not in "iuf" or not len(first):
        return False
    states = first[:, 2:]
    one = states.shape[1] == 1 or bool((states.sum(axis=1) == 1).all())
    return bool(np.isin(states, (0, 1)).all()) and one and not bool(np.isin(first[:, :2], (0, 1)).all())
