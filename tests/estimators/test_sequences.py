"""Estimators of scikit-learn: what X and y may be, what a fitted one is, and what scikit-learn does with them."""

from __future__ import annotations

import io
import pickle
import tempfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import unrolled
from tests.thorough import every
from unrolled import errors
from unrolled.sklearn import SequenceClassifier, SequenceRegressor, SequenceTagger

QUICK: dict[str, Any] = {
    "steps": 20, "random_state": 0, "settings": {"d_state": 8, "d_embedding": 8, "warmup": 2, "lr": 0.05, "threads": 1},
}  # fmt: skip
RANDOM = np.random.default_rng(0)
N = 48
EVEN = np.arange(N) % 2 == 0
TABLE = RANDOM.normal(size=(N, 6)) + 2 * EVEN[:, None]  # [n, T]
CHANNELS = np.stack([TABLE, -TABLE, TABLE**2], 2)  # [n, T, D]
RAGGED = [row[: 3 + i % 4] for i, row in enumerate(TABLE)]
TEXTS = [f"{'a good film' if even else 'dull and bad'} {i}" for i, even in enumerate(EVEN)]
WORDS = [text.split()[i % 3 :] for i, text in enumerate(TEXTS)]
TAGS = [["number" if word.isdigit() else "word" for word in words] for words in WORDS]
NAMES = np.where(EVEN, "even", "odd")


@pytest.fixture(scope="module")
def fitted() -> SequenceClassifier:
    return SequenceClassifier(**QUICK).fit(TABLE, NAMES)


# ---- what X and y may be


@pytest.mark.parametrize(("X", "in_table"), every(3, [
    (TABLE, True), (TABLE.tolist(), True), (pandas.DataFrame(TABLE), True), (polars.DataFrame(TABLE), True),
    (CHANNELS, False), (CHANNELS.tolist(), False), (RAGGED, False), ([row.tolist() for row in RAGGED], False),
    (list(TABLE), False), (list(CHANNELS), False), (TEXTS, False), (np.array(TEXTS), False),
    (pandas.Series(TEXTS), False), (tuple(TEXTS), False), (WORDS, False), ([words[-2:] for words in WORDS], False),
]), ids=lambda each: type(each).__name__)  # fmt: skip
def test_everything_that_holds_sequences_is_read(X: Any, in_table: bool) -> None:
    found = SequenceClassifier(**QUICK).fit(X, NAMES)
    assert ("n_features_in_" in vars(found)) is in_table
    p = found.predict_proba(X)
    assert p.shape == (N, 2)
    np.testing.assert_allclose(p.sum(1), 1)
    assert (found.predict(X) == found.classes_[p.argmax(1)]).all()


def test_a_table_keeps_its_width_and_other_sequences_have_any_length(fitted: SequenceClassifier) -> None:
    with pytest.raises(ValueError, match="X has 5 features, but SequenceClassifier is expecting 6 features"):
        fitted.predict(TABLE[:, :5])
    of_channels = SequenceRegressor(**QUICK).fit(CHANNELS, TABLE[:, 0])
    assert of_channels.predict(CHANNELS[:3, :4]).shape == (3,)
    ragged = SequenceRegressor(**QUICK).fit(RAGGED, TABLE[:, 0])
    assert ragged.predict(RAGGED[3:4]).shape == (1,)
    np.testing.assert_allclose(ragged.predict([[1, 2, 3], [4, 5, 6]]), ragged.predict(np.array([[1, 2, 3], [4, 5, 6]])))


def test_names_of_columns_are_kept_and_forgotten_with_the_next_fit() -> None:
    estimator = SequenceClassifier(**QUICK).fit(pandas.DataFrame(TABLE, columns=list("abcdef")), NAMES)
    assert (estimator.n_features_in_, list(estimator.feature_names_in_)) == (6, list("abcdef"))
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(pandas.DataFrame(TABLE, columns=list("abcdeg")))
    estimator.fit(TEXTS, NAMES)
    assert not {"n_features_in_", "feature_names_in_"} & set(vars(estimator))


@pytest.mark.parametrize("classes", [
    ["b", "a"], [3, 10], [True, False], [-1.0, 1.0], np.array(["x ", "y"]), np.array([7, 2], np.uint8),
], ids=str)  # fmt: skip
def test_classes_are_as_they_were_given(classes: Any) -> None:
    y = np.array(classes)[EVEN.astype(int)]
    found = SequenceClassifier(**QUICK).fit(TABLE, y)
    assert found.classes_.tolist() == sorted(np.array(classes).tolist())
    assert found.predict(TABLE).dtype == y.dtype
    assert found.score(TABLE, y) > 0.8


def test_the_order_of_probabilities_is_that_of_the_classes() -> None:
    """As names, 10 stands before 3."""
    y = np.array([3, 10, 200])[np.arange(N) % 3]
    X = np.eye(3)[np.arange(N) % 3] * 5 + RANDOM.normal(0, 0.1, (N, 3))
    found = SequenceClassifier(**QUICK | {"steps": 60}).fit(X, y)
    assert found.classes_.tolist() == [3, 10, 200]
    assert found.score(X, y) > 0.9
    assert (found.classes_[found.predict_proba(X).argmax(1)] == y).mean() > 0.9


def test_numbers_have_the_shape_of_y() -> None:
    for y in (TABLE[:, 0], TABLE[:, :1], TABLE[:, :3]):
        found = SequenceRegressor(**QUICK).fit(TABLE, y).predict(TABLE)
        assert (found.shape, found.dtype) == (y.shape, np.float64)
    steady = SequenceRegressor(**QUICK | {"steps": 100}).fit(CHANNELS, TABLE[:, 4:])
    assert steady.score(CHANNELS, TABLE[:, 4:]) > 0.5


def test_words_are_tagged() -> None:
    tagger = SequenceTagger(**QUICK | {"steps": 60}).fit(WORDS, TAGS)
    assert tagger.predict([["a", "bad", "film", "7"]]) == [["word", "word", "word", "number"]]
    right = [a == b for found, true in zip(tagger.predict(WORDS), TAGS) for a, b in zip(found, true)]
    assert tagger.score(WORDS, TAGS) == pytest.approx(np.mean(right))
    assert tagger.score(WORDS, TAGS) > 0.9
    assert pickle.loads(pickle.dumps(tagger)).predict(WORDS) == tagger.predict(WORDS)
    with pytest.raises(ValueError, match="requires y"):
        tagger.fit(WORDS, None)


# ---- what a fitted one is


def test_the_seed_decides_everything(tmp_path: Path) -> None:
    first, again, other = (SequenceClassifier(**QUICK | {"random_state": seed}).fit(TABLE, NAMES) for seed in (1, 1, 2))
    assert (first.predict_proba(TABLE) == again.predict_proba(TABLE)).all()
    assert (first.predict_proba(TABLE) != other.predict_proba(TABLE)).any()
    held_out = [sorted(map(str, each.save_run(tmp_path / str(i)).directory.read_lines("predictions.jsonl")))
                for i, each in enumerate((first, again, other))]  # fmt: skip
    assert held_out[0] == held_out[1]
    inputs = [{line.partition("'target'")[0] for line in lines} for lines in held_out]
    assert inputs[0] != inputs[2]
    drawn = [SequenceClassifier(**QUICK | {"random_state": np.random.RandomState(0)}).fit(TABLE, NAMES) for _ in "ab"]
    assert (drawn[0].predict_proba(TABLE) == drawn[1].predict_proba(TABLE)).all()


def test_a_fitted_one_can_be_pickled_and_a_clone_is_not_fitted(fitted: SequenceClassifier) -> None:
    held = io.BytesIO()
    joblib.dump(fitted, held)
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(held)):
        assert (again.predict_proba(TABLE) == fitted.predict_proba(TABLE)).all()
    new = clone(fitted)
    assert new.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError, match="This SequenceClassifier instance is not fitted yet"):
        new.predict(TABLE)
    with pytest.raises(NotFittedError):
        new.save_run("anywhere")


def test_nothing_is_printed_and_nothing_stays_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(SequenceClassifier(**QUICK).fit(TABLE, NAMES))).predict(TABLE)
    with pytest.raises(ValueError, match="at least two are needed"):
        SequenceClassifier(**QUICK).fit(TABLE, NAMES == "never")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_run_is_written_where_it_is_asked_for(tmp_path: Path, fitted: SequenceClassifier) -> None:
    run = fitted.save_run(tmp_path / "run")
    run.directory.verify()
    found = unrolled.load(tmp_path / "run").predict(TABLE)
    assert [each["prediction"] for each in found] == fitted.predict(TABLE).tolist()
    assert run.result == fitted.result_
    assert fitted.result_["baselines"] == {}
    with pytest.raises(ValueError, match="is not empty: name a new directory"):
        fitted.save_run(tmp_path / "run")


def test_a_share_of_the_data_is_held_out() -> None:
    found = SequenceClassifier(**QUICK, validation_fraction=0.25).fit(TABLE, NAMES)
    assert found.result_["valid"]["tokens"] == N // 4
    assert "test" not in found.result_


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    source = Path(unrolled.__file__).parent / "models" / "elman.py"
    (tmp_path / "mine.py").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    found = SequenceClassifier("mine", **QUICK, own_file=tmp_path / "mine.py").fit(TABLE, NAMES)
    assert (pickle.loads(pickle.dumps(found)).predict(TABLE) == found.predict(TABLE)).all()


# ---- within scikit-learn


def test_pipelines_cross_validation_and_grids() -> None:
    pipeline = make_pipeline(StandardScaler(), SequenceClassifier(**QUICK))
    grid = {"sequenceclassifier__model": ["elman", "prior"], "sequenceclassifier__settings": [{"threads": 1}]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(TABLE, NAMES)
    assert search.best_params_["sequenceclassifier__model"] == "elman"
    assert search.score(TABLE, NAMES) > 0.7
    for X in (TEXTS, RAGGED):
        assert cross_val_score(SequenceClassifier(**QUICK), X, NAMES, cv=2, error_score="raise").shape == (2,)
    assert cross_val_score(SequenceTagger(**QUICK), WORDS, TAGS, cv=2, error_score="raise").shape == (2,)


def test_threads_train_side_by_side() -> None:
    with joblib.parallel_backend("threading", n_jobs=2):
        together = cross_val_score(SequenceClassifier(**QUICK), TABLE, NAMES, cv=2, error_score="raise")
    assert (together == cross_val_score(SequenceClassifier(**QUICK), TABLE, NAMES, cv=2)).all()


def test_tags_say_what_is_possible() -> None:
    inputs = get_tags(SequenceClassifier()).input_tags
    assert (inputs.three_d_array, inputs.string, inputs.sparse, inputs.allow_nan) == (True, True, False, False)
    assert get_tags(SequenceRegressor()).target_tags.multi_output
    assert get_tags(SequenceTagger()).estimator_type is None


def test_parameters_are_documented() -> None:
    for kind in (SequenceClassifier, SequenceRegressor, SequenceTagger):
        assert [name for name in kind().get_params() if f"\n{name} : " not in str(kind.__doc__)] == []


# ---- errors


@pytest.mark.parametrize(("settings", "X", "y", "says", "cause"), [
    ({"model": "gruu"}, TABLE, NAMES, "did you mean 'gru'", errors.UsageError),
    ({"model": "ngram", "settings": None}, TABLE, NAMES, "models that fit: ", errors.UsageError),
    ({"time": 3}, TABLE, NAMES, "give one budget, not steps=... and time=...", errors.UsageError),
    ({"settings": {"d_stat": 3}}, TABLE, NAMES, "did you mean 'd_state'", errors.UsageError),
    ({"settings": {"seed": 3}}, TABLE, NAMES, "'seed' is given twice", errors.UsageError),
    ({"validation_fraction": 1}, TABLE, NAMES, "validation_fraction == 1, must be < 1", None),
    ({"random_state": "a"}, TABLE, NAMES, "cannot be used to seed", None),
    ({}, TABLE, NAMES[1:], "inconsistent numbers of samples", None),
    ({}, TEXTS, NAMES[1:], "inconsistent numbers of samples", None),
    ({}, TABLE, None, "requires y to be passed", None),
    ({}, TEXTS, None, "requires y to be passed", None),
    ({}, TABLE * np.nan, NAMES, "Input X contains NaN", None),
    ({}, CHANNELS * np.nan, NAMES, "Input X contains NaN", None),
    ({}, [row * np.nan for row in RAGGED], NAMES, "example 0, step 1, channel 1: found nan", errors.DataError),
    ({}, [*TEXTS[1:], ""], NAMES, "the text is empty", errors.DataError),
    ({}, ["a", "b", "c"], [1, 2, 3], "too small to split", errors.DataError),
    ({}, TABLE, np.where(EVEN, "a", "a "), "differ by white space alone", None),
], ids=lambda each: each if isinstance(each, str) and " " in each else "")  # fmt: skip
def test_errors_are_those_of_scikit_learn_with_ours_as_the_cause(
    settings: dict[str, Any], X: Any, y: Any, says: str, cause: type[Exception] | None
) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        SequenceClassifier(**QUICK | settings).fit(X, y)
    assert type(caught.value.__cause__) is (cause or type(None))


@pytest.mark.parametrize(("raised", "expected"), [
    (errors.Interrupted("stopped"), KeyboardInterrupt), (errors.OutOfMemory("too large"), MemoryError),
    (errors.CannotWrite("full"), OSError), (errors.Diverged("not finite"), ValueError),
])  # fmt: skip
def test_other_errors_have_their_own_types(
    raised: Exception, expected: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise raised

    monkeypatch.setattr("unrolled.sklearn.train", fail)
    with pytest.raises(expected) as caught:
        SequenceClassifier(**QUICK).fit(TABLE, NAMES)
    assert caught.value.__cause__ is raised
