"""The types of results against results: those that saved runs of every task gave, and their own files."""

from __future__ import annotations

import json
import operator
from functools import reduce
from typing import Any, Required, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pytest
from pydantic import TypeAdapter, create_model

import unrolled
from tests.fixtures.make import COMPARISONS, RUNS, restored
from unrolled import results

KINDS: dict[str, Any] = {"predict": results.Prediction, "score": results.Scored, "generate": results.Generated}
NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())


def checked(kind: Any) -> Any:
    """A type that pydantic checks: it does not take the dictionaries of `typing` before Python 3.12."""
    if is_typeddict(kind):
        keys = {key: hint for key, hint in get_type_hints(kind).items() if key != "roll"}  # an array
        hints = get_type_hints(kind, include_extras=True).items()
        needed = {key for key, hint in hints if kind.__total__ or get_origin(hint) is Required}
        fields: Any = {key: (checked(hint), ... if key in needed else None) for key, hint in keys.items()}
        return create_model(kind.__name__, **fields)
    if get_origin(kind) in (list, dict):
        return get_origin(kind)[tuple(map(checked, get_args(kind)))]
    if str(get_origin(kind)) in ("typing.Union", "<class 'types.UnionType'>"):
        return reduce(operator.or_, map(checked, get_args(kind)))
    return kind


def check(kind: Any, value: Any) -> None:
    TypeAdapter(checked(kind)).validate_json(json.dumps(value, default=np.ndarray.tolist), strict=True)


def expected(name: str) -> dict[str, Any]:
    return dict(restored(json.loads((RUNS / f"{name}.json").read_text(encoding="utf-8"))["expected"]))


@pytest.mark.parametrize("name", NAMES)
def test_results_are_what_their_types_say(name: str) -> None:
    for verb, kind in KINDS.items():
        for line in expected(name).get(verb, []):
            check(kind, line)
            assert "roll" not in line or line["roll"].dtype == np.uint8


@pytest.mark.parametrize("verb", KINDS)
def test_every_key_is_of_some_result(verb: str) -> None:
    given = {key for name in NAMES for line in expected(name).get(verb, []) for key in line}
    assert set(get_type_hints(KINDS[verb])) - given <= {"candidates", "strokes"}  # of several texts; of no prompt


def test_the_results_of_runs_are_what_their_type_says() -> None:
    found = [unrolled.load(RUNS / name).result for name in NAMES]
    for result in found:
        check(results.RunResult, result)
    given = {key for result in found for key in result}
    assert set(results.RunResult.__annotations__) - given <= {
        "trained_parameters",
        "chosen",
        "recipe",
        "weights",
        "members",
    }  # by settings


def test_the_table_of_a_comparison_is_what_its_type_says() -> None:
    found = unrolled.Comparison(COMPARISONS / "folds")
    for row in found.table["rows"]:  # which tables of that time have not
        row.update(  # type: ignore[typeddict-unknown-key]
            recipe=[], weights={}, seconds_given=None, rung=None, stopped=None, valid_nats=None
        )
    found.table["race"] = []
    check(results.Table, found.table)
    assert set(results.Table.__annotations__) <= set(found.table)
    for row in found.rows:
        check(results.Row, row)
        assert set(results.Row.__annotations__) <= set(row)


@pytest.mark.parametrize(("name", "rows"), [
    ("next-token", ["tick", "tack"]), ("denoise", [[0.1, 0.2], [0.3, 0.4]]), ("forecast", [0.1, 0.2]),
])  # fmt: skip
def test_ticks_of_a_stream_are_what_their_type_says(name: str, rows: list[Any]) -> None:
    session = unrolled.load(RUNS / name).session()
    found = [tick for row in rows for tick in session.push(row)] + session.end()
    assert found
    for tick in found:
        check(results.Tick, tick)
