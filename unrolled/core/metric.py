"""What a metric is: a name, which way is better, and how it follows from statistics of units. Imports no torch."""

from __future__ import annotations

from typing import Any, NamedTuple


class Metric(NamedTuple):
    """A metric that a task reports: a formula of statistics that are added over units, so that units can be resampled.

    >>> Metric("chrf", larger=True, formula="chrf").loss(40.0), Metric("nats").loss(2.5)
    (-40.0, 2.5)
    """

    name: str
    larger: bool = False  # whether larger values are better
    formula: str = "ratio"  # of objectives/corpus.py

    def loss(self, value: float) -> float:
        """The value such that smaller is better: what everything is sorted by."""
        return -value if self.larger else value

    def to_json(self) -> dict[str, Any]:
        return self._asdict()

    @property
    def better(self) -> str:
        return "larger is better" if self.larger else "smaller is better"


def metrics_in(facts: dict[str, Any], default: str) -> list[Metric]:
    """The metrics that a result or a table was written with, the score first; an old one has its score alone."""
    told = facts.get("metrics")
    if not isinstance(told, list) or not told:
        return [Metric(str(facts.get("score") or default))]
    return [Metric(str(each["name"]), bool(each["larger"]), str(each["formula"])) for each in told]
