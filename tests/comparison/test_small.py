"""Small data: folds and a larger test split are chosen from counts, speed and time, and what is asked for stays."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from unrolled.comparison import api, small
from unrolled.comparison.api import make_plan
from unrolled.comparison.budget import Paces, Timing
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.small import Counts, larger_splits, with_folds
from unrolled.core.errors import UsageError
from unrolled.training.estimate import Pace

FAST, SLOW = Pace(0.01, 0.1, 0.1), Pace(2.0, 1.0, 1.0)


def rows(n: int, **more: str) -> list[dict[str, Any]]:
    return [{"text": f"word {i} {'fine' if i % 3 else 'poor'}", "label": "ab"[i % 3 == 0], **more} for i in range(n)]


@pytest.mark.parametrize(("counts", "split"), [
    (Counts(1999, (1000, 999), ()), {}),  # 5 % are 100 examples
    (Counts(1000, (500, 500), ()), {"split": "80/10/10"}),
    (Counts(1000, (975, 25), ()), {"split": "65/15/20"}),  # five of the rarer class
    (Counts(1000, (990, 10), ()), {"split": "80/10/10"}),  # of too rare a class no count is wanted
    (Counts(60, (30, 30), ()), {"split": "60/15/25"}),
    (Counts(60, (), ()), {"split": "60/15/25"}),  # numbers
    (Counts(211, (70, 70, 71), ("train", "test"), 36), {"split": "85/15"}),  # a given test split stays
    (Counts(1900, (950, 950), ("train", "test"), 1000), {"split": "90/10"}),
    (Counts(60, (30, 30), ("train", "valid"), 40), {}),
])  # fmt: skip
def test_splits_have_enough_examples_in_all_and_of_each_class(counts, split):
    found, notes = larger_splits(counts, {})
    assert found == split
    assert bool(notes) == (bool(split) and "test" not in counts.given)
    for name in ("split", "data.split"):
        assert larger_splits(counts, {name: "80/10/10"}) == ({}, [])


@pytest.mark.parametrize(("seconds", "paces", "given", "folds"), [
    (600, {"a": FAST, "b": FAST}, (), 5),
    (100, {"a": FAST, "b": FAST}, (), 5),
    (60, {"a": FAST, "b": FAST}, (), 3),
    (30, {"a": FAST, "b": FAST}, (), "auto"),
    (600, {"a": SLOW, "b": SLOW}, (), "auto"),
    (600, {"a": FAST, "b": SLOW, "c": FAST}, (), 5),  # one slow model does not decide
    (600, {"a": FAST}, ("train", "test"), 5),
    (600, {"a": FAST}, ("train", "valid"), "auto"),
    (600, {}, (), "auto"),  # nothing is trained
])  # fmt: skip
def test_as_many_folds_as_there_is_time_for(seconds, paces, given, folds):
    timing = Timing(seconds, jobs=5, trained=3, at_once=2)
    asked, notes = with_folds(CompareConfig(), Counts(500, (250, 250), given), paces, timing, ["before"])
    assert asked.folds == folds
    assert notes[0] == "before"
    told = " ".join(notes[1:])
    if "valid" in given or not paces:
        assert not told
    else:
        assert ("-fold cross-validation" in told) == (folds != "auto")
        assert ("no time for cross-validation" in told) == (folds == "auto")


def test_a_budget_that_is_named_is_enough():
    timing = Timing(30.0, jobs=5, trained=3, at_once=2)
    named = timing.budget(8.0, 3)
    assert timing._replace(left=named).share(3) == pytest.approx(8.0)


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that are as fast on a busy machine."""
    monkeypatch.setattr(api, "paces_of", lambda *_: Paces({"dan": FAST}, True))


def plan(tmp_path: Path, n: int = 90, **settings: Any) -> Any:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows(n))), encoding="utf-8")
    usual = {"models": "dan", "threads": 1, "tokens": "word", "jobs": 1}
    settings = {"time": 6000} | settings  # of which a busy machine uses some before anything is decided
    return make_plan(path, "classify", usual | settings, started=time.monotonic())


def test_small_data_gets_folds_and_a_larger_splits_split(tmp_path):
    found = plan(tmp_path)
    assert found.n_folds == found.asked.folds == 5
    assert found.settings["split"] == "60/15/25"
    assert {job.folder for job in found.jobs if job.members} >= {"dan", "memoryless"}
    assert any("25 % of them are for test" in note for note in found.notes)
    assert any("5-fold cross-validation" in note for note in found.notes)


@pytest.mark.parametrize(
    "settings", [{"steps": 5}, {"seeds": 2}, {"fractions": "0.5,1"}, {"folds": None}, {"folds": 1}, {"plain": True}]
)
def test_what_is_asked_for_stays(tmp_path, settings):
    found = plan(tmp_path, **settings)
    assert found.n_folds == 1
    assert "split" not in found.settings
    assert not found.notes


def test_folds_and_splits_that_are_given_win(tmp_path):
    assert plan(tmp_path, folds=4).n_folds == 4
    assert "split" not in plan(tmp_path, folds=4).settings
    assert plan(tmp_path, split="60/20/20").settings["split"] == "60/20/20"


def test_more_data_and_other_tasks_are_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(small, "SMALL", 80)
    found = plan(tmp_path)
    assert (found.n_folds, found.asked.folds, found.notes) == (1, "auto", [])
    (tmp_path / "text.txt").write_text("some words\n" * 300, encoding="utf-8")
    settings = {"models": "elman", "threads": 1, "jobs": 1, "time": 6000}
    assert make_plan(tmp_path / "text.txt", "next-token", settings, started=time.monotonic()).n_folds == 1


def test_none_and_one_are_no_folds_and_others_are_refused():
    assert CompareConfig.parse({"folds": "none"}).folds is CompareConfig.parse({"folds": "1"}).folds is None
    assert CompareConfig.parse({"folds": "auto"}).folds == "auto"
    with pytest.raises(UsageError, match="folds"):
        CompareConfig.parse({"folds": "0"})
    with pytest.raises(UsageError, match="folds"):
        CompareConfig.parse({"folds": "many"})
