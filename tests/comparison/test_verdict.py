"""What is said of a comparison: who is selected and by what, how sure that is, and over what."""

from __future__ import annotations

import io
from typing import Any

import pytest

from unrolled.cli.table import print_comparison
from unrolled.comparison.verdict import make_verdict

COSTS = dict.fromkeys(
    ("training_seconds", "tokens_per_second", "tick_microseconds", "memory_megabytes", "receptive_field",
     "serial_depth", "failed"))  # fmt: skip


def row(label: str, valid: float | None, score: float | None, kind: str = "model", **more: Any) -> dict[str, Any]:
    made = {"label": label, "kind": kind, "valid": valid, "score": score, "parameters": 10, "steps": 5, "spread": 0.0}
    made |= {"valid_nats": None}
    made |= {"runs": [f"{label}-0"] if score is not None else [], "figures": {"accuracy": 0.5}, "beaten_by": []}
    return made | {"interval": None if score is None else [score - 0.1, score + 0.1]} | COSTS | more


def table(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"rows": list(rows), "score": "error", "split": "test", "folds": None, "seeds": [0], "units": 40,
            "unit": "examples", "figures": ["error", "accuracy"], "task": "classify", "data": "a.csv",
            **more}  # fmt: skip


def test_validation_selects_and_test_is_told_with_its_interval_and_n():
    found = make_verdict(table(row("tcn", 0.3, 0.1), row("gru", 0.2, 0.25)), lambda one, other: False)
    assert (found["selected"], found["winner"]) == ("gru", None)
    assert found["verdict"] == (
        "Selected on validation data: gru (0.2000 error). It has 0.2500 error on test data (95 % interval 0.1500 to "
        "0.3500, 40 examples, 1 seed). Its difference from tcn is not significant (5 % level, paired test over "
        "examples; seeds were not varied). "
        "The best score on test data is that of tcn (0.1000), but models are selected on validation data only."
    )


@pytest.mark.parametrize(("seeds", "says"), [
    ([0], "every other model is significant (5 % level, paired test over examples; seeds were not varied)."),
    ([0, 1, 2], "every other model is significant (5 % level, paired test over examples and 3 seeds)."),
])  # fmt: skip
def test_significant_is_never_said_without_over_what(seeds, says):
    rows = [row("gru", 0.1, 0.1), row("tcn", 0.3, 0.3), row("prior", 0.4, 0.4, "baseline")]
    found = make_verdict(table(*rows, seeds=seeds), lambda one, other: one == "gru")
    assert found["winner"] == "gru" and says in found["verdict"]


def test_a_model_that_is_better_on_test_data_is_named_but_not_selected():
    found = make_verdict(table(row("gru", 0.1, 0.4), row("tcn", 0.3, 0.1)), lambda one, other: one == "tcn")
    assert found["selected"] == "gru" and "tcn is significantly better on test data" in found["verdict"]


def test_ties_go_to_the_smaller_model_and_a_better_baseline_is_named():
    rows = [row("big", 0.1, 0.2, parameters=99), row("small", 0.1, 0.3), row("bayes", 0.05, 0.1, "baseline")]
    found = make_verdict(table(*rows), lambda one, other: False)
    assert found["selected"] == "small"
    assert "small (0.1000 error, tied with big, which has more parameters)" in found["verdict"]
    assert "No model beats the baseline bayes on validation data (0.0500)." in found["verdict"]


def test_of_equal_errors_the_likelier_predictions_are_selected():
    rows = [row("small", 0.1, 0.3, valid_nats=0.7), row("large", 0.1, 0.2, parameters=99, valid_nats=0.4)]
    found = make_verdict(table(*rows), lambda one, other: False)
    assert found["selected"] == "large"
    assert "large (0.1000 error, tied with small, which has more nats)" in found["verdict"]


def test_larger_may_be_better():
    metrics = [{"name": "chrf", "larger": True, "formula": "chrf"}]
    found = make_verdict(table(row("a", 30.0, 40.0), row("b", 35.0, 32.0), metrics=metrics), lambda one, other: False)
    assert found["selected"] == "b" and "The best score on test data is that of a (40.0000)" in found["verdict"]


def test_where_no_model_was_trained_it_is_said():
    rows = [row("gru", None, None, not_trained="not trained: needs about 4 min"), row("prior", 0.4, 0.4, "baseline")]
    found = make_verdict(table(*rows), lambda one, other: False)
    assert found["selected"] is None and found["verdict"] == "No model was trained: the budget is too short."


def test_without_test_data_it_is_said_that_scores_are_of_validation_data():
    found = make_verdict(table(row("a", 0.1, 0.1), row("b", 0.2, 0.2), split="valid"), lambda one, other: False)
    assert "There is no test data: all scores are computed on the validation data" in found["verdict"]


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_the_terminal_names_every_column_that_it_leaves_out(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    found = table(row("gru", 0.1, 0.2), row("bayes", 0.2, 0.3, "baseline"))
    found |= make_verdict(found, lambda one, other: False)
    to = io.StringIO()
    print_comparison("comparisons/a", found, to)
    text = to.getvalue()
    assert "40 examples, 1 seed" in " ".join(text.split()) and "▸ gru" in text
    head, tail = text.split("Selected on", 1)
    for name in ("accuracy", "params", "train s", "positions/s", "µs/tick", "MB", "field", "depth"):
        shown = " ".join(head.split()).replace(" \n", " ")
        assert all(word in shown for word in name.split()) or f"{name}" in tail.split("Columns left out")[-1]
    assert ("Columns left out" in tail) == (columns != "200")
