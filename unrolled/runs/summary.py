"""A saved run at a glance: in a few lines, and as a table and pictures, for Python and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrolled.core.errors import UnrolledError, listed
from unrolled.core.metric import metrics_in
from unrolled.core.opening import shortened
from unrolled.data.given_splits import MEMORY
from unrolled.pictures.kinds import Table
from unrolled.pictures.letters import plain_number, title_words
from unrolled.pictures.notebook import fragment
from unrolled.runs.card import not_beaten
from unrolled.runs.config import RunConfig
from unrolled.runs.results import beside_baselines, read_result
from unrolled.runs.saved_pictures import saved_pictures
from unrolled.runs.storage.directory import RunDirectory

MOST_PICTURES = 4  # that a notebook shows; the report has all


def source_words(source: str) -> str:
    """The data of a run or a comparison in a sentence."""
    return "data in memory" if source == MEMORY else shortened(source)


def in_words(directory: RunDirectory, config: RunConfig) -> str:
    """What the run is, how good it is, what it took."""
    first = f"Run {directory.path}: {config.title} on {source_words(config.source)}, task {config.task}"
    try:
        result = read_result(directory)
    except UnrolledError:
        return f"{first}\n  no results: training has not finished, or the directory is no longer available"
    solved = f"{len(config.ensemble)} runs together" if config.ensemble else "fitted in closed form"
    steps = f"{result['steps']:,} steps" if result.get("steps") else solved
    return f"{first}\n  {_score(config.title, result)}\n  {result['parameters']:,} parameters, {steps}"


def _score(model: str, result: Mapping[str, Any]) -> str:
    """The score beside that of the best baseline."""
    split, rows = beside_baselines(model, result)
    metric, own = metrics_in(dict(result), "")[0], rows.pop(model)
    said = f"{split} {title_words(metric.name)} {plain_number(own[metric.name])} ({metric.better})"
    if not rows:
        return said
    best = min(rows, key=lambda name: metric.loss(rows[name][metric.name]))
    beaten_by = not_beaten(dict(result), split)
    verdict = f"; does not beat {listed(beaten_by)}" if beaten_by else ""
    return f"{said}; best baseline: {best} {plain_number(rows[best][metric.name])}{verdict}"


def in_html(directory: RunDirectory, config: RunConfig) -> str:
    """The same with the table of scores and the run's pictures."""
    words = in_words(directory, config)
    try:
        result = read_result(directory)
    except UnrolledError:
        return fragment([words], [])
    pictures = saved_pictures(directory.path, [])
    return fragment([words], [score_table(config.title, result), *pictures[:MOST_PICTURES]])


def score_table(model: str, result: Mapping[str, Any]) -> Table:
    """The model and its baselines, the best first, with the metrics that tables show."""
    split, rows = beside_baselines(model, result)
    metric = metrics_in(dict(result), "")[0]
    names = [metric.name, *(name for name in result.get("figures", []) if name != metric.name)]
    shown = [name for name in names if any(name in figures for figures in rows.values())]
    ranked = sorted(rows.items(), key=lambda row: metric.loss(row[1][metric.name]))
    return Table(
        title=f"Scores on {split} data, the best first",
        columns=["model", *map(title_words, shown)],
        rows=[[label, *(figures.get(name) for name in shown)] for label, figures in ranked],
    )
