"""The pictures that a table and its runs give: quality against cost, and learning curves over steps, time and data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from unrolled.core.errors import listed
from unrolled.core.metric import Metric
from unrolled.pictures.kinds import Number, Picture, Plot, Series
from unrolled.pictures.letters import title_words
from unrolled.report.group import Group, is_larger
from unrolled.report.members import member_table
from unrolled.report.read import RunFacts, number
from unrolled.report.rungs import rung_table
from unrolled.report.tuning import search_pictures

MOST_POINTS = 150  # of one curve


def pictures_of(group: Group) -> list[Picture]:
    """All that there is something to draw for."""
    made = [
        cost_plot(group, "training_seconds", "training time", "training time in seconds"),
        cost_plot(group, "parameters", "parameters", "parameters"),
        curve_plot(group, "step", "steps", "training step"),
        curve_plot(group, "seconds", "time", "seconds since the start"),
        data_size_plot(group),
        rung_table(group),
        member_table(group),
    ]
    return [*search_pictures(group), *(picture for picture in made if picture is not None)]


# Quality against cost -------------------------------------------------------------------------------------------------


def cost_plot(group: Group, key: str, word: str, x_label: str) -> Plot | None:
    """Score against a cost, with the front of those that nobody beats in both."""
    rows = [row for row in group.rows if is_larger(row, group.rows) and number(row.get("score")) is not None]
    known = [row for row in rows if number(row.get(key)) is not None]
    if sum(row.get("kind") != "baseline" for row in known) < 2:
        return None
    costs = [float(row[key]) for row in known]
    use_log = min(costs) > 0 and max(costs) > 4 * min(costs)
    series = [
        _points(name, [row for row in known if (row.get("kind") == "baseline") == is_baseline], key)
        for name, is_baseline in (("models", False), ("baselines", True))
    ]
    metric = group.metric
    front = pareto(known, key, metric)
    series.append(
        Series(
            name="Pareto front", x=[float(row[key]) for row in front], y=[row["score"] for row in front], style="dashed"
        )
    )
    level = min((row for row in rows if row not in known), key=lambda row: metric.loss(row["score"]), default=None)
    if level is not None:  # its cost was not measured, but its score is what the others must beat
        series.append(Series(name=level["label"], x=[min(costs), max(costs)], y=[level["score"]] * 2, style="dashed"))
    unit = title_words(group.score)
    alt = (
        f"{unit} ({metric.better}) against {word} for {listed(row['label'] for row in known)}. On the Pareto "
        f"front, not dominated in both quality and cost: {listed(row['label'] for row in front)}."
    )
    return Plot(
        title=f"Quality against {word}", alt=alt, x_label=x_label, y_label=unit, log_x=use_log,
        series=[each for each in series if each.x],
    )  # fmt: skip


def _points(name: str, rows: list[dict[str, Any]], key: str) -> Series:
    has_ends = any(_interval(row) for row in rows)
    ends = [_interval(row) or (row["score"], row["score"]) for row in rows]
    return Series(
        name=name, x=[float(row[key]) for row in rows], y=[row["score"] for row in rows], style="points",
        labels=[row["label"] for row in rows], low=[end[0] for end in ends] if has_ends else None,
        high=[end[1] for end in ends] if has_ends else None,
    )  # fmt: skip


def _interval(row: dict[str, Any]) -> tuple[float, float] | None:
    ends = row.get("interval")
    if isinstance(ends, list) and len(ends) == 2 and all(number(end) is not None for end in ends):
        return float(ends[0]), float(ends[1])
    return None


def pareto(rows: list[dict[str, Any]], key: str, metric: Metric) -> list[dict[str, Any]]:
    """The rows such that no other is at most as costly and at most as bad, and better in one; cheapest first."""
    front: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row[key], metric.loss(row["score"]))):
        if not front or metric.loss(row["score"]) < metric.loss(front[-1]["score"]):
            front.append(row)
    return front


# Learning curves ------------------------------------------------------------------------------------------------------


def curve_plot(group: Group, key: str, word: str, x_label: str) -> Plot | None:
    """What chooses the weights, on validation data while training; several seeds as their mean with a band."""
    series = []
    for row in group.rows:
        if not is_larger(row, group.rows):
            continue
        curves = [curve for run in group.runs_of(row) if len(curve := _curve(run, key, group.criterion)) > 1]
        if curves:
            series.append(_merged(row["label"], curves))
    if not series:
        return None
    unit = title_words(group.criterion)
    ends = listed(f"{each.name} {each.y[-1]:.3f}" for each in series)
    alt = f"{unit} on validation data against {x_label}; at the end: {ends}."
    return Plot(
        title=f"Learning curves over {word}", alt=alt, x_label=x_label, y_label=f"validation {unit}", series=series
    )


def _curve(run: RunFacts, key: str, score: str) -> list[tuple[float, float]]:
    """(x, score) of the evaluations, rising in x; the untrained model is left out where enough others are there."""
    points: list[tuple[float, float]] = []
    for line in run.metrics:
        x, y = number(line.get(key)), number(line.get(score))
        if (
            x is not None
            and y is not None
            and line.get("split", "valid") == "valid"
            and (not points or x > points[-1][0])
        ):
            points.append((x, y))
    return points[1:] if len(points) > 4 and run.metrics[0].get("step") == 0 else points


def _merged(label: str, curves: list[list[tuple[float, float]]]) -> Series:
    """One line of the curves of several seeds, over the stretch that all of them have."""
    import numpy as np

    if len(curves) == 1:
        x, y = _thinned(curves[0])
        return Series(name=label, x=x, y=y)
    start, stop = max(curve[0][0] for curve in curves), min(curve[-1][0] for curve in curves)
    grid = np.array([x for x, _ in curves[0] if start <= x <= stop])
    if len(grid) < 2:
        grid = np.linspace(start, max(stop, start), 20)
    lines = np.array([np.interp(grid, [x for x, _ in curve], [y for _, y in curve]) for curve in curves])
    keep = slice(None, None, -(-len(grid) // MOST_POINTS))
    mean, low, high = lines.mean(0)[keep], lines.min(0)[keep], lines.max(0)[keep]
    return Series(name=label, x=grid[keep].tolist(), y=mean.tolist(), low=low.tolist(), high=high.tolist())


def _thinned(curve: list[tuple[float, float]]) -> tuple[list[float], list[Number]]:
    every = -(-len(curve) // MOST_POINTS)
    kept = curve[::every] if (len(curve) - 1) % every == 0 else [*curve[::every], curve[-1]]
    return [x for x, _ in kept], [y for _, y in kept]


# Data size ------------------------------------------------------------------------------------------------------------


def data_size_plot(group: Group) -> Plot | None:
    """The score over the share of the training data, where rows have several."""
    by_model: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    for row in group.rows:
        share = number(row.get("fraction"))
        if share is not None and number(row.get("score")) is not None:
            by_model.setdefault(str(row.get("model") or row["label"]), []).append((share, row))
    series = [_over_size(name, rows) for name, rows in by_model.items() if len({share for share, _ in rows}) > 1]
    if not series:
        return None
    unit = title_words(group.score)
    alt = f"{unit} ({group.metric.better}) against the share of the training data for {listed(s.name for s in series)}."
    return Plot(
        title="Learning curves over data size", alt=alt, x_label="share of the training data in %",
        y_label=unit, log_x=True, series=series,
    )  # fmt: skip


def _over_size(name: str, rows: Iterable[tuple[float, dict[str, Any]]]) -> Series:
    rising = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    ends = [_interval(row) for row in rising]
    whole = [end for end in ends if end is not None] if all(ends) else []
    return Series(
        name=name, x=[100 * float(row["fraction"]) for row in rising], y=[row["score"] for row in rising],
        low=[end[0] for end in whole] or None, high=[end[1] for end in whole] or None,
    )  # fmt: skip
