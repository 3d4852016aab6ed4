"""Which model of a comparison is used: the one with the best score on validation data. Test data has no part in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.errors import DataError
from unrolled.core.metric import metrics_in
from unrolled.core.opening import require_own_folders
from unrolled.runs.storage.directory import CONFIG, TABLE
from unrolled.runs.storage.formats import COMPARE_AGAIN, read_checked

Row = Mapping[str, Any]
Table = Mapping[str, Any]


class Selected(NamedTuple):
    """A row of a comparison's table, and the folder of the one of its runs that is opened."""

    row: Row
    run: str


def loss_of(table: Table, value: float | None) -> float:
    """A score such that smaller is better, by the direction that the table gives for its score; infinite: no score.

    >>> table = {"metrics": [{"name": "chrf", "larger": True, "formula": "chrf"}]}
    >>> loss_of({}, 0.5), loss_of(table, 40.0), loss_of({}, None)
    (0.5, -40.0, inf)
    """
    return math.inf if value is None else metrics_in(dict(table), "score")[0].loss(value)


def rank(table: Table, row: Row) -> tuple[float, float, float]:
    """The order of rows: by the score on validation data; with folds it is the cross-validated one.

    Of equal scores, such as few errors among few examples, the row comes first whose predictions are likelier, and of
    those that are not probabilities the model with fewer parameters; rows without a score come last.

    >>> rows = [{"valid": 0.2, "parameters": 9}, {"valid": None}, {"valid": 0.2, "parameters": 3}, {"valid": 0.3},
    ...         {"valid": 0.2, "valid_nats": 0.6, "parameters": 9}, {"valid": 0.2, "valid_nats": 0.7, "parameters": 1}]
    >>> [rows.index(row) for row in sorted(rows, key=lambda row: rank({}, row))]
    [4, 5, 2, 0, 3, 1]
    """
    nats, parameters = row.get("valid_nats"), row.get("parameters")
    last = math.inf
    return (
        loss_of(table, row.get("valid")), last if nats is None else nats, last if parameters is None else parameters
    )  # fmt: skip


def read_table(path: Path) -> dict[str, Any]:
    """The table of a comparison; every row has a label."""
    place = path / TABLE
    table = read_checked(place, within=path)
    if not isinstance(table.get("rows"), list):
        raise DataError(f"{place}: not the table of a comparison; {COMPARE_AGAIN}")
    if any(not isinstance(row, dict) or not isinstance(row.get("label"), str) for row in table["rows"]):
        raise DataError(f"{place}: a row has no label; {COMPARE_AGAIN}")
    for row in table["rows"]:
        runs = row.get("runs") or []
        if not isinstance(runs, list) or not all(isinstance(name, str) for name in runs):
            raise DataError(f"{place}: the runs of a row are not a list of names; {COMPARE_AGAIN}")
    return table


def select(table: Table) -> Selected | None:
    """The model or ensemble that the validation scores select, and of its seeds the run with the best one; no baseline.

    >>> gru = {"kind": "model", "valid": 0.2, "valid_of_runs": [0.3, 0.1], "runs": ["gru-0", "gru-1"], "score": 0.5}
    >>> select({"rows": [gru, {"kind": "model", "valid": 0.3, "runs": ["tcn-0"], "score": 0.1}]}).run
    'gru-1'
    """
    models = [
        row for row in table["rows"] if row.get("kind") != "baseline" and row["runs"] and row.get("valid") is not None
    ]
    if not models:
        return None
    row = min(models, key=lambda row: rank(table, row))
    scores = row.get("valid_of_runs") or [None] * len(row["runs"])
    _, folder = min(zip(scores, row["runs"], strict=True), key=lambda pair: loss_of(table, pair[0]))
    return Selected(row, str(folder))


def run_at(path: Path) -> Path:
    """The run itself, or where `path` is a comparison, the run that its validation scores select."""
    if not (path / TABLE).is_file() or (path / CONFIG).exists():
        return path
    try:
        found = select(read_table(path))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path / TABLE}: not the table of a comparison ({error})") from None
    if found is None:
        raise DataError(f"{path}: no model of this comparison has finished")
    require_own_folders(path)
    return path / Path(found.run).name
