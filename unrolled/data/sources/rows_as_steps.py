"""Whether the rows of a table are steps of series, by the content of its columns where their names do not tell.

People keep series down the rows: `subject, seconds, x, y, activity`. Read as examples of their own, the rows of one
subject would be on both sides of a split, and a model would learn who it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple

from unrolled.core.errors import UnrolledError
from unrolled.core.front import option
from unrolled.data.files.cell_values import is_gap, is_number
from unrolled.data.files.tables import Table
from unrolled.data.reading import Reading

LOOKED_AT = 20_000  # rows
RUNS, EACH = 3, 4  # series, and steps of one on average, at least

Column = Sequence[Any]
Spans = list[tuple[int, int]]


class _Steps(NamedTuple):
    """What the columns of such a table are for."""

    id: str
    time: str
    group: str | None
    """of several series each, such as the recordings of one person"""
    whole: bool
    """whether each series has one target"""


def order_by_content(
    table: Table, reading: Reading, target: Sequence[str], times: Collection[str]
) -> tuple[Reading, list[str]]:
    """A reading with the columns that identify series and order their steps, and columns that are then not used.

    Rows that have a target each stay rows, but those of one series are in one split.
    """
    taken = {*target, reading.part, reading.group, reading.bag}
    names = [name for name in table.columns() if name not in taken]
    found = None if reading.column or reading.bag else _steps_in(table, names, target, times)
    if found is None:
        return reading, []
    numbers = [name for name in names if name not in found[:3]]
    first = next(table.rows(numbers), (0, ()))[1] if numbers else ()
    if not first or not all(is_number(cell) or is_gap(cell) for cell in first):
        return reading, []
    group = reading.group or found.group
    if not found.whole:
        kept = f"the rows of one {group or found.id} stay in one split, and column {found.time} is not used"
        table.notes[f"{table.name}: {kept}"] = None
        unused = [name for name in (found.id, found.time, found.group) if name is not None]
        return reading.updated({"group": group or found.id}), unused
    rows = f"the rows of one {found.id} are a series in the order of column {found.time}"
    table.notes[f"{table.name}: {rows}, chosen by content; override with {option('layout', 'wide')}"] = None
    if found.group is not None and reading.group is None:
        table.notes[f"{table.name}: the series of one {found.group} stay in one split"] = None
    return reading.updated({"id": found.id, "time": found.time, "layout": "long", "group": group}), []


def target_of_steps(table: Table, names: Sequence[str], times: Collection[str]) -> str | None:
    """The last or first column, where each series has one of a few names or whole numbers there; None: the rows are no
    steps of series, or there is no such column."""
    for name in (names[-1], names[0]) if len(names) > 3 else ():
        steps = _steps_in(table, [each for each in names if each != name], (name,), times)
        if steps is not None and steps.whole:
            cells = [cell for _, (cell,) in islice(table.rows([name]), LOOKED_AT)]
            if all(map(_may_name, cells)) and 1 < len(set(map(str, cells))) <= len(cells) / EACH:
                return name
    return None


def _may_name(cell: Any) -> bool:
    """A word or a whole number."""
    return not is_gap(cell) and (not is_number(cell) or float(cell).is_integer())


def _steps_in(table: Table, names: Sequence[str], target: Sequence[str], times: Collection[str]) -> _Steps | None:
    """The columns that identify the series and order their steps; None: the rows are no steps, or it cannot be told.

    An id is the same over several rows and never comes again; a time rises within each id, and either it is called so
    or it begins with the same number in each. Of several ids the one with the fewest series is taken.
    """
    columns = dict.fromkeys([*names, *target])
    rows: list[tuple[Any, ...]] = []
    with suppress(UnrolledError):
        rows.extend(cells for _, cells in islice(table.rows(list(columns)), LOOKED_AT))
    cells = dict(zip(columns, zip(*rows)))
    if not cells:
        return None
    spans = {name: found for name in names if (found := _spans(cells[name]))}
    for id_ in sorted(spans, key=lambda name: len(spans[name])):
        others = [name for name in names if name != id_]
        called = [name for name in others if name.lower() in times and _rises(cells[name], spans[id_])]
        counted = [name for name in others if _restarts(cells[name], spans[id_])]
        if called or counted:
            within = {begin for begin, _ in spans[id_]}
            groups = [
                name for name in spans if len(spans[name]) < len(within) and within >= {a for a, _ in spans[name]}
            ]
            whole = all(len({str(cells[name][i]) for i in range(*span)}) == 1 for name in target for span in spans[id_])
            group = min(groups, key=lambda name: len(spans[name]), default=None)
            return _Steps(id_, (called or counted)[0], group, whole)
    return None


def _spans(cells: Column) -> Spans:
    """Where each value stands, if equal ones stand together; empty: they do not, or are fractions, or there are few."""
    if any(is_gap(cell) or (is_number(cell) and not float(cell).is_integer()) for cell in cells if not _is_text(cell)):
        return []
    runs = [(value, len(list(same))) for value, same in groupby(map(str, cells))]
    if len(runs) < RUNS or len(cells) < EACH * len(runs) or len({value for value, _ in runs}) < len(runs):
        return []
    ends = [0]
    for _, length in runs:
        ends.append(ends[-1] + length)
    return list(pairwise(ends))


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str) and not is_number(cell) and not is_gap(cell)


def _rises(cells: Column, spans: Spans) -> bool:
    """Numbers, or texts such as dates that sort as they are, which rise in each span."""
    if any(map(is_gap, cells)):
        return False
    numbers = all(map(is_number, cells))
    values = [float(cell) for cell in cells] if numbers else list(map(str, cells))
    if not numbers and len(set(map(len, values))) > 1:  # type: ignore[arg-type]
        return False
    return all(a < b for begin, end in spans for a, b in pairwise(values[begin:end]))  # type: ignore[operator]


def _restarts(cells: Column, spans: Spans) -> bool:
    """Numbers that count the steps of each span from the same first one."""
    if not all(is_number(cell) and not is_gap(cell) for cell in cells):
        return False
    values = [float(cell) for cell in cells]
    steps = {round(b - a, 9) for begin, end in spans for a, b in pairwise(values[begin:end])}
    return len(steps) == 1 and min(steps) > 0 and len({values[begin] for begin, _ in spans}) == 1
