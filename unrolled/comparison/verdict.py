"""What may be said of a comparison in words: which model validation data selects, and what it is worth on test data.

The selected model is compared on test data with every other row. Because test data had no part in selecting it, its
score there is not the best of many. A difference that is called significant is so over test examples; whether other
seeds would show it too is known only where seeds were varied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unrolled.core.errors import listed
from unrolled.core.metric import metrics_in
from unrolled.pictures.letters import title_words
from unrolled.report.ranking import disagreements
from unrolled.report.words import interval_words, units_words
from unrolled.runs.selection import loss_of, select

Row = Mapping[str, Any]


def make_verdict(table: Mapping[str, Any], is_better: Callable[[str, str], bool]) -> dict[str, Any]:
    """`selected` and `winner` (labels or None) and the `verdict` in words.

    `is_better(one, other)` says whether the row `one` is significantly better than `other`. The winner is the selected
    model where it is significantly better than every other row.
    """
    found = select(table)
    if found is None:
        late = any(row.get("not_trained") for row in table["rows"])
        said = "No model was trained: the budget is too short." if late else "No run has finished."
        return {"selected": None, "winner": None, "verdict": said}
    best = found.row
    others = [row for row in table["rows"] if row["score"] is not None and row["label"] != best["label"]]
    close = [row for row in others if not is_better(best["label"], row["label"])]
    words = [_selected(table, best), _measured(table, best), *_against(table, best, others, close, is_better)]
    figures = {row["label"]: row["figures"] for row in table["rows"] if row["score"] is not None}
    if ended := [row["label"] for row in table["rows"] if row.get("stopped")]:
        words.append(f"Stopped early in the race, with less training time: {listed(ended)}.")
    words += disagreements(figures, metrics_in(dict(table), table["score"]))
    return {
        "selected": best["label"],
        "winner": best["label"] if others and not close else None,
        "verdict": " ".join(words),
    }


def _selected(table: Mapping[str, Any], best: Row) -> str:
    """By what the model was selected."""
    score, folds = title_words(table["score"]), table["folds"]
    if folds:
        how = f"{folds}-fold cross-validation on the training data"
        return f"Selected by {how}: {best['label']} ({best['valid']:.4f} {score})."
    same = [row for row in table["rows"] if row["valid"] == best["valid"] and row["kind"] != "baseline"]
    ties = [row["label"] for row in same if row["label"] != best["label"]]
    more = "parameters" if len({row["valid_nats"] for row in same}) == 1 else "nats"
    tie = f", tied with {listed(ties)}, which {'has' if len(ties) == 1 else 'have'} more {more}" if ties else ""
    return f"Selected on validation data: {best['label']} ({best['valid']:.4f} {score}{tie})."


def _measured(table: Mapping[str, Any], best: Row) -> str:
    """What the selected model has on test data, with its interval and on how much."""
    if table["split"] != "test":
        return "There is no test data: all scores are computed on the validation data that also selected the model."
    about = ", ".join(filter(None, [interval_words(best), units_words(table)]))
    who = f"Its ensemble of {table['folds']} models has" if table["folds"] and best["steps"] else "It has"
    return f"{who} {best['score']:.4f} {title_words(table['score'])} on test data ({about})."


def _against(
    table: Mapping[str, Any],
    best: Row,
    others: Sequence[Row],
    close: Sequence[Row],
    is_better: Callable[[str, str], bool],
) -> list[str]:
    """How it stands to the other rows on test data."""
    if not others:
        return []
    over = f"5 % level, paired test over {table.get('unit') or 'examples'}"
    seeds = len(table["seeds"])
    varied = f"{over} and {seeds} seeds" if seeds > 1 else f"{over}; seeds were not varied"
    if not close:
        return [f"Its lead over every other model is significant ({varied})."]
    worse = [row["label"] for row in close if is_better(row["label"], best["label"])]
    equal = [row["label"] for row in close if row["label"] not in worse]
    said = []
    if worse:
        said.append(
            f"{listed(worse)} {'is' if len(worse) == 1 else 'are'} significantly better on test data ({varied})."
        )
    if equal:
        said.append(f"Its difference from {listed(equal)} is not significant ({varied}).")
    level = loss_of(table, best["valid"])
    before = [row for row in others if row["kind"] == "baseline" and loss_of(table, row["valid"]) <= level]
    if before:
        said.append(f"No model beats the baseline {before[0]['label']} on validation data ({before[0]['valid']:.4f}).")
    top = min([best, *others], key=lambda row: loss_of(table, row["score"]))
    if table["split"] == "test" and loss_of(table, top["score"]) < loss_of(table, best["score"]):
        said.append(
            f"The best score on test data is that of {top['label']} ({top['score']:.4f}), but models are selected "
            "on validation data only."
        )
    return said
