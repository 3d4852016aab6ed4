"""How some data will be parsed, before any training: `unrolled.describe("reviews.csv")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from unrolled.core import discover
from unrolled.core.config import Config
from unrolled.core.errors import UnrolledError, UsageError
from unrolled.data.files.cell_values import is_gap, is_number
from unrolled.data.files.file_form import files_as
from unrolled.data.given_splits import with_given
from unrolled.data.look import Look, look
from unrolled.runs.config import full_keys, given_once
from unrolled.runs.guess import form_in, guess_task, task_alone

N_EXAMPLES = 3
LOOKED_AT = 300  # rows


def describe(
    data: Any, task: str | None = None, settings: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """How data will be parsed: the task and why it was guessed, columns and their use, the split, counts, first
    examples.

    Settings of the data and of the task are keyword arguments, as for `unrolled.train`, which parses data the same way.
    """
    settings, data = given_once(settings, more), with_given(data)
    with files_as(form_in(settings)):
        seen = look(data)
        guessed = guess_task(seen, settings) if task is None else None
        name = guessed.task if guessed is not None else str(task)
        _require_of_data(name, settings)
        prepared = task_alone(name, settings)
        prepared.prepare(data)
        return {
            "task": name,
            "guessed": None if guessed is None else guessed.why,
            "columns": list(_columns(seen.first, prepared.columns())),
            **prepared.facts(),
            "first": prepared.first(data, N_EXAMPLES),
        }


def _require_of_data(task: str, settings: Mapping[str, Any]) -> None:
    """Refuse what would change nothing: settings of a model or of training."""
    for key, path in zip(settings, full_keys(settings, Config, discover.tasks.load(task).Config)):
        if path.partition(".")[0] not in ("data", "files", "task_settings"):
            raise UsageError(f"'{key}' is no setting of the data or of the task '{task}'; leave it out")


def _columns(seen: Look, uses: Mapping[str, str]) -> Iterator[dict[str, str | None]]:
    """The columns of a table or the arrays of a file: what they hold, and what for; None: they are not used."""
    names = [] if seen.table is None else seen.table.columns()
    by_number = bool(uses) and not uses.keys() & {*names}  # a first line that is no header
    for number, name in enumerate(names, start=1):
        called = str(number) if by_number else name
        yield {"name": called, "holds": _holds(list(_cells(seen, name))), "use": uses.get(called)}
    for name, array in seen.arrays.items():
        shape = ", ".join(map(str, np.shape(array))) if isinstance(array, np.ndarray) else str(len(array))
        use = uses.get(str(name)) if uses else "data"  # of a task that reads all arrays alike
        yield {"name": str(name), "holds": f"[{shape}]", "use": use}


def _cells(seen: Look, name: str) -> Iterator[Any]:
    assert seen.table is not None
    try:
        yield from (cells[0] for _, cells in islice(seen.table.rows([name]), LOOKED_AT))
    except UnrolledError:  # told by whoever reads that column
        return


def _holds(cells: Sequence[Any]) -> str:
    """What is in a column, in a word."""
    filled = [cell for cell in cells if not is_gap(cell)]
    if not filled:
        return "nothing"
    if all(is_number(cell) for cell in filled):
        return "numbers"
    return "text" if all(isinstance(cell, str) for cell in filled) else "lists"
