"""What a time budget is enough for, before it is spent: from the time of one forward and one backward pass.

A run needs two evaluations in training, the steps between them, and the metrics on all held-out data at the end. A
budget in which that leaves fewer than LEAST steps is refused at once, with one that would do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import torch

from unrolled.core.batch import Batch
from unrolled.core.errors import NotTrained, UnrolledError
from unrolled.core.forward import forward
from unrolled.core.front import option
from unrolled.core.task import Baseline, Learner, Model, Task
from unrolled.runs import closed_form
from unrolled.runs.build import make_model
from unrolled.runs.config import Budget, RunConfig
from unrolled.training.batches import sampler_of
from unrolled.training.optimiser import OPTIMISERS

LEAST, ENOUGH = 10, 100  # steps that a budget must leave time for, and of one that would do
ROWS = 8  # one row of so many is tried first
TRIED = 5  # batches, of which one of middle size is tried
EVALUATED = 64  # rows of a batch in evaluations, about, which training may have fewer of
LONG = 1.0  # seconds; a batch that would take longer is not tried as a whole
SPARE = 1.2  # of an estimate, so that a budget of it is enough
CLOSING = 1.0  # seconds for examples, pictures and the model card
FITTED_TO, MORE = 2_000, 10  # tokens that a closed form is tried on, and how many times as many
FEWEST = 50_000  # tokens that a closed form is fitted to, if there are so many


class Pace(NamedTuple):
    """Seconds of one training step, of one evaluation in training, and of the metrics at the end."""

    step: float
    look: float
    end: float

    def needs(self, steps: int) -> float:
        """Seconds of a run with so many steps."""
        return 2 * self.look + steps * self.step + self.end + CLOSING


def pace_of(config: RunConfig, task: Task, model: Model) -> Pace:
    """The pace of a model, measured on one batch; its weights and gradients are left as they were."""
    sampler = sampler_of(config, task, model)
    batch = _usual([sampler.batch(step) for step in range(min(TRIED, sampler.steps_per_epoch))]).to(config.device)
    mode = model.training
    model.eval()  # what a model keeps of its batches in training stays as it is
    rows = batch.x.shape[0]
    few = batch.first(max(1, rows // ROWS))
    _seconds(task, model, few)  # with what is done only once
    reading, learning = _seconds(task, model, few)
    times = rows / few.x.shape[0]
    if learning * times < LONG:
        tried = [_seconds(task, model, batch) for _ in range(2)]
        reading, learning, times = min(each[0] for each in tried), min(each[1] for each in tried), 1.0
    moving = 0.0 if isinstance(model, Learner) else _moving(config, model)
    reading, learning = reading * times, learning * times + moving
    if rows < EVALUATED and reading * EVALUATED / rows < LONG and not isinstance(model, Learner):
        reading = min(reading, _reading(model, batch, -(-EVALUATED // rows)))
    model.train(mode)
    size = max(task.size("train"), 1)
    valid, held_out = task.size("valid"), sum(map(task.size, task.held_out()))
    whole, cut = task.outline().positions, sampler.steps_per_epoch * sampler.tokens_per_step
    epoch = sampler.steps_per_epoch * reading * max(1.0, whole / max(cut, 1))  # seconds to read all training data
    positions = max(batch.x.shape[0] * (batch.x.shape[1] if batch.x.ndim > 1 else 1), 1)
    look = min(epoch * valid / size, reading * config.watching.evaluate_tokens / positions)
    return Pace(learning * config.optimiser.accumulate, look, epoch * held_out / size)


def _usual(batches: Sequence[Batch]) -> Batch:
    """Of some batches the one of middle size."""
    return sorted(batches, key=lambda batch: batch.x.numel())[len(batches) // 2]


def _moving(config: RunConfig, model: Model) -> float:
    """Seconds in which an optimiser moves the weights, measured at a rate of zero."""
    optimiser, spent = OPTIMISERS[config.optimiser.optimiser](model, config.optimiser), []
    for _ in range(3):  # what it remembers is made by the first
        for weight in optimiser.weights:
            weight.grad = torch.zeros_like(weight)
        begun = time.perf_counter()
        torch.nn.utils.clip_grad_norm_(optimiser.weights, math.inf)
        optimiser.rate = 0.0
        optimiser.step()
        spent.append(time.perf_counter() - begun)
        optimiser.forget_gradients()
    return min(spent)


def _reading(model: Model, batch: Batch, times: int) -> float:
    """Seconds of reading a batch where it is part of one so many times as large."""
    large = batch.map(lambda tensor: torch.cat([tensor] * times))
    begun = time.perf_counter()
    with torch.no_grad():
        forward(model, large)
    return (time.perf_counter() - begun) / times


def _seconds(task: Task, model: Model, batch: Batch) -> tuple[float, float]:
    """Of reading a batch, and of a step on it."""
    if isinstance(model, Learner):
        begun = time.perf_counter()
        model.learn(batch, 0.0)
        spent = time.perf_counter() - begun
        return spent / 2, spent
    with torch.random.fork_rng(devices=[]):
        begun = time.perf_counter()
        with torch.no_grad():
            forward(model, batch)
        read = time.perf_counter()
        total, count = task.loss(forward(model, batch)[0].float(), batch)
        if total.requires_grad:
            (total / count).backward()
        end = time.perf_counter()
    model.zero_grad(set_to_none=True)
    return read - begun, end - read


def require_time(config: RunConfig, task: Task, model: Model, elapsed: float, known: Pace | None = None) -> None:
    """Refuse a time budget that leaves no time to train, of which so many seconds are used already."""
    if config.budget.time is None or closed_form.applies(config, task.ports()):
        return
    pace = known or pace_of(config, task, model)
    if elapsed + pace.needs(LEAST) > config.budget.time:
        needs = enough(elapsed + pace.needs(ENOUGH))
        raise NotTrained(
            f"{config.budget.time:g} s are not enough to train '{config.model}' on this data: a step takes "
            f"{in_seconds(pace.step)}, the metrics on held-out data {in_seconds(2 * pace.look + pace.end)}; use a "
            f"{option('time')} of about {in_seconds(needs)}, or less held-out data with {option('held_out')}",
            needs,
        )


def closed_form_seconds(
    config: RunConfig, task: Task, baselines: Sequence[Baseline], at_most: float, tokens: int = FITTED_TO
) -> float:
    """Seconds in which baselines are fitted to so many tokens of the training data, of which some are tried for so
    long at most."""
    begun, before, done = time.perf_counter(), task.describe(), 0
    for baseline in baselines:
        if time.perf_counter() - begun > at_most:
            break
        settings = {"model": baseline.model, "model_settings": dict(baseline.settings)}
        chosen = config.model_copy(update={**settings, "budget": Budget(train_tokens=tokens)})
        with suppress(UnrolledError):  # reported by its run
            closed_form.fit(chosen, task, make_model(chosen, task))
        task.recall(before)
        done += 1
    return (time.perf_counter() - begun) * len(baselines) / max(done, 1)


class ClosedForms(NamedTuple):
    """What all baselines take: some seconds, and some more for each token that they are fitted to."""

    fixed: float
    each: float
    tokens: int

    @property
    def seconds(self) -> float:
        return self.fixed + self.each * self.tokens

    def limit(self, seconds: float) -> int | None:
        """To how many tokens they can be fitted in so many seconds, at least FEWEST; None: to all there are.

        >>> ClosedForms(1.0, 1e-5, 50_000).limit(10), ClosedForms(1.0, 1e-5, 5_000_000).limit(10)
        (None, 900000)
        """
        most = max(FEWEST, round((seconds - self.fixed) / max(self.each, 1e-12)))
        return most if most < self.tokens else None


def closed_forms(config: RunConfig, task: Task, baselines: Sequence[Baseline], at_most: float) -> ClosedForms:
    """The pace of the baselines, from fits to a little of the training data and to ten times as much."""
    tokens = min(task.outline().positions or task.size("train"), closed_form.TOKENS)
    few = closed_form_seconds(config, task, baselines, at_most)
    if tokens <= MORE * FITTED_TO:
        return ClosedForms(few, 0.0, tokens)
    few = min(few, closed_form_seconds(config, task, baselines, at_most))  # without what is done only once
    more = closed_form_seconds(config, task, baselines, at_most, MORE * FITTED_TO)
    each = max(more - few, 0.0) / ((MORE - 1) * FITTED_TO)
    return ClosedForms(max(few - each * FITTED_TO, 0.0), each, tokens)


def enough(seconds: float) -> float:
    """A budget that is easily given: with some to spare, in whole tens of seconds or minutes.

    >>> enough(7), enough(31), enough(100)
    (10, 40, 120)
    """
    spare = SPARE * seconds
    return math.ceil(spare / 10) * 10 if spare < 60 else math.ceil(spare / 60) * 60


def in_seconds(seconds: float) -> str:
    """
    >>> in_seconds(0.0234), in_seconds(7.3), in_seconds(300)
    ('0.023 s', '7.3 s', '5 min')
    """
    return f"{seconds / 60:.3g} min" if seconds >= 120 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
