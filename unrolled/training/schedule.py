"""Learning rate over time, and the plan of how many steps there will be.

A time budget does not know its number of steps beforehand. Each schedule has a first part whose rates do not depend on
that number (the warm-up, the flat part of a trapezoid); when it ends, the number is settled from the speed measured so
far and never changes again. So `steps = N` repeats a time-budgeted run bit for bit.
"""

from __future__ import annotations

import math

from unrolled.runs.config import Budget, Optimiser

DECAY = 0.5  # the share of a trapezoid over which the rate falls
SAFETY = 0.97  # of the time that is left, the share planned with
FEWEST = 20  # steps before the speed is believed
DEFAULT_TIME = 300.0


def factor(settings: Optimiser, step: int, horizon: int | None) -> float:
    """The rate at a step as a share of its peak; a horizon of None is one not yet settled.

    >>> [round(factor(Optimiser(warmup=2), s, 8), 2) for s in range(8)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    rise = min(1.0, (step + 1) / settings.warmup) if settings.warmup else 1.0
    if horizon is None or settings.schedule in ("constant", "plateau"):
        return rise
    if settings.schedule == "cosine":
        start = max(settings.warmup, FEWEST)
        progress = (step - start) / max(1, horizon - start)
        return rise * 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, progress))))
    falling = max(1.0, DECAY * horizon)
    return rise * min(1.0, max(0.0, (horizon - step) / falling))


def rate_of(settings: Optimiser, step: int, horizon: int | None, plateau: float, scale: float) -> float:
    """The learning rate of a step, with what the plateau schedule and roll-backs have left of it."""
    return settings.lr * factor(settings, step, horizon) * plateau * scale


def settled_until(settings: Optimiser, horizon: float) -> float:
    """Up to which step the rates are the same for every horizon from this one on."""
    if settings.schedule == "cosine":
        return max(settings.warmup, FEWEST)
    return (1 - DECAY) * horizon if settings.schedule == "trapezoid" else math.inf


def shortest(step: int) -> int:
    """The shortest horizon of a trapezoid that is still flat at the steps before this one."""
    return math.ceil(step / (1 - DECAY))


class Plan:
    """How many steps there will be (`steps`), and for how many the schedule is laid out (`horizon`)."""

    def __init__(self, budget: Budget, optimiser: Optimiser, steps_per_epoch: int, tokens_per_step: int) -> None:
        self.optimiser = optimiser
        self.steps: int | None = budget.steps
        if budget.epochs is not None:
            self.steps = max(1, math.ceil(budget.epochs * steps_per_epoch / optimiser.accumulate))
        elif budget.train_tokens is not None:
            self.steps = max(1, math.ceil(budget.train_tokens / (tokens_per_step * optimiser.accumulate)))
        self.time = None if self.steps else budget.time or DEFAULT_TIME
        self.horizon = budget.horizon or self.steps

    def expected(self, step: int, elapsed: float, left: float) -> float | None:
        """Steps in all, as far as they can be told from the speed so far."""
        if self.steps is not None:
            return self.steps
        return step + SAFETY * left * step / elapsed if step >= FEWEST and elapsed > 0 else None

    def settle(self, step: int, elapsed: float, left: float) -> None:
        """Fix the horizon of a time budget as soon as the coming rate depends on it."""
        if self.horizon is not None or self.time is None:
            return
        total = self.expected(step, elapsed, left)
        if total is not None and step >= settled_until(self.optimiser, total):
            # the estimate may have fallen since the last step: the steps taken must fit the horizon all the same
            least = shortest(step) if self.optimiser.schedule == "trapezoid" else step + 1
            self.horizon = self.steps = max(least, int(total))

    def close(self, step: int) -> None:
        """Name a horizon for time that ran out before one was settled: any for which all rates so far were the same."""
        if self.horizon is None:
            self.horizon = shortest(step) + 1

    def done(self, step: int, left: float) -> bool:
        return (self.steps is not None and step >= self.steps) or (self.time is not None and left <= 0)

    def state(self) -> dict[str, int | None]:
        return {"steps": self.steps, "horizon": self.horizon}

    def restore(self, state: dict[str, int | None]) -> None:
        self.steps, self.horizon = state["steps"], state["horizon"]
