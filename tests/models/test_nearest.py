"""The nearest neighbour against scikit-learn and by hand; lengths, scales, probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from unrolled.core.spec import Sizes
from unrolled.layers.counting import neighbours
from unrolled.models import nearest


def series(n: int, T: int = 12, D: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sines of three periods with noise; the class is the period."""
    generator = torch.Generator().manual_seed(n)
    y = torch.randint(3, (n,), generator=generator)
    t = torch.arange(T)[None, :, None]
    x = torch.sin(t / (1.0 + y[:, None, None])) + 0.3 * torch.randn(n, T, D, generator=generator)
    return x, torch.ones(n, T, dtype=torch.bool), y


def made(d_out: int = 3, **settings) -> nearest.Nearest:
    return nearest.make(nearest.Config(**settings), Sizes(2, d_out))


@pytest.mark.parametrize("normalise", [False, True])
def test_the_same_answers_as_scikit_learn(normalise):
    x, mask, y = series(60)
    new, there, _ = series(61)
    model = made(normalise=normalise)
    model.solve([(x[:25], mask[:25], y[:25]), (x[25:], mask[25:], y[25:])])

    def flat(values: torch.Tensor) -> np.ndarray:
        if normalise:
            values = (values - values.mean(1, keepdim=True)) / values.std(1, correction=0, keepdim=True)
        return values.flatten(1).numpy()

    peer = KNeighborsClassifier(1).fit(flat(x), y.numpy())
    assert model(new, there)[0][:, 0].argmax(-1).tolist() == peer.predict(flat(new)).tolist()


def test_p_is_how_often_neighbours_agree_in_training():
    x, mask, y = series(40)
    model = made(normalise=False)
    model.solve([(x, mask, y)])
    distance = torch.cdist(x.flatten(1), x.flatten(1)).fill_diagonal_(math.inf)
    right = int((y[distance.argmin(1)] == y).sum())
    p = model(x, mask)[0][:, 0].softmax(-1)
    torch.testing.assert_close(p.amax(-1), torch.full((40,), (right + 1) / 42))
    assert (p.argmax(-1) == y).all()  # each is its own neighbour


def test_scale_is_taken_off_where_that_helps():
    x, mask, y = series(60)
    shape = made()
    shape.solve([(x + 20 * torch.randn(60, 1, 1, generator=torch.Generator().manual_seed(0)), mask, y)])
    assert bool(shape.normalised)
    level = made()
    level.solve([(0.1 * x + y[:, None, None], mask, y)])  # only the level tells
    assert not bool(level.normalised)
    assert (level(0.1 * x + y[:, None, None], mask)[0][:, 0].argmax(-1) == y).all()


def test_series_of_other_lengths_are_brought_to_one():
    x = torch.tensor([[[0.0], [1.0], [2.0], [77.0]], [[0.0], [2.0], [4.0], [6.0]]])
    mask = torch.tensor([[True, True, True, False], [True] * 4])
    z = nearest.resampled(x, mask, 5)[..., 0]
    assert z.tolist() == [[0, 0.5, 1, 1.5, 2], [0, 1.5, 3, 4.5, 6]]
    wrong = x.clone()
    wrong[0, 3] = math.nan
    torch.testing.assert_close(nearest.resampled(wrong, mask, 5)[..., 0], z)
    assert nearest.resampled(x, mask, 2)[1, :, 0].tolist() == [0, 6]


def test_numbers_and_sets_are_those_of_the_neighbour():
    x, mask, y = series(20)
    numbers = torch.stack([y * 1.5, -y], 1).float()
    model = made(2)
    model.solve([(x, mask, numbers)])
    torch.testing.assert_close(model(x, mask)[0][:, 0], numbers)
    sets = (numbers.abs() > 1).float()
    model.solve([(x, mask, sets)])
    assert ((model(x, mask)[0][:, 0] > 0) == (sets > 0)).all()


def test_distances_in_pieces_are_the_same(monkeypatch):
    x, mask, y = series(50)
    model = made()
    model.solve([(x, mask, y)])
    new, there, _ = series(51)
    whole = model(new, there)[0]
    monkeypatch.setattr(neighbours, "NUMBERS", 100)
    torch.testing.assert_close(model(new, there)[0], whole)


def test_what_was_stored_is_loaded_and_damage_refused():
    x, mask, y = series(20)
    model, other = made(), made()
    model.solve([(x, mask, y)])
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(x, mask)[0], model(x, mask)[0])
    with pytest.raises(RuntimeError, match="do not match"):
        made().load_state_dict(model.state_dict() | {"answers": torch.zeros(3, 3)})
