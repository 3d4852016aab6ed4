"""scikit-learn estimators: a sequence in; a class, numbers, or a tag for each word out.

`fit` is `unrolled.train` into a temporary directory. A fitted estimator keeps the files of the run as bytes, so that it
can be pickled and sent to other processes; `save_run` makes a run directory of them again.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_array, check_consistent_length, check_random_state, check_scalar
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from unrolled.core.errors import CannotWrite, Interrupted, OutOfMemory, UnrolledError
from unrolled.runs.run import Run, load
from unrolled.runs.storage.atomic import temporary
from unrolled.runs.storage.packed import pack, unpack
from unrolled.training.api import train
from unrolled.training.progress import Quiet

__all__ = ["EXPECTED_FAILED_CHECKS", "SequenceClassifier", "SequenceRegressor", "SequenceTagger"]

SEEDS = 2**31  # of a run
EVALUATE_EVERY = 50  # steps; weights are compared often, because small data is soon learned by heart

EXPECTED_FAILED_CHECKS = {
    "check_methods_subset_invariance": "single precision: the last digits depend on what else is in a batch",
    "check_methods_sample_order_invariance": "single precision: the last digits depend on what else is in a batch",
}
"""What `sklearn.utils.estimator_checks.check_estimator` may not pass, and why."""

PARAMETERS = """
Parameters
----------
model : str, default="gru"
    Name of a model; `unrolled models` lists them.
steps : int or None, default=300
    Optimiser steps. Models that are fitted in closed form take none.
time : float, str or None, default=None
    Time budget in place of steps: seconds, or a text such as "30s" or "5m"; give `steps=None` with it. The result then
    depends on the speed of the machine.
validation_fraction : float, default=0.1
    Share of the given data that is held out from training, to select the best weights and to calibrate probabilities.
    Equal inputs are all held out, or none of them.
settings : mapping or None, default=None
    Other settings of `unrolled.train` by name, such as {"d_state": 32, "lr": 0.001}.
own_file : str, pathlib.Path or None, default=None
    Python file that defines `model`, if that is your own.
random_state : int, RandomState instance or None, default=None
    Seed of the initial weights, the order of examples, dropout and the choice of validation data. With an int every
    call of `fit` gives the same model.

Attributes
----------
result_ : dict
    Metrics on the validation data, number of parameters, steps and seconds (`Run.result`).
"""
TABLE = """n_features_in_ : int
    Number of time steps T; only if X was an array or a data frame [n, T].
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the columns; only if X was a data frame whose column names are all strings.

Notes
-----
X is one of: an array or a data frame [n, T]; an array [n, T, D], with D channels; a list of arrays [T] or [T, D] of
different lengths; a list of texts; a list of word lists. [n, T] needs the same T in `predict`, the others do not.
Weights of examples (`sample_weight`) are not supported.
"""

Estimator = TypeVar("Estimator", bound=type[BaseEstimator])


def _documented(*more: str) -> Callable[[Estimator], Estimator]:
    """Add what all estimators have to the docstring of one."""

    def decorate(cls: Estimator) -> Estimator:
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), *more])
        return cls

    return decorate


class Kept:
    """A trained model as the files of its run, opened when it is first needed, in whichever process that is."""

    def __init__(self, files: Mapping[str, bytes], own_file: str | Path | None) -> None:
        self.files, self.own_file = dict(files), own_file

    @cached_property
    def run(self) -> Run:
        with _directory() as place:
            unpack(self.files, place)
            return load(place, own_file=self.own_file)

    def __getstate__(self) -> dict[str, Any]:
        return {"files": self.files, "own_file": self.own_file}


@contextmanager
def _directory() -> Iterator[Path]:
    """A place for a run that is gone after the block."""
    with tempfile.TemporaryDirectory(prefix="unrolled-") as place, temporary():
        yield Path(place) / "run"


@contextmanager
def _raised_as_expected() -> Iterator[None]:
    """Errors of the types that users of scikit-learn catch; ours are their cause."""
    try:
        yield
    except Interrupted as error:
        raise KeyboardInterrupt from error
    except OutOfMemory as error:
        raise MemoryError(str(error)) from error
    except CannotWrite as error:
        raise OSError(str(error)) from error
    except UnrolledError as error:
        raise ValueError(str(error)) from error


class SequenceEstimator(BaseEstimator):
    """What the estimators share: their parameters, what X may be, training, and a fitted model as bytes."""

    def __init__(
        self,
        model: str = "gru",
        *,
        steps: int | None = 300,
        time: float | str | None = None,
        validation_fraction: float = 0.1,
        settings: Mapping[str, Any] | None = None,
        own_file: str | Path | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.steps = steps
        self.time = time
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.own_file = own_file
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        return tags

    def save_run(self, path: str | Path) -> Run:
        """Write the run directory of the fitted model, for the command line, reports and `unrolled.load`.

        Parameters
        ----------
        path : str or pathlib.Path
            A directory that does not exist yet.

        Returns
        -------
        run : unrolled.Run
            The run in that directory.
        """
        check_is_fitted(self)
        with _raised_as_expected():
            unpack(self._kept.files, Path(path))
            return load(path, own_file=self.own_file)

    def _checked(self, X: Any, y: Any, **of_y: bool) -> tuple[Any, Any]:
        """X and y of `fit`: [n, T] as all estimators of scikit-learn check it, or n sequences."""
        self._is_table = not _are_sequences(X)
        if self._is_table:
            return validate_data(self, X, y, ensure_min_samples=2, **of_y)
        y = validate_data(self, y=y, **of_y)
        if "n_features_in_" in vars(self):
            del self.n_features_in_  # of a table that was fitted before
        return _paired(X, y)

    def _train(self, task: str, X: Any, y: Any) -> None:
        share = check_scalar(
            self.validation_fraction, "validation_fraction", Real,
            min_val=0, max_val=1, include_boundaries="neither",
        )  # fmt: skip
        random = check_random_state(self.random_state)
        seed = int(self.random_state if isinstance(self.random_state, Integral) else random.randint(SEEDS))
        usual = {"data.seed": seed, "evaluate_every": EVALUATE_EVERY}
        with _raised_as_expected(), _directory() as place:
            run = train(
                (X, y), task, self.model, place, usual | dict(self.settings or {}),
                own_file=self.own_file, baselines={}, steps=self.steps, time=self.time, seed=seed,
                split=f"{100 * (1 - share):.10g}/{100 * share:.10g}", progress=Quiet(),
            )  # fmt: skip
            self.result_ = run.result
            self._kept = Kept(pack(run.directory), self.own_file)

    def _predicted(self, X: Any, **request: Any) -> list[dict[str, Any]]:
        check_is_fitted(self)
        inputs = list(validate_data(self, X, reset=False)) if self._is_table else _sequences(X)
        with _raised_as_expected():
            return self._kept.run.do("predict", inputs, **request)


def _are_sequences(X: Any) -> bool:
    """Whether X is [n, T, D], or a list of texts, of word lists, or of arrays; otherwise it is a table [n, T].

    >>> _are_sequences(["a b", "c"]), _are_sequences([[1, 2], [3]]), _are_sequences([[1, 2], [3, 4]])
    (True, True, False)
    """
    if not isinstance(X, list | tuple):
        axes = np.asarray(X).ndim
        return axes == 3 or (axes == 1 and _are_sequences(list(X)))
    if not X or not all(isinstance(each, list | tuple) for each in X):
        return bool(X) and (isinstance(X[0], str) or np.asarray(X[0]).ndim > 0)
    return len({len(each) for each in X}) > 1 or any(isinstance(value, str) or np.ndim(value) for value in X[0])


def _sequences(X: Any) -> list[Any]:
    """One sequence for each example."""
    if isinstance(X, list | tuple) or np.asarray(X).ndim < 2:
        return list(X)
    return list(check_array(X, allow_nd=True, input_name="X"))


def _paired(X: Any, y: Any) -> tuple[list[Any], Any]:
    sequences = _sequences(X)
    check_consistent_length(sequences, y)
    return sequences, y


@_documented(PARAMETERS.strip("\n"), """classes_ : ndarray of shape (n_classes,)
    The classes of `y`, sorted.""", TABLE)  # fmt: skip
class SequenceClassifier(ClassifierMixin, SequenceEstimator):
    """Predict the class of a sequence, and the probability of each class."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on sequences X with a class each, y [n]."""
        X, y = self._checked(X, y)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        self.classes_ = np.unique(y)
        names = [name.strip() if isinstance(name, str) else name for name in self.classes_.tolist()]
        self._number_of = {name: number for number, name in enumerate(names)}
        if len(self._number_of) < len(names):
            raise ValueError("two classes differ by white space alone; rename one of them")
        self._train("classify", X, y.tolist())
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each sequence [n]."""
        found = self._predicted(X)
        return self.classes_[[self._number_of[each["prediction"]] for each in found]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class [n, n_classes], in the order of `classes_`, calibrated (Guo et al. 2017)."""
        check_is_fitted(self)
        found = self._predicted(X, n=len(self.classes_))
        p = np.zeros((len(found), len(self.classes_)))  # a class that only validation data has stays 0
        for row, each in zip(p, found):
            for one in each["candidates"]:
                row[self._number_of[one["class"]]] = one["p"]
        return p


@_documented(PARAMETERS.strip("\n"), TABLE)
class SequenceRegressor(RegressorMixin, SequenceEstimator):
    """Predict one number or several for a sequence."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Train on sequences X with a number each, y [n], or several, y [n, k]."""
        X, y = self._checked(X, y, y_numeric=True, multi_output=True)
        self._shape = y.shape[1:]
        self._train("regress", X, y)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The number of each sequence [n], or its numbers [n, k], as y was in `fit`."""
        found = np.array([each["prediction"] for each in self._predicted(X)], np.float64)
        return found.reshape(len(found), *self._shape)


@_documented(PARAMETERS)
class SequenceTagger(SequenceEstimator):
    """Predict a tag for each word of a sentence: X is a list of word lists, y a list of as many tag lists."""

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> Self:
        """Train on sentences X with a tag for each word, y."""
        if y is None:
            raise ValueError("SequenceTagger requires y to be passed, but the target y is None.")
        self._is_table = False
        X, y = _paired(X, y)
        self._train("tag", X, list(y))
        return self

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of each sentence."""
        return [each["prediction"] for each in self._predicted(X)]

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> float:
        """The share of words whose tag is predicted rightly."""
        right = [a == b for found, true in zip(self.predict(X), y) for a, b in zip(found, true, strict=True)]
        return sum(right) / len(right)
