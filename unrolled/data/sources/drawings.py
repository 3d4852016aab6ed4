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

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError, UnrolledError, some
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.codecs.text import CharCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples, lengths_of, ragged
from unrolled.data.files.cell_values import kind_of
from unrolled.data.files.folders import is_about
from unrolled.data.files.ink import read_ink
from unrolled.data.files.json_values import json_of
from unrolled.data.files.npz import load_npz
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.formats import ending_of
from unrolled.data.given_splits import (
    ALL,
    PARTS,
    given_among,
    how_split,
    notes_on,
    own_shares,
    part_in,
    settled,
    sources_by_split,
)
from unrolled.data.look import Look
from unrolled.data.prepared import Prepared
from unrolled.data.sources.pianoroll import parts_of
from unrolled.data.sources.strokes import STROKE_COLUMNS, TEXT_COLUMNS, as_ways
from unrolled.data.split import row_key, split_rows

Moves = NDArray[np.float32]  # [T, 5]

DOWN, LIFT, END = 2, 3, 4  # columns
SUFFIXES = ".npz, .json, .jsonl, .inkml and .svg"
TEXT = "text"  # the codec of the texts


class Drawing(NamedTuple):
    """A drawing in its own units."""

    moves: Moves
    text: str | None
    place: str
    part: str = ALL


# ---- one drawing


def as_moves(value: Any, place: str) -> Moves:
    """A drawing as [T, 5], in its own units.

    >>> as_moves([[0, 0, 0], [3, 4, 1], [1, 0, 1]], "line 1").tolist()
    [[3.0, 4.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0]]
    """
    rows = np.asarray(value) if isinstance(value, np.ndarray) else None
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list) and len(first) == 5 and not isinstance(first[0], list):
        rows = _table(value, place)
    if rows is not None and rows.ndim == 2 and rows.shape[1] == 5:
        value = _of_five(rows, place)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
        row = int(np.argwhere(~np.isfinite(value))[0][0])
        raise DataError(
            f"{place}, point {row}: found {value[row].tolist()}, expected finite numbers; remove the drawing"
        )
    ways = as_ways(value, place)  # [T, 3]
    if not ways[:, 2].any():
        raise DataError(f"{place}: the pen is never lifted; expected 1 in the third column where a stroke ends")
    if ways[0, 2] == 1:  # a dot: the pen goes nowhere before it is lifted
        ways[0, :2] = 0
    else:
        ways = ways[1:]
    moves = np.zeros((len(ways), 5), np.float32)
    moves[:, :2] = ways[:, :2]
    moves[:, LIFT] = ways[:, 2]
    moves[:, DOWN] = 1 - ways[:, 2]
    moves[-1, DOWN:] = 0, 0, 1
    return moves


def _table(value: list[Any], place: str) -> NDArray[Any]:
    try:
        return np.array(value, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{place}: expected rows [dx, dy, down, lift, end] of numbers") from None


def _of_five(rows: NDArray[Any], place: str) -> NDArray[np.float64]:
    """Stroke-5 as stroke-3: up to the first row that ends the drawing, which may be a row of its own."""
    states = rows[:, 2:]
    if not np.isin(states, (0, 1)).all() or (states.sum(axis=1) != 1).any():
        wrong = next(t for t, row in enumerate(states) if not np.isin(row, (0, 1)).all() or row.sum() != 1)
        raise DataError(
            f"{place}, point {wrong}: found the pen states {states[wrong].tolist()}, expected one 1 of three"
        )
    ends = np.flatnonzero(rows[:, END])
    last = int(ends[0]) if len(ends) else len(rows) - 1
    alone = len(ends) > 0 and last > 0 and not rows[last, :2].any()  # a row that says nothing but the end
    found = np.array(rows[: last + (not alone)], np.float64)
    return np.column_stack([found[:, :2], 1 - found[:, DOWN]])


def placed(moves: NDArray[Any]) -> list[NDArray[np.float64]]:
    """The strokes of moves [T, 5] as places [n, 2] each, from (0, 0) on.

    >>> [stroke.tolist() for stroke in placed(as_moves([[0, 0, 0], [3, 4, 1], [1, 0, 1]], "line 1"))]
    [[[0.0, 0.0], [3.0, 4.0]], [[4.0, 4.0]]]
    """
    places = np.concatenate([np.zeros((1, 2)), np.cumsum(np.asarray(moves[:, :2], np.float64), axis=0)])  # [T+1, 2]
    cuts = np.flatnonzero(moves[:-1, DOWN] == 0) + 2
    return list(np.split(places, cuts))


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
                    f"{place}: its offsets do not rise from 0 to {len(array)}, so drawings cannot be told apart"
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


def drawing_of(value: Any, place: str) -> Drawing:
    """A drawing as JSON has it, with its text or without."""
    if not isinstance(value, Mapping):
        return Drawing(as_moves(value, place), None, place)
    column = next((name for name in STROKE_COLUMNS if name in value), None)
    if column is None:
        raise DataError(f"{place}: found {some(value)}, expected 'strokes' and perhaps 'text'")
    text = next((value[name] for name in TEXT_COLUMNS if name in value), None)
    return Drawing(as_moves(value[column], place), None if text is None else str(text), place)


# ---- examples


def examples_of(drawings: Sequence[Drawing], scale: float, texts: CharCodec | None) -> Examples:
    fields = {TARGET: ragged([scaled(each.moves, scale) for each in drawings], np.empty((0, 5), np.float32))}
    if texts is not None:
        fields[SOURCE] = ragged([texts.encode(each.text or "") for each in drawings])
    return Examples(fields)


def scaled(moves: Moves, scale: float) -> Moves:
    return np.column_stack([moves[:, :2] / scale, moves[:, DOWN:]]).astype(np.float32)


def prepare_drawings(source: Any, config: DataConfig, with_text: bool) -> Prepared:
    """Read and check a source; its own splits are kept, those that it does not give are cut by `config`."""
    name, shares = str(source) if isinstance(source, str | os.PathLike) else "the data", config.shares()
    drawings: dict[str, list[Drawing]] = {}
    for found in read_drawings(source):
        if with_text and not found.text:
            raise DataError(f"{found.place}: the drawing has no text; give each one a text, or train without texts")
        drawings.setdefault(found.part, []).append(found)
    if not drawings:
        raise DataError(f"{name}: there are no drawings in it")
    given = given_among({part: len(found) for part, found in drawings.items()}, name)
    own = own_shares(shares, given)
    if len(own) > 1:
        drawings |= _split(drawings.pop("train" if given else ALL), own, config, name)
    drawings = {part: drawings[part] for part in PARTS if part in drawings}
    scale = scale_of(drawings["train"], name)
    codec = CharCodec.fit((each.text for each in drawings["train"]), config) if with_text else None
    assert codec is None or isinstance(codec, CharCodec)
    sections = {part: examples_of(found, scale, codec) for part, found in drawings.items()}
    facts = {"source": name, "scale": scale, "split_is": how_split(shares, given, config.split), **_facts(drawings)}
    facts["notes"] += [*notes_on(shares, given), *_unseen(drawings, codec)]
    codecs = {} if codec is None else {TEXT: codec}
    return Prepared(sections, codecs, facts, _fingerprint(sections), {"scale": scale})


def scale_of(drawings: Sequence[Drawing], name: str) -> float:
    """The root of the mean square of dx and dy."""
    ways = np.concatenate([each.moves[:, :2] for each in drawings]).astype(np.float64)
    scale = float(np.sqrt(np.mean(ways**2)))
    if not scale > 0:
        raise DataError(f"{name}: the pen never moves, every (dx, dy) is 0")
    return scale


def _split(
    drawings: list[Drawing], shares: Mapping[str, float], config: DataConfig, name: str
) -> dict[str, list[Drawing]]:
    keys = np.array([row_key(each.moves, each.text, config.seed) for each in drawings], np.uint64)
    side = split_rows(keys, shares, name)
    return {part: [each for each, s in zip(drawings, side) if s == i] for i, part in enumerate(shares)}


def _facts(drawings: Mapping[str, list[Drawing]]) -> dict[str, Any]:
    lengths = {part: np.array([len(each.moves) for each in found]) for part, found in drawings.items()}
    seen = {each.moves.tobytes() for each in drawings["train"]}
    again = {part: sum(each.moves.tobytes() in seen for each in found) for part, found in drawings.items()}
    return {
        "drawings": sum(map(len, drawings.values())),
        "points": int(sum(n.sum() for n in lengths.values())),
        "lengths": lengths_of(list(lengths.values())),
        "split": {part: {"examples": len(n), "points": int(n.sum())} for part, n in lengths.items()},
        "notes": [f"{n} drawings of {part} are in train too" for part, n in again.items() if n and part != "train"],
    }


def _unseen(drawings: Mapping[str, list[Drawing]], codec: CharCodec | None) -> Iterator[str]:
    if codec is None:
        return
    for part, found in drawings.items():
        unknown = dict.fromkeys(c for each in found for c in codec.unknown(each.text or ""))
        if unknown:
            yield f"characters in the texts of {part} that are not in train: {some(list(unknown))}"


def _fingerprint(sections: Mapping[str, Examples]) -> str:
    digest = hashlib.sha256()
    for part, section in sections.items():
        for name, field in section.fields.items():
            digest.update(f"{part} {name} {field.values.shape}".encode())
            digest.update(field.offsets[0].tobytes())
            digest.update(np.ascontiguousarray(field.values).tobytes())
    return digest.hexdigest()[:32]


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
