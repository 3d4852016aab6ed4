"""From a table to series by split: read, put on a grid, cut by time, scaled by what the training span shows.

Every split has the whole of every series, and a span of it: forecasts are made and judged inside of the span, from all
that lies before them (spans.py).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError, UsageError, some
from unrolled.core.front import option
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.config import DataConfig
from unrolled.data.examples import ROWS, Examples, Ragged, lengths_of, ragged
from unrolled.data.files.cell_values import shown
from unrolled.data.files.in_memory import table_of
from unrolled.data.files.tables import ListTable, Table
from unrolled.data.files.text_file import named_path
from unrolled.data.prepared import Prepared
from unrolled.data.reading import names_of
from unrolled.data.sources.folder_table import folder_table
from unrolled.data.sources.labelled_table import table_in
from unrolled.data.time_series.codec import Encoded, SeriesCodec, fit_scale, moments
from unrolled.data.time_series.grid import on_grid, on_saved_grid, require_alike
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.season import find_season
from unrolled.data.time_series.spans import (
    Asked,
    Whole,
    choose_horizon,
    choose_lookback,
    cuts_of,
    require_variety,
)
from unrolled.data.time_series.stamps import Step
from unrolled.data.time_series.table import Series, SeriesTable, open_series

PAST, KNOWN, CALENDAR, TIMES = "past", "known", "calendar", "times"  # fields
STATIC, SCALE, FIRST, LAST, NAMES = "static", "scale", "first", "last", "names"  # columns


def open_source(source: Any, reading: SeriesReading, target_needed: bool = True) -> SeriesTable:
    """The series of a file, a data frame, a list of dicts or an array."""
    return open_series(_table(source), reading, target_needed)


def _table(source: Any) -> Table:
    if isinstance(source, str) and source.startswith(BUILTIN):
        return ListTable(asked(source, "series").read(), source)
    if isinstance(source, str | os.PathLike):
        path = named_path(source)
        table = folder_table(path) if path.is_dir() else table_in(path)
        if table is None:
            raise DataError(f"{path}: expected series in a table (csv, tsv, jsonl, json, parquet), one row per time")
        return table
    found = table_of(source)
    if found is None and (rows := _rows_of(source)) is not None:
        return ListTable(rows, "the array")
    if found is None:
        raise UsageError(
            f"series cannot be read from a {type(source).__name__}; give a path, a data frame, a list of dicts or an "
            "array [time] or [time, channels]"
        )
    return found


def _rows_of(source: Any) -> list[dict[str, float]] | None:
    """An array, or whatever can be one, of numbers as rows; None: it is none."""
    try:
        array = np.asarray(source, np.float64)
    except (TypeError, ValueError):
        return None
    if array.ndim not in (1, 2) or not array.size:
        return None
    wide = array[:, None] if array.ndim == 1 else array
    names = ["value"] if wide.shape[1] == 1 else [f"value {d + 1}" for d in range(wide.shape[1])]
    return [dict(zip(names, row)) for row in wide.tolist()]


def prepare_series(source: Any, reading: SeriesReading, asked: Asked, config: DataConfig) -> Prepared:
    """Read, split and scale."""
    table = open_source(source, reading)
    series, step = on_grid(table)
    kept = [each for each in series if each.n_known > 1]
    if not kept:
        raise DataError(f"{table.name}: no series has two values, so there is nothing to learn")
    if gone := [shown(each.name) for each in series if each.n_known < 2]:
        have = "1 series has" if len(gone) == 1 else f"{len(gone):,} series have"
        table.notes[f"{have} fewer than two values and cannot be used: {some(gone)}"] = None
    horizon = asked.horizon or choose_horizon(kept, step, asked.season, table)
    cuts = cuts_of(kept, step, horizon, asked, config, table)  # [n, 3] ends of train, valid and test
    require_variety(kept, cuts, table)
    season = asked.season or find_season([each.values[:end] for each, end in zip(kept, cuts[:, 0])], step, horizon)
    lookback = asked.lookback or choose_lookback(horizon, season, int(cuts[:, 0].max()))
    scaled = _scaled_by(kept, cuts, table)
    codec = _fit(table, kept, cuts[:, 0], scaled, step, asked, horizon, lookback, season)
    encoded = [codec.encode(each, int(end)) for each, end in zip(kept, cuts[:, -1])]
    sections = _sections(kept, encoded, cuts, scaled)
    facts = _facts(table, kept, codec, sections)
    told = {"reading": table.reading.model_dump(mode="json")}
    return Prepared(sections, {"series": codec}, facts, _fingerprint(kept, cuts), told)


def encode_histories(
    source: Any, reading: SeriesReading, codec: SeriesCodec, judged: bool = False
) -> list[tuple[Series, Encoded]]:
    """The series of other data as a saved run takes them, each up to its last value. Where forecasts are judged, the
    scale of a series that the run does not know is fitted on what comes before the first of them."""
    table = open_source(source, reading)
    require_alike(table, codec.are, codec.zoned)
    found = [on_saved_grid(each, codec.step, table) for each in table.series]
    for each in found if not codec.observed else ():
        _require_whole(each, table)
    seen = [(each, each.n_known) for each in found if each.n_known]
    return [(each, codec.encode(each, n, judged_from(codec, n) if judged else n)) for each, n in seen]


def judged_from(codec: SeriesCodec, n: int) -> int:
    """Steps of a series of n before the first forecast that is judged."""
    return min(codec.lookback, max(n - codec.horizon, 1))


def _require_whole(series: Series, table: SeriesTable) -> None:
    missing = np.flatnonzero(np.isnan(series.values[: series.n_known]).any(1))
    if len(missing):
        stamp = int(series.stamps[missing[0]])
        place = table.name if table.reading.time is None else table.place(series.name, stamp)
        of = f" of series {shown(series.name)}" if series.name else ""
        raise DataError(
            f"{place}: the value{of} at {table.column.written(stamp)} is missing, but this run was trained without "
            "missing values; fill it in, or train on data with missing values"
        )


# ---- codec and sections


def _scaled_by(series: Sequence[Series], cuts: Whole, table: SeriesTable) -> Whole:
    """How many steps the scale of each series is fitted on: its training span or, where it begins later, all before the
    next cut. Forecasts are judged behind them, so that no scale knows what is to be forecast."""
    found = cuts[:, -1].copy()
    for k in reversed(range(cuts.shape[1] - 1)):
        enough = [int((~np.isnan(each.values[:cut]).all(1)).sum()) > 1 for each, cut in zip(series, cuts[:, k])]
        found = np.where(enough, cuts[:, k], found)
    if late := int((found > cuts[:, 0]).sum()):
        are = "1 series begins" if late == 1 else f"{late:,} series begin"
        table.notes[f"{are} after the training span: forecasts are judged from the following split on"] = None
    return found


def _fit(
    table: SeriesTable, series: Sequence[Series], ends: Whole, scaled: Whole, step: Step | None, asked: Asked,
    horizon: int, lookback: int, season: int,
) -> SeriesCodec:  # fmt: skip
    reading = table.reading
    training = [(each, int(end)) for each, end in zip(series, ends)]
    gaps = None
    if reading.spacing == "irregular":
        gaps = float(np.median(np.concatenate([np.diff(each.stamps[:end]) for each, end in training if end > 1])))
    codec = SeriesCodec(
        tuple(names_of(reading.target)), step, table.column.are, table.column.zoned, horizon, lookback, season,
        asked.transform, asked.scaling, any(bool(np.isnan(each.values[: each.n_known]).any()) for each in series), gaps,
        reading.calendar, moments([each.past[:end] for each, end in training], names_of(reading.past)),
        moments([each.known[:end] for each, end in training], names_of(reading.future)),
        _static([each for each, end in training if end], names_of(reading.static)),
    )  # fmt: skip
    if reading.calendar and table.column.are == "numbers":
        raise UsageError(f"{table.name}: {option('calendar')} needs a column of times; there is none")
    scales = {}
    for each, end in zip(series, scaled):
        known = each.values[:end]
        scales[each.name] = fit_scale(codec.transformed(known, each), known, asked.scaling, season)
    return replace(codec, scales=scales)


def _static(series: Sequence[Series], names: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    found: list[tuple[str, Any]] = []
    for name in names:
        values = [each.static[name] for each in series]
        if all(isinstance(value, float) for value in values):
            numbers = np.array(values, np.float64)
            found.append((name, (float(numbers.mean()), float(numbers.std()) or 1.0)))
        else:
            found.append((name, tuple(sorted({str(value) for value in values}))))
    return tuple(found)


def fields_of(encoded: Sequence[Encoded], stamps: Sequence[NDArray[np.int64]]) -> dict[str, Ragged]:
    found = {TARGET: ragged([each.values for each in encoded]), TIMES: ragged(list(stamps))}
    for name, values in (
        (PAST, [each.past for each in encoded]),
        (KNOWN, [each.known for each in encoded]),
        (CALENDAR, [each.calendar for each in encoded]),
    ):
        if values[0].shape[1]:
            found[name] = ragged(values)
    return found


def columns_of(encoded: Sequence[Encoded], names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {SCALE: np.stack([each.scale for each in encoded]), ROWS: np.arange(len(encoded))}
    if len(encoded[0].static):
        found[STATIC] = np.stack([each.static for each in encoded])
    return {**found, NAMES: list(names)}


def _sections(
    series: Sequence[Series], encoded: Sequence[Encoded], cuts: Whole, scaled: Whole
) -> dict[str, Examples]:  # fmt: skip
    fields, columns = (
        fields_of(encoded, [each.stamps for each in series]),
        columns_of(encoded, [e.name for e in series]),
    )
    starts = [np.zeros(len(series), np.int64), *(np.clip(scaled, cut, end) for cut, end in zip(cuts.T, cuts.T[1:]))]
    return {
        split: Examples(fields, {**columns, FIRST: first, LAST: last})
        for split, first, last in zip(("train", "valid", "test"), starts, cuts.T)
    }


def _facts(
    table: SeriesTable, series: Sequence[Series], codec: SeriesCodec, sections: dict[str, Examples]
) -> dict[str, Any]:
    missing = sum(int(np.isnan(each.values[: each.n_known]).sum()) for each in series)
    notes = [*table.notes]
    if missing:
        few = "1 value is missing: it is" if missing == 1 else f"{missing:,} values are missing: they are"
        notes.append(f"{few} not filled in and not evaluated")
    every = "irregular" if codec.step is None else str(codec.step)
    split = {name: _span(each, series, codec) for name, each in sections.items()}
    if table.reading.time is not None:
        spans = [each for each in split.values() if each["steps"]]
        how = "at irregular times" if codec.step is None else f"of {every}"
        many = f" in {len(series):,} series" if len(series) > 1 else ""
        steps = f"{sum(each['steps'] for each in spans):,} steps {how}{many}"
        notes.insert(0, f"{table.name}: {steps}, from {spans[0]['from']} to {spans[-1]['to']}")
    return {
        "source": table.name, "series": len(series), "step": every, "season": codec.season, "horizon": codec.horizon,
        "lookback": codec.lookback, "targets": list(codec.targets), "missing": missing,
        "lengths": lengths_of([np.array([each.n_known for each in series])]),
        "split": split, "notes": notes,
    }  # fmt: skip


def _span(section: Examples, series: Sequence[Series], codec: SeriesCodec) -> dict[str, Any]:
    first, last = np.asarray(section.columns[FIRST]), np.asarray(section.columns[LAST])
    some = [(each, int(a), int(b)) for each, a, b in zip(series, first, last) if b > a]
    if not some:
        return {"steps": 0}
    begins, ends = min(int(e.stamps[a]) for e, a, _ in some), max(int(e.stamps[b - 1]) for e, _, b in some)
    return {"steps": int((last - first).sum()), "from": codec.written(begins), "to": codec.written(ends)}


def _fingerprint(series: Sequence[Series], cuts: Whole) -> str:
    digest = hashlib.sha256(cuts.tobytes())
    for each in series:
        digest.update(each.name.encode("utf-8", "surrogatepass"))
        for array in (each.stamps, each.values, each.past, each.known):
            digest.update(np.ascontiguousarray(array).reshape(-1).data)
        digest.update(repr(sorted(each.static.items())).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
