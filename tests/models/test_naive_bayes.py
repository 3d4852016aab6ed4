"""Naive Bayes against scikit-learn, and the prior against counting by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from unrolled.core.errors import DataError
from unrolled.core.spec import Sizes
from unrolled.layers.counting.ngram_features import START, STOP
from unrolled.models import naive_bayes, prior


def texts() -> tuple[list[list[int]], torch.Tensor]:
    random = np.random.default_rng(0)
    rows = [random.integers(4, 9, random.integers(1, 12)).tolist() for _ in range(60)]
    return rows, torch.from_numpy(random.integers(0, 3, 60))


def batch(rows, y):
    x = torch.full((len(rows), max(map(len, rows)) + 1), 8)  # what stands in the padding is a token too
    mask = torch.zeros(x.shape, dtype=torch.bool)
    for i, row in enumerate(rows):
        x[i, : len(row)], mask[i, : len(row)] = torch.tensor(row), True
    return x, mask, y


def pairs(row: list[int]) -> list[str]:
    marked = [START, *row, STOP]
    return [str(token) for token in row] + [f"{a} {b}" for a, b in itertools.pairwise(marked)]


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("longest", [1, 2])
def test_the_same_probabilities_as_scikit_learn(once, longest):
    rows, y = texts()
    model = naive_bayes.make(naive_bayes.Config(once=once, smoothing=0.5, longest=longest), Sizes(9, 3))
    model.solve([batch(rows[:25], y[:25]), batch(rows[25:], y[25:])])
    analyzer = pairs if longest == 2 else lambda row: [str(token) for token in row]
    counts = CountVectorizer(analyzer=analyzer, binary=once).fit_transform(rows)
    prior_of = (np.bincount(y, minlength=3) + 0.5) / (len(y) + 1.5)
    peer = MultinomialNB(alpha=0.5, class_prior=prior_of).fit(counts, y.numpy())
    x, mask, _ = batch(rows, y)
    logits, real = model(x, mask)
    np.testing.assert_allclose(logits[:, 0].softmax(-1).numpy(), peer.predict_proba(counts), atol=1e-5)
    assert real.shape == (60, 1)


def test_sets_and_numbers_are_refused():
    model = naive_bayes.make(naive_bayes.Config(), Sizes(9, 2))
    with pytest.raises(DataError, match="predicts one class"):
        model.solve([batch([[4, 5]], torch.ones(1, 2))])


def test_a_prior_counts_classes_sets_and_numbers():
    model = prior.make(prior.Config(), Sizes(1, 2))
    nothing = torch.zeros(4, 1, 1), torch.ones(4, 1, dtype=torch.bool)
    model.solve([(*nothing, torch.tensor([0, 1, 1, 1]))])
    assert model(*nothing)[0][:, 0].softmax(-1)[0].tolist() == pytest.approx([2 / 6, 4 / 6])
    model.solve([(*nothing, torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 1.0]]))])
    assert model(*nothing)[0][0, 0].tolist() == pytest.approx([math.log(2 / 4), math.log(5 / 1)])
    model.solve([(*nothing, torch.tensor([[0.5, 3.0], [1.5, 5.0]]))])
    assert model(*nothing)[0][3, 0].tolist() == pytest.approx([1.0, 4.0])


def test_smoothing_and_counting_are_those_that_err_least_on_validation_data():
    rows, _ = texts()
    y = torch.tensor([int(row.count(4) > row.count(5)) for row in rows])  # how often they are there matters
    known, valid = batch(rows[:40], y[:40]), batch(rows[40:], y[40:])
    errors = {}
    for once in (True, False):
        for a in naive_bayes.SMOOTHINGS:
            model = naive_bayes.make(naive_bayes.Config(once=once, smoothing=a, longest=1), Sizes(9, 2))
            assert model.solve([known], [valid]) == {}
            errors[once, a] = int((model(*valid[:2])[0][:, 0].argmax(-1) != valid[2]).sum())
    assert min(errors.values()) < max(errors.values())
    model = naive_bayes.make(naive_bayes.Config(longest=1), Sizes(9, 2))
    chosen = model.solve([known], [valid])
    assert errors[chosen["once"], chosen["smoothing"]] == min(errors.values())
    assert int((model(*valid[:2])[0][:, 0].argmax(-1) != valid[2]).sum()) == min(errors.values())
    other = naive_bayes.make(naive_bayes.Config(longest=1), Sizes(9, 2))
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(*valid[:2])[0], model(*valid[:2])[0])
    assert naive_bayes.make(naive_bayes.Config(longest=1, smoothing=1), Sizes(9, 2)).solve([known]).keys() == {"once"}


@pytest.mark.parametrize("once", [True, False])
def test_tables_from_before_there_was_a_choice_are_loaded(once):
    rows, y = texts()
    config = naive_bayes.Config(once=once, smoothing=1.0, longest=2)
    model, other = naive_bayes.make(config, Sizes(9, 3)), naive_bayes.make(config, Sizes(9, 3))
    model.solve([batch(rows, y)])
    state = model.state_dict()
    del state["most"]
    other.load_state_dict(state)
    torch.testing.assert_close(other(*batch(rows, y)[:2])[0], model(*batch(rows, y)[:2])[0])
