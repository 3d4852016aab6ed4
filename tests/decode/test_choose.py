"""Choosers against a few hand-written lines each."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from unrolled.core.errors import DataError, UsageError
from unrolled.decode import choose as c
from unrolled.decode.config import Decoding
from unrolled.decode.noise import Noise

V = 8
EVEN = torch.linspace(0, 1, 4001, dtype=torch.float64)[:-1]  # a grid over [0, 1) stands for many draws


def logits(seed: int = 0) -> Tensor:
    return 2 * torch.randn(1, V, generator=torch.Generator().manual_seed(seed))


def shares(chooser: c.Chooser, y: Tensor, history: Tensor | None = None) -> Tensor:
    """How often each token is chosen when the noise takes all values."""
    n = len(EVEN)
    past = torch.zeros(n, 0, dtype=torch.long) if history is None else history.expand(n, -1)
    tokens = chooser(y.expand(n, -1), past, EVEN)
    return torch.bincount(tokens, minlength=V) / n


def assert_shares(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual.double(), expected.double().flatten(), atol=2 / len(EVEN), rtol=0)


def by_hand(y: Tensor, sampling: Decoding, history: list[int], forbidden: set[int]) -> Tensor:
    log_q = y[0].double().log_softmax(-1).tolist()
    log_q = [-math.inf if k in forbidden else x for k, x in enumerate(log_q)]
    log_q = [x * sampling.repetition_penalty if k in history else x for k, x in enumerate(log_q)]
    weights = {k: math.exp(x / sampling.temperature) for k, x in enumerate(log_q) if x > -math.inf}
    ranked = sorted(weights, key=lambda k: -weights[k])[: sampling.top_k or V]
    total, mass, kept = sum(weights[k] for k in ranked), 0.0, []
    for k in ranked:
        if mass / total >= sampling.top_p:
            break
        kept.append(k)
        mass += weights[k]
    return torch.tensor([weights[k] / mass if k in kept else 0.0 for k in range(V)], dtype=torch.float64)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 3.0},
        {"top_k": 3},
        {"top_k": 100},
        {"top_p": 0.6},
        {"top_p": 1e-9},
        {"repetition_penalty": 1.7},
        {"temperature": 0.7, "top_k": 5, "top_p": 0.8, "repetition_penalty": 1.2},
    ],
)
@pytest.mark.parametrize("forbidden", [set(), {0, 2}])
@pytest.mark.parametrize("seed", [0, 1])
def test_sampling_is_what_is_written(settings: dict, forbidden: set[int], seed: int) -> None:
    sampling, y = Decoding(**settings), logits(seed)
    actual = shares(c.make_chooser(sampling, forbidden), y, torch.tensor([[1, 5, 5]]))
    assert_shares(actual, by_hand(y, sampling, [1, 5, 5], forbidden))


def test_sampling_frequencies_match_the_distribution_by_chi_square() -> None:
    y, n = logits(), 20_000
    noise = Noise(0, torch.arange(n))(17)
    tokens = c.draw(y.expand(n, -1), torch.zeros(n, 0, dtype=torch.long), noise)
    counts, expected = torch.bincount(tokens, minlength=V), n * y[0].softmax(-1)
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    assert 0.5 < chi_square < 24.3  # 7 degrees of freedom: 0.1 % either way


def test_temperature_zero_is_greedy_and_small_temperatures_approach_it() -> None:
    y = logits()
    for temperature in (0.0, 1e-3, 1e-300):
        chooser = c.make_chooser(Decoding(temperature=temperature))
        assert_shares(shares(chooser, y), torch.nn.functional.one_hot(y.argmax(-1), V))


def test_greedy_respects_penalty_and_forbidden() -> None:
    y = torch.tensor([[3.0, 2.9, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    chooser = c.make_chooser(Decoding(temperature=0, repetition_penalty=4.0), forbidden={1})
    assert chooser(y, torch.tensor([[7]]), EVEN[:1]).item() == 0
    assert chooser(y, torch.tensor([[0]]), EVEN[:1]).item() == 2


def test_of_equal_tokens_greedy_takes_the_first() -> None:
    y = torch.tensor([[0.0, 4.0, 1.0, 4.0, 4.0], [2.0, 2.0, 2.0, 2.0, 2.0]])
    past, noise = torch.zeros(2, 0, dtype=torch.long), EVEN[-2:]
    assert c.greedy(y, past, noise).tolist() == [1, 0]
    assert c.make_chooser(Decoding(temperature=0), forbidden={0})(y, past, noise).tolist() == [1, 1]


@pytest.mark.parametrize(("p", "kept"), [(0.25, 1), (0.5, 1), (0.5 + 1e-9, 2), (0.75, 2), (0.75 + 1e-9, 3), (0.99, 4)])
def test_the_nucleus_ends_as_soon_as_it_has_its_mass(p: float, kept: int) -> None:
    """The fewest tokens whose probability is at least p: with exactly p in them no further one joins."""
    y = torch.tensor([[0.125, 0.5, 0.125, 0.25]], dtype=torch.float64).log()
    assert c.keep_top_p(y, p).isfinite().nonzero()[:, 1].tolist() == sorted([1, 3, 0, 2][:kept])


def test_of_equal_tokens_the_first_are_kept() -> None:
    """Alone or among others, so that a row samples the same in every batch."""
    y = torch.zeros(3, 40).index_fill_(1, torch.tensor([7]), 1.0)
    assert c.keep_top_k(y, 3).isfinite().nonzero()[:, 1].view(3, 3).tolist() == [[0, 1, 7]] * 3
    assert c.keep_top_k(y[:1], 3).isfinite().nonzero()[:, 1].tolist() == [0, 1, 7]
    assert c.keep_top_p(y, 0.1).isfinite().nonzero()[:, 1].view(3, 3).tolist() == [[0, 1, 7]] * 3


def test_a_number_at_the_edge_of_two_tokens_draws_the_second() -> None:
    y = torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.float64).log()
    drawn = [c.draw(y, torch.zeros(1, 0), torch.tensor([u], dtype=torch.float64)).item() for u in (0.0, 0.25, 0.5)]
    assert drawn == [0, 1, 2]


def test_the_penalty_does_not_depend_on_the_zero_of_the_logits() -> None:
    chooser, past = c.make_chooser(Decoding(repetition_penalty=1.5)), torch.tensor([[2, 3]])
    assert_shares(shares(chooser, logits() + 50, past), shares(chooser, logits() - 50, past))


def test_rows_have_their_own_history() -> None:
    y = torch.tensor([[3.0, 2.9, 0.0], [3.0, 2.9, 0.0]])
    chooser = c.make_chooser(Decoding(temperature=0, repetition_penalty=2.0))
    assert chooser(y, torch.tensor([[2, 0], [1, 2]]), EVEN[:2]).tolist() == [1, 0]


def test_impossible_tokens_are_never_drawn() -> None:
    y = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    for u in (0.0, 0.5, 1 - 2**-52):
        assert c.draw(y, torch.zeros(1, 0), torch.tensor([u], dtype=torch.float64)).item() in (1, 3)


@pytest.mark.parametrize("bad", [[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]])
def test_no_possible_token_is_said(bad: list[float]) -> None:
    y = torch.tensor([[1.0, 1.0], bad])
    with pytest.raises(DataError, match="no token can be chosen in row 1"):
        c.make_chooser(Decoding())(y, torch.zeros(2, 0, dtype=torch.long), EVEN[:2])


def test_scheduled_takes_the_truth_with_its_probability() -> None:
    n, y = len(EVEN), logits()
    truth = torch.tensor([[0, 6, 7]]).expand(n, -1)
    past = torch.zeros(n, 1, dtype=torch.long)
    for probability in (0.0, 0.25, 1.0):
        tokens = c.Scheduled(truth, probability, otherwise=c.draw)(y.expand(n, -1), past, EVEN)
        own = y[0].softmax(-1)
        expected = (1 - probability) * own + probability * torch.eye(V)[6]
        assert_shares(torch.bincount(tokens, minlength=V) / n, expected)
    beyond = c.Scheduled(truth[:1], 1.0)(y, torch.zeros(1, 3, dtype=torch.long), EVEN[:1])
    assert beyond.item() == y.argmax().item()


def test_scheduled_without_truth_never_takes_it() -> None:
    y, past = torch.tensor([[5.0, 0.0]]), torch.zeros(1, 0, dtype=torch.long)
    zero = torch.zeros(1, dtype=torch.float64)
    assert c.Scheduled(torch.tensor([[1]]), 0.0)(y, past, zero).item() == 0
    assert c.Scheduled(torch.tensor([[1]]), 1e-9)(y, past, zero).item() == 1


def test_heat_leaves_the_largest_at_zero() -> None:
    for temperature in (5e-324, 0.5, 1e300):
        assert c.heat(logits().double().log_softmax(-1), temperature).amax().item() == 0


def test_a_last_token_that_is_impossible_is_not_drawn_by_rounding() -> None:
    """Probabilities add up to a little less than 1 now and then; the largest number drawn is as near to 1."""
    below = 0
    for seed in range(100):
        y = torch.randn(1, 60, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        y[0, -3:] = -math.inf
        below += c.log_probabilities(y).exp().cumsum(-1)[0, -1].item() < 1
        assert c.draw(y, torch.zeros(1, 0), torch.tensor([1 - 2**-52], dtype=torch.float64)).item() < 57
    assert below > 0


def test_settings_are_checked() -> None:
    for values in ({"temperature": -1}, {"top_k": 0}, {"top_p": 0}, {"repetition_penalty": 0.5}, {"seed": -1}):
        with pytest.raises(UsageError, match=next(iter(values))):
            Decoding.parse(values)
