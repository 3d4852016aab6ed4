"""A race of learning rates: the same run begun with several, of which the best on validation data continues.

    after 2 evaluations (a tenth of the run)     the worst of the rates is given up
    after 4 evaluations (a fifth)                the best of the others continues, from where it is

A rate that leads after a tenth may end far behind (docs/decisions/0013), so that only the last one is dropped there.
Until then the rate is flat behind the warm-up, whatever the length of the run, so that the winner is, bit for bit, a
run with that rate alone: `steps` and `lr` reproduce it. Every rate is trained in a directory of its own below
race/, with checkpoints, from which a run that is stopped resumes. That of the winner becomes the run's.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from unrolled.core.errors import Diverged, Interrupted, UsageError
from unrolled.core.front import option
from unrolled.core.task import Model, Task
from unrolled.runs.config import RunConfig
from unrolled.runs.parts import Frozen
from unrolled.runs.storage import atomic
from unrolled.runs.storage.checkpoint import Checkpoints
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import stopped
from unrolled.training import rungs, told
from unrolled.training.loop import Loop
from unrolled.training.progress import Progress

PLACE = "race"
RUNGS = (2, 4)  # evaluations after which rates are compared
LATEST = 0.6  # of the time: what is known by then decides
LOST, MOST = 3, 0.45  # what a race costs, in times of the first rate's first rung, and the share of what is left
WEIGHTS, GROWING = "model.safetensors", ("metrics.jsonl", "checkpoints", "tensorboard")


class _Aside:
    """Shows that something is done, and nothing of what it comes to."""

    def __init__(self, shown: Progress) -> None:
        self.shown = shown

    def begin(self, total: float | None) -> None: ...

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None:
        self.shown.step(0.0, loss, tokens_per_second, None)

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None: ...

    def sample(self, write: Callable[[], str | None]) -> None: ...

    def say(self, text: str) -> None: ...

    def end(self) -> None: ...


class Race:
    """The rates of a run being tried."""

    def __init__(
        self, config: RunConfig, task: Task, model: Model, frozen: Frozen, run: RunDirectory, shown: Progress,
        started: float,
    ) -> None:  # fmt: skip
        self.config, self.task, self.model, self.frozen, self.run = config, task, model, frozen, run
        self.shown = shown
        self.initial: dict[str, Tensor] = {name: value.clone() for name, value in model.state_dict().items()}
        used = [found[2] for rate in config.choice.rates if (found := self._found(rate))]
        self.started = started - sum(used)  # of a race that was stopped

    def winner(self) -> tuple[float, str]:
        """The rate that continues, and notes on it."""
        rates = list(self.config.choice.rates)
        known: dict[float, tuple[float, int]] = {}
        for rung in RUNGS:
            steps = rung * self.config.watching.evaluate_every
            scores: dict[float, float] = {}
            for rate in rates:
                scores[rate] = self._score(rate, steps)
                if self._is_late(len(known) + len(scores) == 1):
                    break
            if len(scores) < len(rates) and known:
                break  # out of time: the rung before decides
            known |= {rate: (score, steps) for rate, score in scores.items()}
            rates = [rate for rate in rates if rate in scores]
            if len(rates) > 1:
                rates.remove(max(reversed(rates), key=scores.__getitem__))
            if len(rates) == 1:
                break
        best = min(rates, key=lambda rate: known[rate][0])
        if len(known) == 1:
            return best, f"learning rate {best:g}: steps are too slow to compare others"
        told = "; ".join(f"{rate:g}: {score:.4g} after {n} steps" for rate, (score, n) in known.items())
        return best, f"learning rate {best:g}, chosen by {self.task.criterion} on validation data ({told})"

    def _is_late(self, first: bool) -> bool:
        """Whether there is no time to continue: all that others will cost is known from the first of them."""
        if self.config.budget.time is None:
            return False
        spent, found = time.monotonic() - self.started, self._found(self.config.choice.rates[0])
        if first and found is not None:
            return LOST * found[2] > MOST * (self.config.budget.time - spent)
        rung = rungs.current()
        return spent > LATEST * self.config.budget.time or (rung is not None and spent > rung)

    def _score(self, rate: float, steps: int) -> float:
        """The best score on validation data of a rate within so many steps."""
        if (found := self._found(rate)) is None or found[0] < steps:
            self._train(rate, steps)
            found = self._found(rate)
        return math.inf if found is None else found[1]

    def _train(self, rate: float, steps: int) -> None:
        own = self.config.model_copy(update={"optimiser": self.config.optimiser.updated({"lr": rate})})
        place = self._place(rate)
        began = Checkpoints(place / "checkpoints").any()
        run = RunDirectory(place) if began else RunDirectory.create(place, overwrite=True)
        self.model.load_state_dict(self.initial)
        loop = Loop(own, self.task, self.model, self.frozen, run, _Aside(self.shown), time.monotonic())
        loop.plan = rungs.UpTo(loop.plan, steps)
        if began:
            loop.resume()
        try:
            loop.train()
        except Diverged:
            atomic.remove_directory(place)
        except Interrupted:  # which names this directory, but it is the run that is resumed
            raise stopped("stopped and saved while learning rates are compared", self.run.path, self.config) from None

    def _found(self, rate: float) -> tuple[int, float, float] | None:
        """The step up to which a rate is trained, its best score and the seconds it took."""
        found = Checkpoints(self._place(rate) / "checkpoints", self.model).latest()
        if found is None:
            return None
        best = found.facts["best"]
        return found.step, math.inf if best is None else float(best), float(found.facts["elapsed"])

    def _place(self, rate: float) -> Path:
        return place_of(self.run, rate)


def place_of(run: RunDirectory, rate: float) -> Path:
    return run.path / PLACE / f"{rate:g}"


def adopt(run: RunDirectory, rate: float) -> None:
    """Make what was trained with a rate the run's own, and forget the others; done again after a kill if need be."""
    if not (run.path / PLACE).is_dir():
        return
    own = place_of(run, rate)
    if (own / WEIGHTS).exists():
        run.write_tensors(WEIGHTS, RunDirectory(own).read_tensors(WEIGHTS))
    for name in GROWING:
        if (own / name).exists():
            atomic.discard(run.path / name)
            os.rename(own / name, run.path / name)
    atomic.remove_directory(run.path / PLACE)


def rates_around(rate: float, factors: Sequence[float]) -> list[float]:
    """Rates to race, the advised one first, in two digits.

    >>> rates_around(0.004, (1, 0.4, 0.16))
    [0.004, 0.0016, 0.00064]
    """
    return [float(f"{rate * factor:.2g}") for factor in factors]


def raced(
    run: RunDirectory, config: RunConfig, task: Task, model: Model, frozen: Frozen, shown: Progress, started: float
) -> tuple[RunConfig, float]:  # fmt: skip
    """The config with the rate that won, where there is a race, and when the time of the run began."""
    if config.choice.rates:
        _require_steps(config)
        task.look_at_training(model)
        race = Race(config, task, model, frozen, run, shown, started)
        rate, words = race.winner()
        changed = {"choice": config.choice.updated({"rates": []}), "optimiser": config.optimiser.updated({"lr": rate})}
        config, started = config.model_copy(update=changed), race.started
        told.add(run, [words], shown)
        run.write_config(config.model_dump(mode="json"))
    adopt(run, config.optimiser.lr)
    return config, started


def _require_steps(config: RunConfig) -> None:
    steps, last = config.budget.steps, RUNGS[-1] * config.watching.evaluate_every
    if steps is not None and 2 * last > steps:
        raise UsageError(
            f"learning rates are compared after {last} steps, and a run of {steps} is too short for that: use at most "
            f"{option('evaluate_every', max(1, steps // (2 * RUNGS[-1])))}, or no {option('rates')}"
        )
