"""Naive Bayes against scikit-learn, and the prior against counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import MultinomialNB

from unrolled.core.errors import DataError
from unrolled.models import naive_bayes, prior


@pytest.fixture
def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 4, (60, 7), generator=generator).float(), torch.randint(0, 3, (60,), generator=generator)


@pytest.mark.parametrize("once", [True, False])
def test_the_same_probabilities_as_scikit_learn(data, once):
    x, y = data
    model = naive_bayes.make(naive_bayes.Config(once=once, smoothing=0.5), 7, 3)
    model.solve([(x[:25], y[:25]), (x[25:], y[25:])])
    counts = (x > 0).float() if once else x
    prior_of = (np.bincount(y, minlength=3) + 0.5) / (len(y) + 1.5)
    peer = MultinomialNB(alpha=0.5, class_prior=prior_of).fit(counts.numpy(), y.numpy())
    np.testing.assert_allclose(model(x).softmax(-1).numpy(), peer.predict_proba(counts.numpy()), atol=1e-5)
    assert model(x.view(4, 15, 7)).shape == (4, 15, 3)


def test_sets_and_numbers_are_refused():
    model = naive_bayes.make(naive_bayes.Config(), 2, 2)
    with pytest.raises(DataError, match="chooses one class"):
        model.solve([(torch.ones(1, 2), torch.ones(1, 2))])


def test_a_prior_counts_classes_sets_and_numbers():
    model = prior.make(prior.Config(), 1, 2)
    nothing = torch.zeros(4, 1)
    model.solve([(nothing, torch.tensor([0, 1, 1, 1]))])
    assert model(nothing).softmax(-1)[0].tolist() == pytest.approx([2 / 6, 4 / 6])
    model.solve([(nothing, torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 1.0]]))])
    assert model(nothing)[0].tolist() == pytest.approx([math.log(2 / 4), math.log(5 / 1)])
    model.solve([(nothing, torch.tensor([[0.5, 3.0], [1.5, 5.0]]))])
    assert model(nothing)[3].tolist() == pytest.approx([1.0, 4.0])
