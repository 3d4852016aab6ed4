"""The trials of a search: proposed by optuna (the extra [tune]), kept in a journal, one line for every change.

The sampler is a tree-structured Parzen estimator (Bergstra et al. 2011, "Algorithms for hyper-parameter optimization").
What it draws for a trial is a function of the seed, the number of the trial and the trials before, so that a search
that was stopped continues as if it had not been.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.errors import DataError, needs_extra
from unrolled.core.opening import JSON, read_bytes
from unrolled.runs.storage import atomic
from unrolled.tuning.config import Range

JOURNAL, NAME = "journal.log", "search"
RANDOM = 8  # trials before the sampler learns from earlier ones
FEWEST = 6  # trials from which on an importance is computed
TREES_SEED = 0


class Trial(NamedTuple):
    """A trial as it is known so far."""

    number: int
    settings: Mapping[str, Any]
    scores: Mapping[int, float]
    """The criterion at each rung, on validation data."""
    state: str
    """running, done, stopped or failed"""
    value: float | None
    why: str

    @property
    def folder(self) -> str:
        return f"trial-{self.number:03d}"


class Study:
    """Trials in the journal of a directory, which one process has at a time."""

    def __init__(self, folder: Path, space: Sequence[Range], seed: int, first: Mapping[str, Any]) -> None:
        self.optuna, self.space, self.seed = imported(), space, seed
        place = folder / JOURNAL
        _mend(place)
        backend = self.optuna.storages.journal.JournalFileBackend(str(place))
        with _readable(place):
            self.study = self.optuna.create_study(
                storage=self.optuna.storages.JournalStorage(backend), study_name=NAME, load_if_exists=True
            )
            if not self.study.get_trials(deepcopy=False):
                self.study.enqueue_trial(dict(first))
            self.trials()

    def ask(self) -> Trial:
        """A new trial."""
        number = len(self.study.get_trials(deepcopy=False))
        waiting = self.study.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.WAITING,))
        number -= len(waiting)  # what is enqueued has its number already
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what optuna calls experimental
            self.study.sampler = self.optuna.samplers.TPESampler(
                seed=self.seed * 100_003 + number, n_startup_trials=RANDOM, multivariate=True, constant_liar=True
            )
            asked = self.study.ask({each.key: self._distribution(each) for each in self.space})
        return self._trial(self.study.get_trials(deepcopy=False)[asked.number])

    def trials(self) -> list[Trial]:
        """All that were asked for, by number."""
        waiting = self.optuna.trial.TrialState.WAITING
        return [self._trial(each) for each in self.study.get_trials(deepcopy=False) if each.state != waiting]

    def report(self, number: int, rung: int, score: float) -> None:
        """The score of a trial at a rung."""
        frozen = self.study.get_trials(deepcopy=False)[number]
        self.optuna.trial.Trial(self.study, frozen._trial_id).report(score, rung)

    def tell(self, number: int, value: float | None, why: str = "") -> None:
        """The value of a trial; without one it was stopped at a rung, or failed."""
        states = self.optuna.trial.TrialState
        frozen = self.study.get_trials(deepcopy=False)[number]
        if why:
            self.optuna.trial.Trial(self.study, frozen._trial_id).set_user_attr("why", why)
        if value is not None and math.isfinite(value):
            self.study.tell(number, value)
        else:
            self.study.tell(number, state=states.FAIL if why else states.PRUNED)

    def importance(self) -> tuple[dict[str, float], int, int | None]:
        """How much of the variance of the criterion each setting explains (fANOVA, Hutter et al. 2014), over how many
        trials and at which rung: that at which most are known together; None: at their end."""
        known = {rung: [each for each in self.trials() if rung in each.scores] for rung in (0, 1)}
        done = [each for each in self.trials() if each.value is not None]
        most = max(known, key=lambda rung: len(known[rung]))
        rung: int | None = most
        values = {each.number: each.scores[most] for each in known[most]}
        if len(done) >= len(values):
            rung, values = None, {each.number: float(each.value or 0.0) for each in done}
        if len(values) < FEWEST:
            return {}, len(values), rung
        frozen = self.study.get_trials(deepcopy=False)
        other = self.optuna.create_study()
        for number, value in values.items():
            given = {"params": frozen[number].params, "distributions": frozen[number].distributions}
            other.add_trial(self.optuna.trial.create_trial(value=value, **given))
        with warnings.catch_warnings(), suppress(RuntimeError, ValueError):  # all values equal
            warnings.simplefilter("ignore")
            evaluator = self.optuna.importance.FanovaImportanceEvaluator(seed=TREES_SEED)
            found = self.optuna.importance.get_param_importances(other, evaluator=evaluator)
            return {name: round(float(share), 4) for name, share in found.items()}, len(values), rung
        return {}, len(values), rung

    def _distribution(self, each: Range) -> Any:
        kinds = self.optuna.distributions
        if each.kind == "choice":
            return kinds.CategoricalDistribution(each.values)
        if each.kind == "number":
            return kinds.FloatDistribution(each.low, each.high, log=each.log)
        return kinds.IntDistribution(int(each.low), int(each.high), log=each.log)

    def _trial(self, frozen: Any) -> Trial:
        words = {"COMPLETE": "done", "PRUNED": "stopped", "FAIL": "failed"}
        settings = {each.key: each.value(frozen.params[each.key]) for each in self.space if each.key in frozen.params}
        why = str(frozen.user_attrs.get("why", ""))
        state = words.get(frozen.state.name, "running")
        value = frozen.value if state == "done" else None
        return Trial(frozen.number, settings, dict(frozen.intermediate_values), state, value, why)


def imported() -> Any:
    """optuna, which says nothing by itself."""
    try:
        import optuna
        import optuna.storages.journal
    except ImportError as error:
        raise needs_extra(error, "tune", "`unrolled tune`") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _mend(place: Path) -> None:
    """Leave out what a kill has left: half of a line at the end, and the lock of a process that is gone."""
    for name in (f"{place.name}.lock", f"{place.name}.lock.rename"):
        atomic.discard(place.with_name(name))
    if os.path.lexists(place):
        data = read_bytes(place, JSON, within=place.parent)
        if (whole := data.rfind(b"\n") + 1) < len(data):
            os.truncate(place, whole)


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{place}: not the journal of a search ({type(error).__name__}); search again") from None
