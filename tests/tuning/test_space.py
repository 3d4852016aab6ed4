"""What is searched for a model, and where: around the defaults, within what is allowed, without what is given."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from unrolled.core import discover
from unrolled.core.config import parse_assignments
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.storage import formats
from unrolled.training.api import configure, given_keys
from unrolled.tuning.config import Range, TuneConfig
from unrolled.tuning.files import FILE, Search, read_search, write_search
from unrolled.tuning.space import first_of, space_of


def searched(model: str = "gru", asked: str | None = None, **given: Any) -> dict[str, Range]:
    config = configure("next-token", model, ["some text"], given)
    return {each.key: each for each in space_of(config, given_keys(config, given, {}), asked)}


def test_what_is_searched_by_default() -> None:
    found = searched()
    assert set(found) == {
        "optimiser.lr", "optimiser.weight_decay", "batching.batch_size", "ends.dropout", "model.d_state",
        "model.n_layers", "model.dropout"}  # fmt: skip
    lr, width, layers = (found[key] for key in ("optimiser.lr", "model.d_state", "model.n_layers"))
    assert lr.log and lr.low == pytest.approx(4e-4) and lr.high == pytest.approx(4e-2)
    assert [width.value(k) for k in range(int(width.low), int(width.high) + 1)] == [64, 128, 256, 512]
    assert (layers.kind, layers.low, layers.high) == ("integer", 1, 2)
    assert (found["ends.dropout"].low, found["ends.dropout"].high) == (0.0, 0.5)


def test_what_is_given_is_not_searched() -> None:
    assert not {"optimiser.lr", "model.d_state"} & set(searched(lr=0.01, d_state=32))
    with pytest.raises(UsageError, match="lr is given and searched"):
        searched(asked="lr", lr=0.01)


def test_what_is_asked_for_is_searched() -> None:
    found = searched(asked="lr=0.001..0.1,reset,d-state=8|16,n_layers=1..3,dropout")
    assert set(found) == {
        "optimiser.lr",
        "model.reset",
        "model.d_state",
        "model.n_layers",
        "ends.dropout",
        "model.dropout",
    }
    assert found["optimiser.lr"].log and found["optimiser.lr"].high == 0.1
    assert found["model.reset"].values == ["after", "before"] and found["model.d_state"].values == [8, 16]
    assert (found["model.n_layers"].kind, found["model.n_layers"].high) == ("integer", 3)
    assert set(searched(asked="model.dropout")) == {"model.dropout"}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("lrr", "there is no setting 'lrr' to search; did you mean 'lr'"),
        ("lr=0.1..0.001", r"invalid range '0.1..0.001' of lr: expected LOW..HIGH or A\|B\|C"),
        ("lr=fast", "invalid range 'fast' of lr"),
        ("memory", "memory has no range to search by itself; give one, such as memory=1..8"),
        (",", "nothing is left to search"),
    ],
)
def test_a_wrong_search_is_told(asked: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        searched(asked=asked)


@pytest.mark.parametrize("model", discover.models.names())
def test_every_model_has_a_space_in_which_its_defaults_are(model: str) -> None:
    """And its ends are settings that the model accepts."""
    spec = discover.model(model)
    config = configure("next-token", "gru", ["some text"], {})
    own = spec.config.parse({}).model_dump()
    config = config.model_copy(update={"model": model, "model_settings": own})
    space = space_of(config, frozenset(), None)
    assert {each.key for each in space} >= {"optimiser.lr", "batching.batch_size"}
    first = first_of(space, config)
    for each in space:
        assert each.key in first, each.key
        ends = each.values or [each.value(each.low), each.value(each.high)]
        if each.key.startswith("model."):
            name = each.key.removeprefix("model.")
            for value in (*ends, each.value(first[each.key])):
                typed = int(value) if each.kind in ("integer", "power") else value
                why = ""
                with suppress(UsageError):  # two settings may depend on each other: each value alone is allowed
                    why = str(spec.config.parse({**own, name: typed}))
                assert "invalid value" not in why


@pytest.mark.parametrize(
    ("given", "settled"),
    [
        ({}, (1800.0, 24, None)),
        ({"trials": 5}, (None, 5, 1000)),
        ({"steps": 70}, (None, 24, 70)),
        ({"trials": 5, "steps": 70}, (None, 5, 70)),
        ({"time": "10m"}, (600.0, 24, None)),
        ({"time": "10m", "trials": 8}, (600.0, 8, None)),
    ],
)
def test_how_long_a_search_is(given: dict[str, Any], settled: tuple[Any, ...]) -> None:
    found = TuneConfig.parse(given).settled
    assert (found["time"], found["trials"], found["steps"]) == settled


def test_two_measures_are_refused() -> None:
    with pytest.raises(UsageError, match="a time budget or the steps of a trial, not both"):
        TuneConfig.parse(parse_assignments(["time=5m", "steps=10"]))


RANGE = {"key": "optimiser.lr", "kind": "number", "low": 0.1, "high": 1.0}


@pytest.mark.parametrize(("change", "says"), [
    ({"at_once": 0}, "at_once = 0"), ({"at_once": 10**9}, "at_once = 1000000000"), ({"trials": -1}, "trials = -1"),
    ({"steps": None}, "a number of steps or of seconds"), ({"seconds": 3.0}, "a number of steps or of seconds"),
    ({"space": []}, "space"), ({"space": [RANGE] * 65}, "space"),
    ({"space": [RANGE | {"low": 2.0}]}, "the range of optimiser.lr is empty"),
    ({"space": [RANGE | {"low": 0.0, "log": True}]}, "the range of optimiser.lr is empty"),
    ({"space": [RANGE | {"kind": "choice"}]}, "no value of optimiser.lr to choose"),
    ({"space": [RANGE | {"kind": "power", "high": 1e6}]}, "the range of optimiser.lr is too wide"),
])  # fmt: skip
def test_a_saved_search_may_hold_anything(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    whole = Search(
        asked=TuneConfig(), model="gru", space=[Range.parse(RANGE)], first={}, at_once=2, trials=3, steps=5
    )  # fmt: skip
    write_search(tmp_path, whole)
    assert read_search(tmp_path) == whole
    body = formats.numbered(whole.model_dump(mode="json") | change)
    (tmp_path / FILE).write_text(json.dumps(formats.with_check(body)))
    with pytest.raises(DataError, match=f"{FILE}: .*{says}"):
        read_search(tmp_path)
