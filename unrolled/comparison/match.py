"""Equal sizes: the width of each model at which their parameter counts agree."""

from __future__ import annotations

from typing import Any, NamedTuple

from unrolled.core import discover
from unrolled.core.errors import UnrolledError
from unrolled.core.task import Task
from unrolled.runs.build import count_parameters, on_paper
from unrolled.runs.config import RunConfig

TOLERANCE = 0.05  # by how much the largest model may exceed the smallest
WIDEST = 1 << 14


class Sized(NamedTuple):
    """The settings of a model at some width, and its parameters, input layer and head included."""

    settings: dict[str, Any]
    parameters: int


def match_widths(names: list[str], task: Task, target: int) -> dict[str, Sized]:
    """Each model that has a width (it declares `resize`) near `target` parameters, as equal as possible.

    Widths come in steps, those of attention in wide ones; so the size that all are brought to is the one, among those
    that the model with the widest steps can have, at which the largest and the smallest differ least.
    """
    counts = {name: Counts(name, task) for name in names if discover.model(name).resize is not None}
    near = {name: count.around(target) for name, count in counts.items()}
    aims = {sized.parameters for found in near.values() for sized in found} | {target}
    best: dict[str, Sized] = {}
    for aim in sorted(aims, key=lambda aim: abs(aim - target)):
        found = {name: min(count.around(aim), key=lambda s: abs(s.parameters - aim)) for name, count in counts.items()}
        if not best or _spread(found) < _spread(best):
            best = found
        if _spread(best) <= 1 + TOLERANCE / 2:
            break
    return best


def _spread(found: dict[str, Sized]) -> float:
    counts = [sized.parameters for sized in found.values()]
    return max(counts, default=1) / min(counts, default=1)


class Counts:
    """Parameters of one model as a function of its width; nothing is allocated to count them."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task = name, task
        self.known: dict[int, Sized | None] = {}

    def at(self, width: int) -> Sized | None:
        """None where a model of that width cannot be built (heads that do not divide it, say)."""
        if width not in self.known:
            self.known[width] = self._build(width)
        return self.known[width]

    def _build(self, width: int) -> Sized | None:
        spec = discover.model(self.name)
        assert spec.resize is not None
        settings = spec.resize(spec.config(), width).model_dump()
        config = RunConfig(model=self.name, model_settings=settings)
        try:
            model = on_paper(config, self.task.ports(), self.task.ACCEPTS)
        except (UnrolledError, ValueError):
            return None
        return Sized(settings, count_parameters(model))

    def around(self, target: int) -> list[Sized]:
        """The widths just below and just above a number of parameters."""
        low, high = 1, 2
        while high < WIDEST and self._count(high) < target:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._count(middle) < target else (low, middle)
        below = next((found for width in range(low, 0, -1) if (found := self.at(width))), None)
        above = next((found for width in range(high, 2 * WIDEST) if (found := self.at(width))), None)
        return [found for found in (below, above) if found]

    def _count(self, width: int) -> int:
        """Of the next width that can be built."""
        for wider in range(width, width + 512):
            if found := self.at(wider):
                return found.parameters
        return 1 << 62
