"""A run, a session and a comparison as Python and a notebook show them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import unrolled
from tests.fixtures.make import COMPARISONS, RUNS
from tests.thorough import every

NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", every(3, NAMES))
def test_every_run_can_be_shown(name: str) -> None:
    run = unrolled.load(RUNS / name)
    first, score, cost = repr(run).splitlines()
    assert first == f"Run {RUNS / name}: {run.config.model} on data in memory, task {run.config.task}"
    assert score.startswith("  test ") and "parameters, " in cost
    shown = run._repr_html_()
    assert "Scores on test data" in shown
    assert shown.count("<figure") == 1 + min(4, len(list((RUNS / name / "figures").glob("*.json"))))


def test_the_score_stands_beside_the_best_baseline() -> None:
    assert "test error 0.08333 (smaller is better); best baseline: logistic regression 0; does not beat" in repr(
        unrolled.load(RUNS / "classify")
    )
    told = repr(unrolled.load(RUNS / "next-frame"))
    assert "best baseline: key by key 2.612\n" in told  # which it beats
    assert "fitted in closed form" in repr(unrolled.load(RUNS / "tag-counts"))


def test_the_table_has_the_best_first() -> None:
    shown = unrolled.load(RUNS / "classify")._repr_html_()
    labels = [line.split("<td>")[1].split("</td>")[0] for line in shown.splitlines() if line.startswith("<tr><td>")]
    assert labels[:4] == ["logistic regression", "naive Bayes", "bilstm", "class frequencies"]


def test_a_run_without_results_can_be_shown(tmp_path: Path) -> None:
    shutil.copytree(RUNS / "classify", tmp_path / "run")
    run = unrolled.load(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    assert "no results: training has not finished, or the directory is no longer available" in repr(run)
    assert "no results" in run._repr_html_()


def test_a_session_says_where_it_is() -> None:
    session = unrolled.load(RUNS / "next-token").session()
    session.push("tick")
    assert (
        repr(session) == f"Session of {RUNS / 'next-token'} (task next-token): 4 ticks read, every tick costs the same"
    )


def test_a_comparison_can_be_shown(tmp_path: Path) -> None:
    shutil.copytree(COMPARISONS / "folds", tmp_path / "folds")
    found = unrolled.Comparison(tmp_path / "folds")
    first, verdict, scores = repr(found).splitlines()
    assert first == f"Comparison {tmp_path / 'folds'}: task classify on data in memory"
    assert verdict.strip() == found.table["verdict"]
    assert scores.startswith("  test error: memoryless 0.0000, ")
    shown = found._repr_html_()
    assert shown is not None and "memoryless (selected)" in shown and "logistic regression" in shown
    shutil.rmtree(tmp_path / "folds")
    assert found._repr_html_() is None  # and a notebook shows the words
    assert "memoryless 0.0000" in repr(found)
