"""The suite: its pieces, and what its page says of results, good and bad."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import suite, suite_page
from unrolled.data.builtin_sets import names


def result(model: float, interval: list[float] | None, *baselines: float, larger: bool = False) -> dict[str, Any]:
    row = {"kind": "baseline", "interval": None, "steps": 0, "valid": 0.5}
    rows: list[dict[str, Any]] = [{**row, "label": f"b{i}", "score": score} for i, score in enumerate(baselines)]
    rows.append({"kind": "model", "label": "gru", "score": model, "interval": interval, "steps": 60, "valid": 0.4})
    rows.append({"kind": "model", "label": "lstm", "score": 9.0, "interval": [8.0, 10.0], "steps": 51, "valid": 0.6})
    metrics = [{"name": "error", "larger": larger, "formula": "rate"}]
    facts = {"selected": "gru", "metrics": metrics, "score": "error", "task": "classify", "folds": None}
    return {"set": "mr", "budget": "3m", "seconds": 200.0, "rows": rows, **facts}


@pytest.mark.parametrize(("found", "outcome"), [
    (result(0.1, [0.05, 0.2], 0.3, 0.2), "win"),
    (result(0.25, [0.15, 0.4], 0.3, 0.2), "tie"),
    (result(0.25, [0.22, 0.28], 0.3, 0.2), "loss"),
    (result(0.2, None, 0.2), "tie"),
    (result(0.25, [0.2, 0.3], 0.1, larger=True), "win"),
    (result(0.25, [0.2, 0.3], 0.9, larger=True), "loss"),
    (result(0.25, [0.2, 0.3]), ""),
])  # fmt: skip
def test_outcomes(found, outcome):
    assert suite_page.outcome(found) == outcome


def test_the_page_lists_wins_losses_failures_and_what_was_not_run(monkeypatch):
    kept = {
        "suite-mr-3m": result(0.1, [0.05, 0.2], 0.3),
        "suite-names18-3m": {"set": "names18", "budget": "3m", "seconds": 5.0, "error": "names18: no such file"},
    }
    monkeypatch.setattr(suite_page, "read", kept.get)
    page = suite_page.page()
    assert "2 sets: 1 win, 1 failed." in page
    assert "fewest steps of a ranked, trained model are 51" in page
    assert "2 of 2 comparisons used more or less" in page
    assert "A single model, the best one on validation data, is better than every baseline" in page
    assert "contains the best one, on 1 of 1 sets." in page
    assert "contains the best one, on 0 of 0 sets (1 have no such row)." in page
    assert "worse than the weakest baseline: mr: lstm." in page
    assert (
        "| mr (`mr-polarity`) | classify | error | gru 0.1 | 0.05 to 0.2 | b0 0.3 |  | win | 60 | 200 s (111%) |"
        in page
    )
    assert "failed: names18: no such file" in page
    assert page.count("Not run: ") == 3
    assert "names18" not in page.split("Not run: ")[2]


def test_every_set_has_three_minutes_and_a_third_has_all_budgets():
    found = suite.pieces()
    assert len(found) == len(set(found)) == len(suite.SOURCES) + 2 * len(suite.THIRD)
    assert len(suite.THIRD) == -(-len(suite.SOURCES) // 3)
    assert set(suite.BUILT_IN) <= set(names())


def test_a_piece_is_one_command_without_settings(monkeypatch, tmp_path):
    ran = []

    class Done:
        returncode, stdout, stderr = 2, "", "note: something\nunrolled: /data/set: too small"

    monkeypatch.setattr(suite.subprocess, "run", lambda command, **_: ran.append(command) or Done())
    found = suite.run("builtin-digits-1m")
    assert ran[0][3:-2] == ["compare", "builtin:digits", "--budget", "1m", "-o"]
    assert found["command"] == "unrolled compare builtin:digits --budget 1m"
    assert (found["set"], found["budget"], found["exit"]) == ("builtin-digits", "1m", 2)
    assert found["error"] == "unrolled: /data/set: too small"
