"""Logistic regression on n-grams: the same features and nearly the same minimum as scikit-learn's own pipeline."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from unrolled.core.errors import DataError
from unrolled.core.spec import Sizes
from unrolled.layers.counting import regularised
from unrolled.layers.counting.ngram_features import START, STOP
from unrolled.models import logistic

V = 9  # ids 0 to 8, of which 4 to 8 are in texts


def texts(n: int = 80) -> tuple[list[list[int]], torch.Tensor]:
    """Rows of ids whose class, of three, is the pair that is put into them."""
    random = np.random.default_rng(0)
    y = random.integers(0, 3, n)
    rows = [[*random.integers(4, V, random.integers(1, 7)).tolist(), 4 + int(c), 5] for c in y]
    return rows, torch.from_numpy(y)


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.full((len(rows), max(map(len, rows))), V - 1)
    mask = torch.zeros(x.shape, dtype=torch.bool)
    for i, row in enumerate(rows):
        x[i, : len(row)], mask[i, : len(row)] = torch.tensor(row), True
    return x, mask


def batches(rows, y, size=25):
    return [(*padded(rows[i : i + size]), y[i : i + size]) for i in range(0, len(rows), size)]


def grams(row: list[int]) -> list[str]:
    marked = [START, *row, STOP]
    runs = [marked[i : i + n] for n in (1, 2, 3) for i in range(len(marked) - n + 1)]
    return [" ".join(map(str, run)) for run in runs if run not in ([START], [STOP])]


def solved(**settings) -> tuple[logistic.Logistic, list[list[int]], torch.Tensor]:
    rows, y = texts()
    model = logistic.make(logistic.Config(longest=3, **settings), Sizes(V, 4))  # the fourth class is never seen
    model.solve(batches(rows, y))
    return model, rows, y


def test_the_probabilities_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(regularised, "PASSES", 5000)
    monkeypatch.setattr(regularised, "CLOSE", 1e-8)
    model, rows, y = solved(regularisation=0.1)
    peer = TfidfVectorizer(analyzer=grams)
    z = peer.fit_transform(rows)
    assert len(model.keys) == z.shape[1]
    p = LogisticRegression(C=10, tol=1e-8, max_iter=5000).fit(z, y.numpy()).predict_proba(z)
    own = model(*padded(rows))[0][:, 0]  # [n, 4]
    np.testing.assert_allclose(own[:, :3].softmax(-1).numpy(), p, atol=1e-4)
    assert (own.argmax(-1) < 3).all()


def test_training_examples_are_told_apart_with_the_usual_settings():
    model, rows, y = solved()
    y_hat = model(*padded(rows))[0][:, 0].argmax(-1)
    assert (y_hat == y).float().mean() > 0.95


def test_few_features_are_those_of_the_most_examples():
    model, rows, _ = solved(n_features=5)
    all_of_them = list(itertools.chain.from_iterable(sorted(set(grams(row))) for row in rows))
    often = sorted((all_of_them.count(gram) for gram in set(all_of_them)), reverse=True)[:5]
    n = len(rows)
    seen = [(1 + n) / np.exp(idf - 1) - 1 for idf in model.idf.tolist()]
    assert sorted(np.round(seen).astype(int).tolist(), reverse=True) == often
    assert torch.isfinite(model(*padded(rows))[0]).all()


def test_rare_classes_count_for_more_when_asked():
    rows, y = texts(200)
    rare = (y == 0) & (torch.arange(len(y)) % 8 > 0)
    kept = (~rare).nonzero()[:, 0].tolist()
    rows, y = [rows[i] for i in kept], y[kept]
    recall = {}
    for power in (0.0, 1.0):
        model = logistic.make(logistic.Config(longest=1, regularisation=5, class_weights=power), Sizes(V, 3))
        model.solve(batches(rows, y))
        said = model(*padded(rows))[0][:, 0].argmax(-1)
        recall[power] = float((said[y == 0] == 0).float().mean())
    assert recall[1.0] > recall[0.0]


def test_sets_are_one_regression_a_class():
    rows, y = texts()
    sets = torch.stack([y == 0, y > 0, y >= 0], 1).float()  # the third is always there
    model = logistic.make(logistic.Config(longest=2), Sizes(V, 3))
    model.solve(batches(rows, sets))
    said = model(*padded(rows))[0][:, 0] > 0
    assert (said == (sets > 0)).float().mean() > 0.95
    with pytest.raises(DataError, match="these targets are numbers"):
        model.solve(batches(rows, sets * 0.5))


def test_tables_of_any_size_are_loaded_and_damaged_ones_refused():
    model, rows, _ = solved()
    other = logistic.make(logistic.Config(longest=3), Sizes(V, 4))
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(*padded(rows))[0], model(*padded(rows))[0])
    state = model.state_dict()
    for wrong in ({"keys": state["keys"].flip(0)}, {"weight": state["weight"][:-1]}):
        with pytest.raises(RuntimeError, match="the saved tables are damaged"):
            logistic.make(logistic.Config(longest=3), Sizes(V, 4)).load_state_dict(state | wrong)


def test_one_class_alone_and_texts_of_unknown_grams():
    rows, y = texts(6)
    model = logistic.make(logistic.Config(), Sizes(V, 2))
    model.solve(batches(rows, torch.zeros_like(y)))
    assert (model(*padded([[1, 1, 1]]))[0][:, 0].argmax(-1) == 0).all()


def test_longest_is_what_fits_into_a_number():
    assert logistic.make(logistic.Config(longest=8), Sizes(100_000, 2)).longest == 3
    assert logistic.make(logistic.Config(), Sizes(100, 2)).longest == 4
    assert logistic.make(logistic.Config(), Sizes(30_000, 2)).longest == 2


def noisy(n: int, seed: int) -> tuple[list[list[int]], torch.Tensor]:
    """Long rows of chance in which a pair tells the class, seldom and not always rightly."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    rows = []
    for c in y:
        row = random.integers(4, V, 60).tolist()
        for at in random.choice(58, 3, replace=False):
            row[at : at + 2] = [4 + int(c), 6] if random.random() < 0.8 else [5 - int(c), 6]
        rows.append(row)
    return rows, torch.from_numpy(y)


def error(model: logistic.Logistic, rows: list[list[int]], y: torch.Tensor) -> float:
    return float((model(*padded(rows))[0][:, 0].argmax(-1) != y).double().mean())


def test_the_strength_is_the_one_that_errs_least_on_validation_data():
    rows, y = noisy(300, 0)
    valid, y_valid = noisy(200, 1)
    errors = {}
    for strength in regularised.STRENGTHS:
        model = logistic.make(logistic.Config(longest=2, regularisation=strength), Sizes(V, 2))
        assert model.solve(batches(rows, y), batches(valid, y_valid)) == {}
        errors[strength] = error(model, valid, y_valid)
    assert max(errors.values()) > min(errors.values()) + 0.05
    model = logistic.make(logistic.Config(longest=2), Sizes(V, 2))
    chosen = model.solve(batches(rows, y), batches(valid, y_valid))
    assert errors[chosen["regularisation"]] == min(errors.values()) == error(model, valid, y_valid)


def test_without_validation_data_examples_are_left_out_for_the_choice():
    """The choice is the one of leaving out thirds by hand, and nothing but the training data is read."""
    rows, y = noisy(240, 0)
    model = logistic.make(logistic.Config(longest=2), Sizes(V, 2))
    chosen = model.solve(batches(rows, y, size=240))
    wrong = dict.fromkeys(regularised.STRENGTHS, 0.0)
    for strength in wrong:
        for k in range(3):
            seen, left = ([i for i in range(240) if (i % 3 == k) is out] for out in (False, True))
            part = logistic.make(logistic.Config(longest=2, regularisation=strength), Sizes(V, 2))
            part.solve(batches([rows[i] for i in seen], y[seen], size=240))
            wrong[strength] += error(part, [rows[i] for i in left], y[left])
    assert wrong[chosen["regularisation"]] <= min(wrong.values()) + 0.05  # by hand idf is counted without the third


def test_much_data_is_thinned_for_the_choice_alone(monkeypatch):
    rows, y = noisy(300, 0)
    sizes = []
    whole = regularised.path

    def watched(z, *others):
        sizes.append(z.shape[0])
        return whole(z, *others)

    monkeypatch.setattr(regularised, "path", watched)
    monkeypatch.setattr(regularised, "WORK", 50_000)
    logistic.make(logistic.Config(longest=2), Sizes(V, 2)).solve(batches(rows, y), batches(*noisy(50, 1)))
    assert sizes[0] < 150 and sizes[1:] == [300]


def test_classes_that_training_never_showed_do_not_stop_the_choice():
    rows, y = noisy(60, 0)
    valid, y_valid = noisy(40, 1)
    for unseen in (2, -1):
        odd = torch.where(torch.arange(40) == 3, unseen, y_valid)
        model = logistic.make(logistic.Config(longest=2, class_weights=1.0), Sizes(V, 2))
        assert model.solve(batches(rows, y), batches(valid, odd))["regularisation"] in regularised.STRENGTHS
    sets, more = (
        torch.stack([y == 0, y == 1], 1).float(),
        torch.stack([y_valid == 0, y_valid == 1, y_valid > 5], 1).float(),
    )
    model = logistic.make(logistic.Config(longest=2), Sizes(V, 2))
    assert model.solve(batches(rows, sets), batches(valid, more))["regularisation"] in regularised.STRENGTHS
    logits = np.array([[2.0, -2.0], [2.0, -2.0], [-1.0, 1.0]])
    assert regularised.misses(logits, np.array([0, 2, 0]))[0] == 2
    assert regularised.misses(logits, np.array([[1, 0, 0], [1, 0, 1], [0, 0, 0]]))[0] == 2
