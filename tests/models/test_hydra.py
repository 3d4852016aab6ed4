"""Hydra: its equations, step by step, and that it learns shapes whatever their level and scale."""

from __future__ import annotations

import math

import torch

import unrolled
from unrolled.core.spec import Sizes
from unrolled.models.hydra import SMALL, WIDTH, Config, make, scores

TINY = Config(n_groups=2, n_filters=3, n_dilations=2, d_hidden=4, dropout=0.0)


def test_features_are_those_of_the_equations():
    torch.manual_seed(0)
    model, T = make(TINY, Sizes(1, 2)).double(), 7
    x = torch.randn(1, T, 1, dtype=torch.float64)
    seen = []
    model.norm.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(x, torch.ones(1, T, dtype=torch.bool))
    u = ((x[0, :, 0] - x.mean()) / x[0, :, 0].std(correction=0)).tolist()
    v = [0.0, *(b - a for a, b in zip(u, u[1:]))]
    found = []
    for r in range(2):
        for i, z in enumerate((u, v)):
            a, b = [[[0.0] * 3 for _ in range(2)] for _ in range(2)]
            for g in range(2):
                for t in range(T):
                    around = [z[s] if 0 <= (s := t + (j - WIDTH // 2) * 2**r) < T else 0.0 for j in range(WIDTH)]
                    C = [sum(w * n for w, n in zip(model.filters[r, i, g, k].tolist(), around)) for k in range(3)]
                    a[g][C.index(max(C))] += max(C) / T
                    b[g][C.index(min(C))] += 1 / T
            found += [math.sqrt(max(value, 0) + SMALL) for each in (a, b) for group in each for value in group]
    torch.testing.assert_close(seen[0][0], torch.tensor(found, dtype=torch.float64))


def test_level_and_scale_of_a_series_do_not_matter():
    torch.manual_seed(1)
    model = make(TINY, Sizes(2, 2)).eval()
    x, mask = torch.randn(3, 12, 2), torch.ones(3, 12, dtype=torch.bool)
    moved = 5 + torch.tensor([3.0, 0.1]) * x
    torch.testing.assert_close(model(moved, mask)[0], model(x, mask)[0], rtol=1e-4, atol=1e-4)
    constant = scores(torch.full((1, 9, 1), 1e6), torch.ones(1, 9, dtype=torch.bool))
    assert constant.eq(0).all()


def test_shapes_are_learned(tmp_path):
    """Two classes that differ in the shape of one bump, at any place, level and size."""
    random = torch.Generator().manual_seed(0)
    series, classes = [], []
    for n in range(80):
        x = 0.1 * torch.randn(40, generator=random)
        at = int(torch.randint(4, 28, (), generator=random))
        bump = torch.tensor([1.0, 2, 3, 2, 1]) if n % 2 else torch.tensor([2.0, -1, 2, -1, 2])
        x[at : at + 5] += bump
        series.append((10 * torch.rand((), generator=random) + (1 + n % 7) * x).numpy()[:, None])
        classes.append("ab"[n % 2])
    run = unrolled.train((series, classes), "classify", "hydra", out=tmp_path / "run", steps=40, split="70/10/20",
                         threads=1, d_hidden=16, n_dilations=2)  # fmt: skip
    assert run.result["test"]["error"] <= 0.1
