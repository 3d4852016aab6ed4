"""The ends of the series that a run was trained on, kept with it: what a forecast continues without any other data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError
from unrolled.core.opening import read_bytes, read_json
from unrolled.core.outside import write_new
from unrolled.data.examples import Examples, Ragged, offsets_of, ragged
from unrolled.data.time_series.codec import Encoded, SeriesCodec
from unrolled.data.time_series.prepare import (
    CALENDAR,
    FIRST,
    KNOWN,
    LAST,
    NAMES,
    PAST,
    SCALE,
    STATIC,
    TIMES,
    columns_of,
    fields_of,
)
from unrolled.data.time_series.table import Series

VALUES = "units"  # a field: values as they were given, of series whose scale may have to be another
ARRAYS, FACTS = "histories.safetensors", "histories.json"
FEW = 200_000  # numbers of all series that are kept whole
LARGEST = 1 << 30  # bytes


class History(NamedTuple):
    """One series of some, up to its last value."""

    section: Examples
    number: int

    @property
    def name(self) -> str:
        return str(self.section.columns[NAMES][self.number])

    @property
    def length(self) -> int:
        return int(np.asarray(self.section.columns[LAST])[self.number])


def save_histories(directory: Path, sections: Mapping[str, Examples], codec: SeriesCodec) -> None:
    """The last steps of each series, with what is known of its future."""
    from safetensors.numpy import save

    section = list(sections.values())[-1]
    last = np.asarray(section.columns[LAST])
    whole = last.sum() * codec.d_in <= FEW
    n = int(last.max(initial=1)) if whole else max(codec.lookback, 4 * codec.season, 64) + 1
    first = np.maximum(last - n, 0)
    arrays: dict[str, NDArray[Any]] = {"last": last - first, "scale": np.asarray(section.columns[SCALE], np.float64)}
    if STATIC in section.columns:
        arrays["static"] = np.asarray(section.columns[STATIC])
    for name, field in section.fields.items():
        ends = [len(each) if name in (KNOWN, CALENDAR, TIMES) else int(end) for each, end in zip(field, last)]
        parts = [each[a:b] for each, a, b in zip(field, first.tolist(), ends)]
        arrays[f"{name}.values"] = np.ascontiguousarray(np.concatenate(parts))
        arrays[f"{name}.offsets"] = offsets_of(map(len, parts))
    write_new(directory / ARRAYS, save(arrays))
    write_new(directory / FACTS, json.dumps({"names": list(section.columns[NAMES])}).encode() + b"\n")


def load_histories(directory: Path, codec: SeriesCodec) -> Examples:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    names = read_json(directory / FACTS, within=directory)
    try:
        arrays = load(read_bytes(directory / ARRAYS, LARGEST, within=directory))
        return _examples(arrays, [str(name) for name in names["names"]], codec)
    except (SafetensorError, KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"{directory / ARRAYS}: damaged, the ends of the series cannot be read ({error})") from None


def _examples(arrays: Mapping[str, NDArray[Any]], names: Sequence[str], codec: SeriesCodec) -> Examples:
    """Checked, because a directory may hold anything."""
    widths = {TARGET: codec.d_step, PAST: len(codec.past), KNOWN: codec.d_known, CALENDAR: codec.d_calendar}
    fields: dict[str, Ragged] = {}
    for name, width in widths.items():
        if width:
            fields[name] = _field(arrays, name, (width,), np.float32, len(names))
    fields[TIMES] = _field(arrays, TIMES, (), np.int64, len(names))
    last = np.asarray(arrays["last"], np.int64)
    _require(last.shape == (len(names),) and bool((last == fields[TARGET].lengths).all()), "their lengths differ")
    scale = np.asarray(arrays["scale"], np.float64)
    _require(scale.shape == (len(names), 3, codec.d_step) and bool((scale[:, 1:] > 0).all()), "their scales")
    columns: dict[str, Any] = {SCALE: scale, NAMES: list(names), FIRST: np.zeros_like(last), LAST: last}
    if codec.d_static:
        columns[STATIC] = np.asarray(arrays["static"], np.float32)
        _require(columns[STATIC].shape == (len(names), codec.d_static), "their static covariates")
    return Examples(fields, columns)


def _field(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], kind: Any, n: int
) -> Ragged:  # fmt: skip
    values, offsets = np.asarray(arrays[f"{name}.values"], kind), np.asarray(arrays[f"{name}.offsets"], np.int64)
    _require(values.shape[1:] == shape and offsets.shape == (n + 1,), f"{name} has another shape")
    _require(
        offsets[0] == 0 and offsets[-1] == len(values) and bool((np.diff(offsets) >= 0).all()),
        f"{name} has other offsets",
    )
    return Ragged(values, (offsets,))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def section_of(series: Sequence[tuple[Series, Encoded]], first: Sequence[int] | None = None) -> Examples:
    """Series with their encoding, (Series, Encoded) each, as one section."""
    encoded = [each for _, each in series]
    last = np.array([len(each.values) for each in encoded], np.int64)
    begin = np.zeros_like(last) if first is None else np.array(first, np.int64)
    fields = fields_of(encoded, [each.stamps for each, _ in series])
    fields[VALUES] = ragged([each.values[:n] for (each, _), n in zip(series, last.tolist())])
    return Examples(fields, {**columns_of(encoded, [each.name for each, _ in series]), FIRST: begin, LAST: last})
