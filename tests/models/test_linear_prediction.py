"""Linear prediction is the least-squares solution, and its masses are those of the normal error of each level."""

from __future__ import annotations

import math

import numpy as np
import torch

from unrolled.core.batch import TARGET
from unrolled.core.tokens import SPECIALS
from unrolled.data.codecs.samples import Samples, expand
from unrolled.data.examples import Examples, ragged
from unrolled.models.linear_prediction import EPS, LinearPrediction

ORDER = 3
CODEC = Samples(8)


def noise(n: int, seed: int) -> np.ndarray:
    """x_t = 0.6 x_{t-1} - 0.3 x_{t-2} + e_t"""
    e, x = np.random.default_rng(seed).normal(size=n) * 0.1, np.zeros(n)
    for t in range(n):
        x[t] = 0.6 * x[t - 1] - 0.3 * x[t - 2] + e[t] if t > 1 else e[t]
    return np.clip(x, -1, 1)


def fitted(*clips: np.ndarray) -> tuple[LinearPrediction, Examples]:
    data = Examples({TARGET: ragged([CODEC.encode(each) for each in clips])}, {})
    model = LinearPrediction(ORDER, CODEC.size, CODEC.size)
    model.solve(data)
    return model, data


def test_it_is_the_least_squares_solution() -> None:
    model, data = fitted(noise(400, 0), noise(300, 1))
    rows, wanted = [], []
    for ids in data.fields[TARGET]:
        x = np.concatenate([np.zeros(ORDER), CODEC.decode(ids)]).astype(np.float64)
        rows += [x[t : t + ORDER] for t in range(len(ids))]
        wanted += list(x[ORDER:])
    a, *_ = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)
    np.testing.assert_allclose(model.weights.numpy(), a, atol=1e-4)
    error = np.array(wanted) - np.array(rows) @ a
    assert math.isclose(float(model.deviation), float(np.sqrt(np.mean(error**2))), rel_tol=1e-4)
    np.testing.assert_allclose(a[::-1], [0.6, -0.3, 0.0], atol=0.1)


def test_levels_have_the_mass_of_the_normal_error() -> None:
    model, data = fitted(noise(500, 2))
    ids = torch.from_numpy(data.fields[TARGET][0][:20].astype(np.int64))[None]
    y, _ = model(ids)
    x = CODEC.decode(ids[0].numpy())
    m = float(model.weights.double() @ torch.from_numpy(x[-ORDER:]).double())
    s, edges = float(model.deviation), [-math.inf, *expand((2 * np.arange(255) + 1) / 255 - 1), math.inf]

    def below(at: float) -> float:
        return 0.5 * (1 + math.erf((at - m) / s / math.sqrt(2)))

    masses = [(1 - EPS) * (below(b) - below(a)) + EPS / 256 for a, b in zip(edges, edges[1:])]
    found = y[0, -1].double().exp()
    assert math.isclose(float(found.sum()), 1, rel_tol=1e-5)
    np.testing.assert_allclose(found[len(SPECIALS) :].numpy(), masses, rtol=1e-3)
    assert float(found[: len(SPECIALS)].sum()) == 0


def test_numbers_have_one_logistic_of_the_same_variance() -> None:
    codec, x = Samples(16), noise(600, 3)
    model = LinearPrediction(ORDER, 1, 6)
    model.solve(Examples({TARGET: ragged([codec.encode(x)])}, {}))
    logits, mu, log_s = model(torch.from_numpy(x[:9]).float()[None, :, None])[0][0, -1].chunk(3)
    assert float(logits.softmax(0)[0]) > 0.999
    s = float(log_s[0].exp())
    assert math.isclose(s * math.pi / math.sqrt(3), float(model.deviation), rel_tol=1e-5)
    assert math.isclose(float(mu[0]), float(model.weights @ torch.from_numpy(x[6:9]).float()), rel_tol=1e-4)
