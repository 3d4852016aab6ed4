"""Settings that nobody gave, chosen from the data, the speed of this machine and the time there is.

    data            lengths of the examples (`Task.outline`), how many batches an epoch has
    model           its advice (`ModelSpec.recipe`) is where the choice starts; `resize` makes it smaller
    speed           seconds of a step, measured before the first one (estimate.py)
    time            the budget; without a time budget nothing is chosen, so that a number of steps says it all

What is given by hand or in a recipe file always stays as it is, and the learning rate is left to a race (race.py). The
settings are saved in the config of the run as if they had been given, so that a run is resumed and reproduced without
looking at a clock. No choice depends on the name of a task, a model or a data set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from unrolled.core import discover
from unrolled.core.errors import UnrolledError
from unrolled.core.spec import reading
from unrolled.core.task import Task
from unrolled.runs import closed_form
from unrolled.runs.build import count_parameters, make_model, spec_of
from unrolled.runs.config import Optimiser, RunConfig
from unrolled.training import estimate
from unrolled.training.batches import sampler_of
from unrolled.training.estimate import CLOSING, Pace
from unrolled.training.processes import multiple
from unrolled.training.race import rates_around
from unrolled.training.rungs import current as rung

READ = 300  # positions that a body reads of a long input, about, when neighbours are joined
WIDEST_STRIDE = 32
CUT = 2048  # positions of an input, before they are joined, beyond which crops are drawn
LONG = 2.0  # examples are cut where they have so many times the positions of a chunk
NARROW = 64  # width of token vectors where many tokens are seen seldom
EPOCH = 8  # batches of an epoch, at least, where data is small
SMALLEST = 4  # rows
WANTED, FEW = 400, 100  # steps for which batches, and then the model, are made smaller
WIDTHS, FEWER = (128, 96, 64, 48, 32), 0.8  # of a narrower model, and its share of the parameters at most
GAIN = 0.85  # what a smaller batch or model must save, to be worth it: of the time of a step
LOOKS, FEW_LOOKS = 20, 8  # evaluations in training, with a race and without
RATES, RACED = (1.0, 2.5, 0.4), 600  # times the advised rate; raced in runs of so many steps
BEFORE = 0.75  # of the time, where rates must be chosen before a rung: for so many times more steps, with more looks
HASTE = 2.0  # times the default rate in shorter runs, which a race would cost more than it gains
LOOKING, FINAL = 0.10, 0.05  # shares of the time for them, and for the metrics at the end
REPEATED = ((50, 0.0), (150, 0.1), (500, 0.2))  # passes over the data, up to so many, and the dropout
RARE = 1000  # different tokens from which on most are seen seldom
LABELS = ((20_000, 0.5, 0.2), (200_000, 0.3, 0.0))  # inputs with one target each: dropout with rare tokens, without
MOST_DROPOUT = 0.3
SLOWER = 1.3  # times as long as measured does a step take: its batch is made, its loss is shown


class Chosen(NamedTuple):
    """A config with what was chosen, that in words, and the pace of its model."""

    config: RunConfig
    words: list[str] = []
    pace: Pace | None = None


def applies(config: RunConfig, task: Task) -> bool:
    """Whether settings are chosen: under a time budget, for a model that is trained."""
    timed = config.budget.steps is None and config.budget.epochs is None and config.budget.train_tokens is None
    return timed and not config.choice.plain and not closed_form.applies(config, task.ports())


def chosen(config: RunConfig, task: Task, given: Collection[str], seconds: float) -> Chosen:
    """What is best for a run that has so many seconds; `given` are the full keys of settings that stay."""
    if not applies(config, task):
        return Chosen(config)
    choice = _Choice(config, task, given, seconds)
    with suppress(RuntimeError, MemoryError):  # of a model that cannot be built or run: told by whoever does
        choice.inputs()
        choice.sizes()
        choice.regularisation()
        choice.evaluation()
        choice.rates()
        return Chosen(choice.config, choice.words(), choice.pace)
    return Chosen(config)


def looking(config: RunConfig, task: Task, given: Collection[str]) -> RunConfig:
    """With an evaluation after each epoch, where the task wants it so and no number of steps was given."""
    if task.LOOKS != "epoch" or "watching.evaluate_every" in given:
        return config
    steps = sampler_of(config, task, make_model(config, task)).steps_per_epoch
    each = max(1, round(steps / config.optimiser.accumulate))
    return config.model_copy(update={"watching": config.watching.updated({"evaluate_every": each})})


def least(config: RunConfig, task: Task, given: Collection[str]) -> RunConfig:
    """The same with steps as small as they would be made where time is short, for an estimate of what is possible."""
    if not applies(config, task):
        return config
    choice = _Choice(config, task, given, 0.0)
    choice.inputs()
    if not {"batching.batch_size", "batching.batch_tokens"} & set(given):
        choice.set("batching", "batch_size", min(SMALLEST, config.batching.batch_size))
    return choice.config


class _Choice:
    """Settings being chosen."""

    def __init__(self, config: RunConfig, task: Task, given: Collection[str], seconds: float) -> None:
        self.config, self.task, self.given, self.seconds = config, task, given, seconds
        self.outline = task.outline()
        self.before = config
        self.pace: Pace | None = None
        until, time = rung(), config.budget.time
        self.sooner = 1.0 if until is None or time is None else max(1.0, BEFORE * time / until)

    # ---- changing

    def set(self, group: str, name: str, value: Any) -> bool:
        """Choose a setting, unless it was given or is so already."""
        own = getattr(self.config, group)
        old = own.get(name) if isinstance(own, dict) else getattr(own, name)
        if f"{group}.{name}" in self.given or old == value:
            return False
        changed = {**own, name: value} if isinstance(own, dict) else own.updated({name: value})
        self.config = self.config.model_copy(update={group: changed})
        return True

    def measure(self, config: RunConfig | None = None) -> Pace:
        config = config or self.config
        return estimate.pace_of(config, self.task, make_model(config, self.task))

    def steps(self, pace: Pace) -> float:
        """Steps that there is time for."""
        left = self.seconds * (1 - LOOKING) - min(pace.end, FINAL * self.seconds) - CLOSING
        return max(left, 0.0) / max(SLOWER * pace.step, 1e-6)

    # ---- what is chosen

    def inputs(self) -> None:
        """How much of a long input a step reads."""
        outline, batching = self.outline, self.config.batching
        spec, usual = spec_of(self.config), self.outline.usual
        stride = self.config.ends.input_stride
        embedded = reading(spec.reads, self.task.ports().offers) == "embedded" and self.config.ends.input == "embedding"
        if outline.joined and embedded and not self.task.ports().letters:
            while usual / stride > READ and stride < WIDEST_STRIDE and "ends.input_stride" not in self.given:
                stride *= 2
            self.set("ends", "input_stride", stride)
        table, width = self.task.ports().n_tokens, self.config.ends.d_embedding
        if embedded and width > NARROW and table * width > outline.positions > 0 and not self.config.ends.tied:
            self.set("ends", "d_embedding", NARROW)  # more numbers than there are tokens to learn them from
        if outline.cut and self.task.ports().answers == "next":
            if outline.mean > LONG * batching.length or outline.longest > LONG**3 * batching.length:
                self.set("batching", "chunk", batching.length)
        elif outline.cut and outline.longest > CUT:
            self.set("batching", "chunk", CUT)

    def sizes(self) -> None:
        """A batch with which small data has several steps an epoch; and where steps are too few, smaller steps."""
        sampler = sampler_of(self.config, self.task, make_model(self.config, self.task))
        while sampler.steps_per_epoch < EPOCH and self._smaller_batch():
            sampler = sampler_of(self.config, self.task, make_model(self.config, self.task))
        self.pace = self.measure()
        self._shrink(WANTED, self._halved)
        self._shrink(FEW, self._narrower)

    def _smaller_batch(self) -> bool:
        size, smaller = self.config.batching.batch_size, self._half()
        return size > smaller and self.set("batching", "batch_size", smaller)

    def _half(self) -> int:
        """Half of the rows, a number that all processes can share."""
        return multiple(max(SMALLEST, self.config.batching.batch_size // 2), self.config.processes)

    def _halved(self, config: RunConfig) -> RunConfig | None:
        half = self._half()
        if config.batching.batch_size <= half or {"batching.batch_size", "batching.batch_tokens"} & set(self.given):
            return None
        smaller = config.batching.updated({"batch_size": half})
        return config.model_copy(update={"batching": smaller})

    def _narrower(self, config: RunConfig) -> RunConfig | None:
        found = (_resized(config, self.task, width, self.given) for width in WIDTHS)
        return next((smaller for smaller in found if smaller is not None), None)

    def _shrink(self, wanted: int, smaller: Callable[[RunConfig], RunConfig | None]) -> None:
        """Make steps smaller until there are so many, as long as that makes them faster."""
        assert self.pace is not None
        while self.steps(self.pace) < wanted and (config := smaller(self.config)) is not None:
            pace = self.measure(config)
            if pace.step > GAIN * self.pace.step:
                return
            self.config, self.pace = config, pace

    def regularisation(self) -> None:
        """Dropout by how often the data is repeated and how many labels there are; a warm-up of a tenth at most."""
        self.repeats = self._expected() / max(self._sampler().steps_per_epoch, 1)
        dropout = next((p for most, p in REPEATED if self.repeats <= most), MOST_DROPOUT)
        if self.outline.joined:
            rare, n = self.task.ports().n_tokens > RARE, self.outline.n_examples
            dropout = max(dropout, next((each[1 if rare else 2] for each in LABELS if n <= each[0]), 0.0))
        self.set("ends", "dropout", max(dropout, self.config.ends.dropout))
        self.set("optimiser", "warmup", min(self.config.optimiser.warmup, max(1, round(self._expected() / 10))))

    def evaluation(self) -> None:
        """Evaluations that take no more than their share of the time."""
        assert self.pace is not None
        looks = self.sooner * LOOKS if self._is_raced() else FEW_LOOKS
        each = LOOKING * self.seconds / looks
        if self.pace.look > each:
            tokens = self.config.watching.evaluate_tokens
            self.set("watching", "evaluate_tokens", max(1000, round(tokens * each / self.pace.look, -3)))
            self.pace = self.pace._replace(look=each)
        steps = _round(self._expected() / looks)
        if self.task.LOOKS == "epoch":  # more often, where that takes no more than its share of the time
            most = LOOKING * self.seconds / max(self.pace.look, 1e-6)
            steps = min(steps, max(self._sampler().steps_per_epoch, _round(self._expected() / most)))
        self.set("watching", "evaluate_every", steps)

    def rates(self) -> None:
        """A race, where a run is long enough for it; otherwise a larger one than models have by default."""
        own, spec = self.config.optimiser, discover.model(self.config.model)
        if {"optimiser.lr", "choice.rates"} & set(self.given) or own.schedule not in ("trapezoid", "constant"):
            return
        if self._is_raced():
            self.set("choice", "rates", rates_around(own.lr, RATES))
        elif own.lr == Optimiser().lr and "lr" not in spec.recipe:
            self.set("optimiser", "lr", HASTE * own.lr)

    def _is_raced(self) -> bool:
        return self._expected() >= self.sooner * RACED

    def _sampler(self) -> Any:
        return sampler_of(self.config, self.task, make_model(self.config, self.task))

    def _expected(self) -> float:
        assert self.pace is not None
        return self.steps(self.pace)

    # ---- in words

    def words(self) -> list[str]:
        """Two short lines: how long, and what differs from the defaults."""
        now, before, looking = self.config, self.before, self.config.watching
        found = [f"{words} {new}" for words, new, old in _told(now, before) if new != old]
        if now.model_settings != before.model_settings:
            wider = now.model_copy(update={"model_settings": before.model_settings})
            counts = [count_parameters(make_model(each, self.task)) for each in (now, wider)]
            found.append(f"{counts[0]:,} parameters instead of {counts[1]:,}")
        passes = f"{self.repeats:.1f}" if self.repeats < 10 else f"{self.repeats:.0f}"
        steps = f"about {_round(self._expected()):,} steps, {passes} passes over the training data"
        return [", ".join([steps, *found, f"evaluation every {looking.evaluate_every} steps"])]


def _told(now: RunConfig, before: RunConfig) -> Iterator[tuple[str, Any, Any]]:
    """What is reported of a choice, with the values now and before."""
    for words, group, name in (
        ("stride", "ends", "input_stride"), ("width of token vectors", "ends", "d_embedding"),
        ("chunks of", "batching", "chunk"), ("batch size", "batching", "batch_size"),
        ("dropout", "ends", "dropout"), ("learning rate", "optimiser", "lr"),
    ):  # fmt: skip
        yield words, getattr(getattr(now, group), name), getattr(getattr(before, group), name)


def _resized(config: RunConfig, task: Task, width: int, given: Collection[str]) -> RunConfig | None:
    """The same model at this width, if that is smaller; none where a width was given."""
    spec = discover.model(config.model)
    if spec.resize is None:
        return None
    own = spec.config.parse(config.model_settings)
    settings = spec.resize(own, width).model_dump()
    changed = {key for key, value in settings.items() if value != config.model_settings.get(key)}
    if any(f"model_settings.{key}" in given for key in changed):
        return None
    smaller = config.model_copy(update={"model_settings": settings})
    try:
        fewer = count_parameters(make_model(smaller, task)) < FEWER * count_parameters(make_model(config, task))
    except (UnrolledError, ValueError):
        return None
    return smaller if fewer else None


def _round(steps: float) -> int:
    """
    >>> _round(3.4), _round(47), _round(1234)
    (5, 45, 1200)
    """
    unit = 5 if steps < 100 else 10 if steps < 1000 else 100
    return max(5, round(steps / unit) * unit)
