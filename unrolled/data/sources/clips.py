"""Recordings: files of sound, folders of them, a table that names them, or samples in memory, each with what is known
of it by name: its folder, the groups of a pattern for file names, the other columns of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.front import option
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.files.cell_values import as_numbers, narrowed
from unrolled.data.files.file_names import file_of_row
from unrolled.data.files.name_pattern import groups_in
from unrolled.data.files.tables import Table
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.given_splits import ALL, given_part, settled, sources_by_split
from unrolled.data.readers.sound import READER, in_range, read_clip, read_sound
from unrolled.data.sources.labelled_table import table_in

SUFFIXES = READER.suffixes
NAMES = ("file", "path", "sound", "audio", "clip", "filename", "file_name", "wav")  # of the column of files
SILENT = 0.01  # of the loudest frame: 40 dB below it
FRAME = 0.01  # seconds of a frame of which it is said whether it is silent

Floats = NDArray[np.float32]


class Clip(NamedTuple):
    """A recording."""

    samples: Floats  # [T] between -1 and 1
    known: Mapping[str, Any]  # by name
    place: str
    part: str = ALL
    channels: int = 1  # that were averaged


class Hearing(NamedTuple):
    """How recordings are read."""

    rate: int | None = None  # samples a second, to which others are resampled; None: that of the files
    trim: bool = False  # whether silence at both ends goes
    pattern: str | None = None  # for the names of files


def clips(source: Any, hearing: Hearing) -> tuple[int, Iterator[Clip]]:
    """The rate, and all recordings of a source, read one after the other."""
    found = _recordings(source, hearing)
    first = next(found, None)
    if first is None:
        raise DataError(f"{name_of(source)}: there is no sound in it")
    rate = hearing.rate or first[1]

    def read() -> Iterator[Clip]:
        for clip, own in _chained(first, found):
            if own != rate and hearing.rate is None:
                raise DataError(
                    f"{clip.place}: has {own:,} samples a second, but the previous files have {rate:,}; give "
                    f"{option('rate')} to resample all to one rate"
                )
            samples = resampled(clip.samples, own, rate)
            samples = trimmed(samples, rate) if hearing.trim else samples
            if len(samples) == 0:
                raise DataError(f"{clip.place}: there is no sound in it; remove it")
            yield clip._replace(samples=samples)

    return rate, read()


def _chained(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def resampled(samples: Floats, rate: int, wanted: int) -> Floats:
    """At another rate, by a polyphase filter that takes away what the lower rate cannot hold."""
    if rate == wanted:
        return samples
    from scipy.signal import resample_poly

    common = math.gcd(rate, wanted)
    return np.asarray(resample_poly(samples, wanted // common, rate // common), np.float32)


def trimmed(samples: Floats, rate: int) -> Floats:
    """Without the frames at both ends that are 40 dB below the loudest.

    >>> trimmed(np.concatenate([np.zeros(300), np.ones(200), np.zeros(100)]).astype(np.float32), 1000).shape
    (200,)
    """
    n = max(1, round(FRAME * rate))
    starts = np.arange(0, len(samples), n)
    loud = np.maximum.reduceat(np.abs(samples), starts) if len(samples) else np.empty(0)
    heard = np.flatnonzero(loud > SILENT * loud.max(initial=0))
    return samples[starts[heard[0]] : starts[heard[-1]] + n] if len(heard) else samples[:0]


def one_clip(value: Any, rate: int, place: str) -> Floats:
    """Samples [T] of a file or an array, which must have the rate of a run."""
    if isinstance(value, str | PathLike):
        samples, own = read_clip(named_path(value))
        if own != rate:
            raise DataError(f"{value}: has {own:,} samples a second, but this run has {rate:,}; convert it first")
        return samples
    return _array(value, place)


# ---- where they are from


def _recordings(source: Any, hearing: Hearing) -> Iterator[tuple[Clip, int]]:
    """All recordings as they are, with the rate of each."""
    sources = sources_by_split(source)
    if sources is not None:
        for part, each in sources.items():
            for clip, rate in _recordings(each, hearing):
                yield clip._replace(part=settled(clip.part, part, sources, clip.place)), rate
        return
    if isinstance(source, str) and source.startswith(BUILTIN):
        yield from _builtin(source)
    elif isinstance(source, str | PathLike):
        yield from _at(named_path(source), hearing)
    else:
        yield from _in_memory(source, hearing)


def _builtin(source: str) -> Iterator[tuple[Clip, int]]:
    for made in asked(source, "sounds").read():
        known = dict(made.target)
        rate = int(known.pop("rate"))
        yield Clip(made.input, known, made.place, made.part), rate


def _at(path: Path, hearing: Hearing) -> Iterator[tuple[Clip, int]]:
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
        files = [each for each in files if not each.name.startswith(".")]
        if not files:
            raise DataError(f"{path}: there are no sound files in this folder; expected {listed(SUFFIXES)}")
        yield from _files(files, [{"folder": each.parent.name, "file": each.name} for each in files], hearing)
    elif path.suffix.lower() in SUFFIXES:
        yield from _files([path], [{"folder": path.parent.name, "file": path.name}], hearing)
    else:
        TextFile(path).require()
        table = table_in(path)
        if table is None:
            raise DataError(
                f"{path}: expected sound ({listed(SUFFIXES)}), a folder of it, or a table with the names of files"
            )
        yield from _table(table, path, hearing)


def _files(files: list[Path], known: list[dict[str, Any]], hearing: Hearing) -> Iterator[tuple[Clip, int]]:
    if hearing.pattern is not None:
        found = groups_in([each.name for each in files], hearing.pattern)
        for path, own, groups in zip(files, known, found, strict=True):
            if groups and all(value is None for value in groups.values()):
                raise DataError(f"{path}: the name does not match the pattern {hearing.pattern}; fix one of them")
            own |= {name: value for name, value in groups.items() if value is not None}
    for path, own in zip(files, known, strict=True):
        part = given_part(own["part"], str(path)) if own.get("part") else ALL
        heard = read_sound(path)
        yield Clip(heard.samples, own, str(path), part, heard.channels), heard.rate


def _table(table: Table, path: Path, hearing: Hearing) -> Iterator[tuple[Clip, int]]:
    columns = table.columns()
    column = next((name for name in columns if name.lower() in NAMES), None)
    if column is None:
        raise DataError(f"{path}: no column with the names of sound files; expected one called {listed(NAMES)}")
    files, known = [], []
    for number, cells in table.rows(columns):
        row, place = dict(zip(columns, cells)), table.place(number)
        file = file_of_row(row[column], [path.parent], place)
        if file is None:
            raise DataError(f"{place}: there is no sound file '{row[column]}' beside the table")
        files.append(file)
        known.append({"folder": file.parent.name, **row, "file": file.name})
    yield from _files(files, known, hearing)


def _in_memory(source: Any, hearing: Hearing) -> Iterator[tuple[Clip, int]]:
    if hearing.rate is None:
        raise UsageError(f"samples in memory have no rate: give {option('rate')}")
    for number, each in enumerate(source):
        yield clip_of(each, f"clip {number}"), hearing.rate


def clip_of(value: Any, place: str) -> Clip:
    """Samples, or a row of them with what is known of them."""
    row = dict(value) if isinstance(value, Mapping) else {"sound": value}
    column = next((name for name in row if name.lower() in NAMES), None)
    if column is None:
        raise DataError(f"{place}: found {listed(row)}, expected samples under the name 'sound'")
    part = given_part(row["part"], place) if row.get("part") else ALL
    return Clip(_array(row.pop(column), place), row, place, part)


def _array(values: Any, place: str) -> Floats:
    samples = in_range(as_numbers(values, place), place)
    if samples.ndim == 2 and 1 <= samples.shape[1] <= 8:
        samples = samples.mean(axis=1)  # channels
    if samples.ndim != 1:
        raise DataError(f"{place}: found sound of shape {list(samples.shape)}, expected samples [time]")
    if not np.isfinite(samples).all():
        raise DataError(f"{place}: there are samples that are not finite numbers")
    return narrowed(samples, place)


def name_of(source: Any) -> str:
    return str(source) if isinstance(source, str | PathLike) else "the data"
