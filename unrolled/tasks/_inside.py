"""One series, to look inside of a model that reads it: inputs by position and by column, and what is explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import TARGET, Batch
from unrolled.core.errors import DataError, UsageError
from unrolled.data.examples import Examples, ragged
from unrolled.data.files.cell_values import as_series
from unrolled.data.time_series.codec import fit_scale
from unrolled.data.time_series.histories import VALUES, History, section_of
from unrolled.data.time_series.prepare import NAMES, SCALE, TIMES, judged_from
from unrolled.data.time_series.table import Series
from unrolled.data.time_series.windows import Cutter, Spots
from unrolled.tasks._live import numbers_in
from unrolled.tasks._series import SeriesTask

BARE = "bare"  # a column: the series has no times
WHOLE = 15  # digits of a number in units of the data, which was rounded to those that it has
UNITS = {"standard": "standard deviations", "mean": "mean absolute values", "none": "units of the data"}


class Along(NamedTuple):
    """A series that is read from its beginning, not by a window."""

    history: History


class Inside(SeriesTask):
    """Inputs as they are given, and as they are looked at."""

    def history(self, given: task.Given) -> History:
        """A series that was read, or bare numbers, which are the first values of a new one."""
        if isinstance(given.value, History):
            return given.value
        return self._bare(given.value, given.place or "the series")

    def _bare(self, value: Any, place: str) -> History:
        codec = self.codec
        if codec.past or codec.d_known or codec.static or codec.calendar:
            raise UsageError(f"{place}: this run has covariates: give a table with their columns, not numbers alone")
        values = as_series(numbers_in(value, place) if isinstance(value, str) else value, place)
        if not len(values):
            raise DataError(f"{place}: there are no values to forecast from; give at least one")
        if values.shape[1] != codec.d_step:
            raise DataError(f"{place}: found {list(values.shape)}, expected values [time, {codec.d_step}]")
        name = next(iter(codec.scales)) if len(codec.scales) == 1 else ""
        none = np.empty((len(values), 0))
        series = Series(name, np.arange(len(values), dtype=np.int64), values, none, none, {}, place)
        section = section_of([(series, codec.encode(series, len(values)))])
        return History(replace(section, columns={**section.columns, BARE: np.array([True])}), 0)

    def scaled_by_past(self, history: History) -> tuple[History, int]:
        """A series whose scale knows nothing of what is judged, and the first step that is: where the run does not know
        the series, its scale is fitted on the steps before."""
        section, i = history
        if history.name in self.codec.scales:
            return history, 1
        codec, begin = self.codec, judged_from(self.codec, history.length)
        values = section.fields[VALUES][i]
        found = np.array(fit_scale(codec.unscaled(values[:begin]), values[:begin], codec.scaling, codec.season))
        again = ((codec.unscaled(values) - found[0]) / found[1]).astype(np.float32)
        fields = {name: ragged([field[i]]) for name, field in section.fields.items()} | {TARGET: ragged([again])}
        columns = {
            name: [column[i]] if isinstance(column, list) else np.asarray(column)[i : i + 1]
            for name, column in section.columns.items()
        }
        return History(Examples(fields, {**columns, SCALE: found[None]}), 0), begin

    def times_of(self, section: Examples, i: int, first: int, last: int) -> list[str]:
        """The times of steps first .. last - 1 of a series, those behind its end too; the numbers of bare ones."""
        if BARE in section.columns:
            return [str(t) for t in range(first, last)]
        known, step = section.fields[TIMES][i], self.codec.step
        stamps = known[first:last].tolist()
        if (more := last - first - len(stamps)) > 0 and step is not None:
            stamps += step.after(int(known[-1]), more + max(0, first - len(known)))[-more:]
        return [self.codec.written(int(stamp)) for stamp in stamps]

    def name_of(self, section: Examples, i: int) -> str:
        """The name of a series; of one alone, that of its column."""
        return str(section.columns[NAMES][i] or self.codec.targets[0])

    # ---- one example

    def completed(self, model: Any, value: Any) -> Any:
        along = any(isinstance(module, task.Solvable) for module in model.modules())
        return Along(self.history(task.Given(value, place="the input"))) if along else value

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        history = value.history if isinstance(value, Along) else self.history(task.Given(value, place="the input"))
        end, pairs = history.length, self.config.by == "sequence"
        spot = Spots(np.array([history.number]), np.array([end]))
        cutter = Cutter(history.section, self.trained, every=False)
        if pairs:  # from the last step on
            batch = cutter.pairs(spot, self.codec.horizon)
            first = end - 1
        else:
            batch = replace(cutter.batch(spot, length=end if isinstance(value, Along) else None), at=None)
            first = end - batch.x.shape[1]
        return batch, self.times_of(history.section, history.number, first, first + batch.x.shape[1])

    def input_of(self, line: Mapping[str, Any]) -> Any:
        """The series up to the end of its split, or up to the end of what the run holds of it."""
        section = self.sections[line["split"]] if self.prepared is not None else self.histories()
        return History(section, list(section.columns[NAMES]).index(line["series"]))

    def source_names(self, source: Tensor) -> list[str]:
        """Of a window, by how far back a step is."""
        n = len(source)
        return [f"t-{n - 1 - t}" if t < n - 1 else "t" for t in range(n)]

    def input_columns(self) -> list[str]:
        codec = self.trained
        values = list(codec.targets) if codec.joint else ["value"]
        known = [*(name for name, _, _ in codec.known), *(["time gap"] if codec.gaps is not None else [])]
        static = [name for name, how in codec.static for _ in ([0] if isinstance(how[0], float) else how)]
        return [
            *values, *(["observed"] * codec.d_step if codec.observed else []), *(name for name, _, _ in codec.past),
            *(part for part in codec.calendar for _ in range(2)), *known * codec.horizon, *static,
        ]  # fmt: skip

    def explained(self, y: Tensor, at: int) -> task.Explained:
        """The median forecast of the last step that the model predicts at once."""
        n = self.trained.horizon
        name = self.codec.targets[0] if self.codec.joint else "the series"
        return task.Explained(
            f"{name}, {n} {'steps' if n > 1 else 'step'} ahead", "the median forecast", UNITS[self.codec.scaling],
            lambda out: self._medians(out[:, -1])[:, -self.codec.d_step],
        )  # fmt: skip

    def _medians(self, y: Tensor) -> Tensor:
        emission = self.emission
        return emission.median(y) if y.shape[-1] == emission.d_out else y


# ---- as JSON


def plain(values: NDArray[np.float64]) -> list[Any]:
    """[T, D] in units of the data as numbers, or as lists where a step has several; None is a missing one."""
    rows = [listed(row, WHOLE) for row in values]
    return [row[0] for row in rows] if values.shape[1] == 1 else rows


def listed(values: NDArray[np.float64], digits: int = 7) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.{digits}g}") for value in values]
