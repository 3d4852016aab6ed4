"""Piano rolls: sequences of binary vectors, one bit per key, read from .npz, .json and .mat files or from memory.

| file | what it holds |
|---|---|
| `.npz` | arrays [time, keys] of zeros and ones, one a sequence, or [sequences, time, keys] |
| `.json` `.json.gz` | sequences of frames, a frame being the list of MIDI numbers (21-108) that sound; -1 is silence |
| `.mat` | cell arrays of matrices [time, keys], as Boulanger-Lewandowski's data is passed around |

Names that begin with train, valid and test say which part a sequence is for; without such names the sequences are split
at random, equal ones on one side. Every value is checked: anything but zeros and ones is refused.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError, some
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples, lengths_of, ragged
from unrolled.data.files.cell_values import shown
from unrolled.data.files.json_values import json_of
from unrolled.data.files.matlab import read_mat
from unrolled.data.files.npz import load_npz
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.given_splits import (
    ALL,
    PARTS,
    given_among,
    how_split,
    notes_on,
    own_shares,
    settled,
    sources_by_split,
)
from unrolled.data.prepared import Prepared
from unrolled.data.split import row_key, split_rows

KEYS, LOWEST = 88, 21  # of a piano, and the MIDI number of the lowest: A0
LOOKED_AT = 1000  # frames, to see whether they are zeros and ones
SUFFIXES = ".npz, .json, .json.gz and .mat"

Roll = NDArray[np.uint8]  # [T, D]
Rolls = dict[str, list[Roll]]  # by part, or all together under ALL


# ---- checks


def check_roll(values: Any, place: str, width: int | None) -> Roll:
    """A sequence of frames of zeros and ones; `place` says in an error where it stands."""
    try:
        roll = np.asarray(values)
    except ValueError:  # rows of unequal lengths
        raise DataError(f"{place}: the frames have different widths") from None
    if roll.ndim != 2 or roll.dtype.kind not in "buif":
        raise DataError(f"{place}: found shape {list(roll.shape)} of {roll.dtype}, expected numbers [time, keys]")
    if len(roll) == 0 or roll.shape[1] == 0:
        raise DataError(f"{place}: the sequence is empty; remove it")
    if width is not None and roll.shape[1] != width:
        raise DataError(
            f"{place}: the frames have width {roll.shape[1]}, but the previous ones have {width}; all need the "
            "same width"
        )
    wrong = np.argwhere((roll != 0) & (roll != 1))  # NaN is neither
    if len(wrong):
        frame, key = wrong[0]
        found = roll[frame, key]
        raise DataError(f"{place}, frame {frame}, key {key}: found {found}; a key is off (0) or on (1)")
    return roll.astype(np.uint8)


def is_like_roll(values: Any) -> bool:
    """Whether the beginning of an array may be that of a roll [time, keys], or of several."""
    first = np.asarray(values[:LOOKED_AT]) if np.ndim(values) in (2, 3) else np.array("")
    return first.dtype.kind in "buif" and bool(((first == 0) | (first == 1)).all())


def check_all(found: Iterable[tuple[str, str, Any]], name: str) -> Rolls:
    """(part, place, values) of all sequences, checked, by part."""
    rolls: Rolls = {}
    width = None
    for part, place, values in found:
        roll = check_roll(values, place, width)
        width = roll.shape[1]
        rolls.setdefault(part, []).append(roll)
    if not rolls:
        raise DataError(f"{name}: there are no sequences in it")
    return rolls


def parts_of(names: Sequence[str], name: str) -> dict[str, str]:
    """Which part each name is for: all of them begin with train, valid or test, or none does."""
    part = {key: next((p for p in PARTS if key.lower().startswith(p)), ALL) for key in names}
    if ALL in part.values() and set(part.values()) != {ALL}:
        other = next(key for key in names if part[key] == ALL)
        raise DataError(
            f"{name}: '{other}' belongs to no split; either all names start with train, valid or test, or none"
        )
    return part


# ---- readers: each gives (part, place, values) of every sequence


def _in_npz(path: Path) -> Iterator[tuple[str, str, Any]]:
    arrays = load_npz(path)
    part = parts_of(list(arrays), str(path))
    for key, array in arrays.items():
        if array.ndim == 3:
            for i, values in enumerate(array):
                yield part[key], f"{path}, array '{key}', sequence {i}", values
        else:
            yield part[key], f"{path}, array '{key}'", array


def _in_mat(path: Path) -> Iterator[tuple[str, str, Any]]:
    variables = read_mat(path)
    cells = {key: value for key, value in variables.items() if isinstance(value, list)}
    if not cells:
        listed = some(variables) or "nothing"
        raise DataError(
            f"{path}: found {listed}, but no cell array of piano rolls such as traindata, validdata, testdata"
        )
    part = parts_of(list(cells), str(path))
    for key, values in cells.items():
        for i, value in enumerate(values):
            yield part[key], f"{path}, {key}, cell {i}", np.empty((0, 0)) if value is None else value


def _in_json(path: Path) -> Iterator[tuple[str, str, Any]]:
    values = json_of(TextFile(path).text(), str(path), None)
    groups = values if isinstance(values, dict) else {ALL: values}
    part = parts_of(list(groups), str(path)) if isinstance(values, dict) else {ALL: ALL}
    for key, sequences in groups.items():
        place = str(path) if key == ALL else f"{path}, {key}"
        if not isinstance(sequences, list):
            raise DataError(f"{place}: found {type(sequences).__name__}, expected a list of sequences")
        for i, frames in enumerate(sequences):
            yield part[key], f"{place}, sequence {i}", from_notes(frames, f"{place}, sequence {i}")


def from_notes(frames: Any, place: str) -> Roll:
    """Lists of MIDI numbers as a roll of 88 keys."""
    if not isinstance(frames, list):
        raise DataError(f"{place}: found {type(frames).__name__}, expected a list of frames")
    roll = np.zeros((len(frames), KEYS), np.uint8)  # [T, 88]
    for t, notes in enumerate(frames):
        if not isinstance(notes, list):
            raise DataError(f"{place}, frame {t}: found {type(notes).__name__}, expected a list of MIDI numbers")
        for note in notes:
            is_whole = isinstance(note, int) and not isinstance(note, bool)
            if not is_whole or not (note == -1 or LOWEST <= note < LOWEST + KEYS):
                top = LOWEST + KEYS - 1
                raise DataError(
                    f"{place}, frame {t}: found {shown(note)}, expected a MIDI number from {LOWEST} to {top} (or -1)"
                )
            if note != -1:
                roll[t, note - LOWEST] = 1
    return roll


def _in_memory(source: Any) -> Iterator[tuple[str, str, Any]]:
    groups = source if isinstance(source, Mapping) else {ALL: source}
    part = parts_of(list(groups), "the data") if isinstance(source, Mapping) else {ALL: ALL}
    for key, sequences in groups.items():
        for i, values in enumerate(sequences):
            yield part[key], f"{'the data' if key == ALL else key}, sequence {i}", values


def read_rolls(source: Any) -> Rolls:
    """All sequences of a file, a list of arrays [time, keys], or of files or such lists by split."""
    return check_all(_sequences(source), str(source) if isinstance(source, str | PathLike) else "the data")


def _sequences(source: Any) -> Iterator[tuple[str, str, Any]]:
    sources = sources_by_split(source)
    if sources is not None and any(isinstance(each, str | PathLike) for each in sources.values()):
        for part, each in sources.items():
            for own, place, values in _sequences(each):
                yield settled(own, part, sources, place), place, values
        return
    if not isinstance(source, str | PathLike):
        yield from _in_memory(source)
        return
    path = named_path(source)
    TextFile(path).require()
    suffix = path.suffixes[-2:] if path.suffix == ".gz" else [path.suffix]
    readers = {".npz": _in_npz, ".json": _in_json, ".json.gz": _in_json, ".mat": _in_mat}
    reader = readers.get("".join(suffix).lower())
    if reader is None:
        raise DataError(f"{source}: expected piano rolls in {SUFFIXES} files")
    yield from reader(path)


# ---- examples


def examples_of_rolls(rolls: Sequence[Roll]) -> Examples:
    return Examples({TARGET: ragged(rolls)})


def prepare_rolls(source: Any, config: DataConfig) -> Prepared:
    """Read and check a source; its own splits are kept, those that it does not give are cut by `config`."""
    rolls, shares = read_rolls(source), config.shares()
    name = str(source) if isinstance(source, str | PathLike) else "the data"
    given = given_among({part: len(found) for part, found in rolls.items()}, name)
    own = own_shares(shares, given)
    if len(own) > 1:
        rolls |= _split(rolls.pop("train" if given else ALL), own, config, name)
    rolls = {part: rolls[part] for part in PARTS if part in rolls}
    sections = {part: examples_of_rolls(found) for part, found in rolls.items()}
    width = sections["train"].values(TARGET).shape[1]
    facts = {
        "source": name,
        "keys": width,
        "split_is": how_split(shares, given, config.split),
        **_facts(sections, rolls),
    }
    facts["notes"] += notes_on(shares, given)
    return Prepared(sections, {}, facts, _fingerprint(sections), {"width": width})


def _split(rolls: list[Roll], shares: Mapping[str, float], config: DataConfig, name: str) -> Rolls:
    keys = np.array([row_key(roll, None, config.seed) for roll in rolls], np.uint64)
    side = split_rows(keys, shares, name)
    return {part: [roll for roll, s in zip(rolls, side) if s == i] for i, part in enumerate(shares)}


def _facts(sections: Mapping[str, Examples], rolls: Rolls) -> dict[str, Any]:
    lengths = np.concatenate([section.lengths(TARGET) for section in sections.values()])
    seen = {roll.tobytes() for roll in rolls["train"]}
    again = {part: sum(roll.tobytes() in seen for roll in found) for part, found in rolls.items() if part != "train"}
    return {
        "sequences": len(lengths),
        "frames": int(lengths.sum()),
        "lengths": lengths_of([lengths]),
        "split": {
            part: {
                "examples": section.n_examples,
                "frames": len(section.values(TARGET)),
                "keys_per_frame": round(float(section.values(TARGET).sum()) / len(section.values(TARGET)), 3),
            }
            for part, section in sections.items()
        },
        "notes": [f"{n} sequences of {part} are in train too" for part, n in again.items() if n],
    }


def _fingerprint(sections: Mapping[str, Examples]) -> str:
    digest = hashlib.sha256()
    for part, section in sections.items():
        (offsets,), values = section.fields[TARGET].offsets, section.values(TARGET)
        digest.update(f"{part} {values.shape}".encode())
        digest.update(offsets.tobytes())
        digest.update(np.packbits(values).tobytes())
    return digest.hexdigest()[:32]


# ---- writing


def npz_bytes(rolls: Sequence[Roll]) -> bytes:
    """An .npz file with the arrays roll_0, roll_1, ...; the same rolls give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, roll in enumerate(rolls):
            array = io.BytesIO()
            np.lib.format.write_array(array, np.ascontiguousarray(roll, np.uint8), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"roll_{i}.npy"), array.getvalue(), zipfile.ZIP_DEFLATED)
    return file.getvalue()
