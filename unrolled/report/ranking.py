"""Where metrics disagree about which model is best, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unrolled.core.errors import listed
from unrolled.core.metric import Metric
from unrolled.pictures.letters import title_words
from unrolled.report.words import score_words

Figures = Mapping[str, float]


def disagreements(figures: Mapping[str, Figures], metrics: Sequence[Metric]) -> list[str]:
    """A sentence for each model that another metric than the score, which is the first, puts first.

    >>> nats, chrf = Metric("nats"), Metric("chrf", larger=True)
    >>> disagreements({"gru": {"nats": 2.0, "chrf": 17.9}, "dictionary": {"nats": 4.0, "chrf": 41.2}}, [chrf, nats])
    ['gru has the lowest nats (2.0000 against 4.0000), but dictionary has the higher chrF (41.2000 against 17.9000).']
    """
    known = {
        label: each for label, each in figures.items() if all(each.get(metric.name) is not None for metric in metrics)
    }
    if len(known) < 2:
        return []
    score = metrics[0]
    best = _first(known, score)
    otherwise: dict[str, list[Metric]] = {}
    for metric in metrics[1:]:
        top = _first(known, metric)
        if _is_ahead(metric, known[top], known[best]) and _is_ahead(score, known[best], known[top]):
            otherwise.setdefault(top, []).append(metric)
    return [
        f"{top} has {listed(_most(metric, known[top], known[best]) for metric in led)}, but {best} has the "
        f"{'higher' if score.larger else 'lower'} {title_words(score.name)} {_both(score, known[best], known[top])}."
        for top, led in otherwise.items()
    ]


def _first(figures: Mapping[str, Figures], metric: Metric) -> str:
    return min(figures, key=lambda label: metric.loss(figures[label][metric.name]))


def _is_ahead(metric: Metric, one: Figures, other: Figures) -> bool:
    return metric.loss(one[metric.name]) < metric.loss(other[metric.name])


def _most(metric: Metric, one: Figures, other: Figures) -> str:
    return f"the {'highest' if metric.larger else 'lowest'} {title_words(metric.name)} {_both(metric, one, other)}"


def _both(metric: Metric, one: Figures, other: Figures) -> str:
    return f"({score_words(one[metric.name])} against {score_words(other[metric.name])})"
