"""MiniRocket: filters and shares by the equation, what it learns that a neighbour cannot, and what it keeps."""

from __future__ import annotations

import itertools

import pytest
import torch

from unrolled.core.spec import Sizes
from unrolled.models import minirocket, nearest
from unrolled.testing import check_encoder


def bursts(n: int, T: int = 64, D: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A short burst somewhere in noise, up and down or down and up: only its shape tells, never where it stands."""
    random = torch.Generator().manual_seed(n)
    y = torch.randint(2, (n,), generator=random)
    x = 0.3 * torch.randn(n, T, D, generator=random)
    for i, at in enumerate(torch.randint(T - 3, (n,), generator=random).tolist()):
        x[i, at : at + 4, 0] += torch.tensor([3.0, 3.0, -3.0, -3.0]) * (1 if y[i] else -1)
    return x, torch.ones(n, T, dtype=torch.bool), y


def made(d_in: int = 1, d_out: int = 2, **settings) -> minirocket.MiniRocket:
    return minirocket.make(minirocket.Config(**{"features": 840, **settings}), Sizes(d_in, d_out))


def test_the_filters_are_all_that_the_page_names() -> None:
    assert len(minirocket.FILTERS) == 84
    assert {tuple(row) for row in minirocket.FILTERS.tolist()} == {
        row for row in itertools.product((-1.0, 2.0), repeat=9) if row.count(2.0) == 3
    }


def test_features_by_the_equation() -> None:
    x, mask, y = bursts(6, T=40, D=2)
    model = made(2)
    model.solve([(x[:4], mask[:4], y[:4]), (x[4:], mask[4:], y[4:])])
    found = model._features(x).view(6, 84, 10)
    plan = model._dilations(40)
    assert sum(n for _, n in plan) == 10 and plan[0][0] == 1 and plan[-1][0] == 4
    for i, k, b in [(0, 0, 0), (1, 17, 3), (2, 40, 5), (2, 41, 5)]:
        r, first = plan[i][0], sum(n for _, n in plan[:i])
        one = x[b].mv(model.channels[i, k])  # [T]

        def C(t: int, one: torch.Tensor = one, r: int = r, k: int = k) -> float:
            taps = [(j, t + (j - 4) * r) for j in range(9)]
            return sum(float(minirocket.FILTERS[k, j] * one[s]) for j, s in taps if 0 <= s < 40)

        steps = range(40) if (i + k) % 2 == 0 else range(4 * r, 40 - 4 * r)
        share = sum(C(t) > float(model.thresholds[k, first]) for t in steps) / len(steps)
        assert float(found[b, k, first]) == pytest.approx(share, abs=1.5 / len(steps))


def test_it_finds_a_burst_wherever_it_stands() -> None:
    x, mask, y = bursts(30, T=120)
    new, there, true = bursts(81, T=120)
    rocket, peer = made(), nearest.make(nearest.Config(), Sizes(1, 2))
    for model in (rocket, peer):
        model.solve([(x, mask, y)])
    right = [float((model(new, there)[0][:, 0].argmax(-1) == true).double().mean()) for model in (rocket, peer)]
    assert right[0] > 0.95 and right[1] < 0.8
    p = rocket(new, there)[0][:, 0].softmax(-1)
    assert float(-p[range(81), true].log().mean()) < 0.3


def test_numbers_and_sets_are_answered() -> None:
    x, mask, y = bursts(60)
    numbers = made(d_out=1)
    numbers.solve([(x, mask, 10.0 + 2.0 * y[:, None])])
    new, there, true = bursts(61)
    assert float((numbers(new, there)[0][:, 0, 0] - 10 - 2 * true).abs().mean()) < 0.5
    sets = made(d_out=2)
    sets.solve([(x, mask, torch.stack([y, 1 - y], 1).float())])
    assert float(((sets(new, there)[0][:, 0] > 0) == torch.stack([true, 1 - true], 1)).double().mean()) > 0.9


def test_lengths_and_the_laws() -> None:
    """A series of any length, a row without steps, and padding that is not seen."""
    x, mask, y = bursts(12, T=5)
    model = made()
    model.solve([(x, mask, y)])
    assert int(model.steps) == 9
    longer = model(torch.cat([x, torch.full((12, 3, 1), torch.nan)], 1), torch.arange(8)[None].expand(12, 8) < 5)[0]
    torch.testing.assert_close(longer, model(x, mask)[0])
    assert model(x, torch.zeros_like(mask))[0].isfinite().all()
    assert "padding" in check_encoder(minirocket.make(minirocket.MODEL.tiny, Sizes(3, 2)))


def test_what_was_solved_is_loaded_and_what_is_damaged_is_not() -> None:
    x, mask, y = bursts(20)
    model = made()
    model.solve([(x, mask, y)])
    again = made()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x, mask)[0], model(x, mask)[0])
    broken = model.state_dict() | {"channels": torch.ones(1, 84, 1)}
    with pytest.raises(RuntimeError, match="damaged"):
        made().load_state_dict(broken)
