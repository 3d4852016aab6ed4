"""Beam search against brute force, greedy, and the search of each row alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from unrolled.core.errors import DataError, UsageError
from unrolled.core.state import Fixed
from unrolled.decode.beam import beam_search, length_divisor
from unrolled.decode.choose import greedy
from unrolled.decode.rollout import Candidate, collect, rollout

Make = Callable[..., Any]
V, STOP, STEPS = 4, 3, 4
FULL = V**STEPS


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0, -1.0])
@pytest.mark.parametrize("seed", range(4))
def test_full_width_finds_the_true_best(make_toy: Make, seed: int, penalty: float) -> None:
    toy = make_toy(V, seed, sharpness=1.0)
    results = beam_search(toy, toy.start(3), torch.tensor([0, 1, 2]), STOP, FULL, STEPS, penalty, n_best=5)
    for row, candidates in enumerate(results):
        every = toy.every_sequence(row, [row], STOP, STEPS)
        ranked = sorted(((log_p / length_divisor(len(s), penalty), s) for log_p, s in every), reverse=True)
        assert [c.tokens for c in candidates] == [tokens for _, tokens in ranked[:5]]
        for candidate, (score, tokens) in zip(candidates, ranked[:5], strict=True):
            assert candidate.score == pytest.approx(score)
            assert candidate.log_p == pytest.approx(toy.log_p(row, [row], tokens))
            assert candidate.finished


@pytest.mark.parametrize("seed", range(10))
def test_width_one_is_greedy(make_toy: Make, seed: int) -> None:
    toy = make_toy(9, seed)
    prompt = torch.tensor([[1, 2], [4, 0], [5, 5]])
    by_beam = beam_search(toy, toy.start(3), prompt, STOP, 1, 12)
    by_choice = collect(rollout(toy, toy.start(3), prompt, None, greedy, STOP, 12))
    for (candidate,), expected in zip(by_beam, by_choice, strict=True):
        assert candidate.tokens == expected.tokens
        assert candidate.log_p == pytest.approx(expected.log_p)
        assert candidate.finished == expected.finished


def plain_beam(toy: Any, row: int, prompt: list[int], width: int, steps: int, a: float, n_best: int) -> list[Candidate]:
    """The same search with lists and no early end: what the batched one must give."""
    beams, found = [(0.0, [])], []
    for _ in range(steps):
        options = []
        for log_p, tokens in beams:
            logits = toy(torch.tensor([[*prompt, *tokens]]), toy.start([row]))[0][0, -1].log_softmax(-1).tolist()
            options += [(log_p + x, [*tokens, k]) for k, x in enumerate(logits)]
        options.sort(key=lambda option: -option[0])
        found += [(s / length_divisor(len(y), a), s, y) for s, y in options[:width] if y[-1] == STOP]
        beams = [option for option in options if option[1][-1] != STOP][:width]
    found.sort(key=lambda item: -item[0])
    cut = sorted(((s / length_divisor(len(y), a), s, y) for s, y in beams), key=lambda item: -item[0])
    ranked = [Candidate(y, s, True, score) for score, s, y in found]
    return (ranked + [Candidate(y, s, False, score) for score, s, y in cut])[:n_best]


PROMPTS = [[1, 2, 4, 0, 1], [2], [4, 3]]


@pytest.mark.parametrize("penalty", [0.0, 0.7, 3.0, -2.0])
@pytest.mark.parametrize("width", [2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_of_unequal_prompts_equals_plain_search(make_toy: Make, seed: int, width: int, penalty: float) -> None:
    toy = make_toy(6, seed, sharpness=1.0)
    prompt = torch.tensor([p + [5] * (5 - len(p)) for p in PROMPTS])
    lengths = torch.tensor([len(p) for p in PROMPTS])
    results = beam_search(toy, toy.start(3), prompt, STOP, width, 7, penalty, n_best=2, lengths=lengths)
    for row, candidates in enumerate(results):
        expected = plain_beam(toy, row, PROMPTS[row], width, 7, penalty, n_best=2)
        assert [c.tokens for c in candidates] == [c.tokens for c in expected]
        assert [c.finished for c in candidates] == [c.finished for c in expected]
        for candidate, reference in zip(candidates, expected, strict=True):
            assert candidate.score == pytest.approx(reference.score)
            assert candidate.log_p == pytest.approx(toy.log_p(row, PROMPTS[row], candidate.tokens))


@pytest.mark.parametrize(("penalty", "most"), [(0.0, 3), (1.0, 30), (-1.0, 3)])
def test_it_ends_as_soon_as_nothing_can_win(penalty: float, most: int) -> None:
    calls = []

    def step(tokens: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(tokens)
        return torch.tensor([0.2, 0.1, 0.1, 0.6]).log().expand(len(tokens), 1, 4), state

    (candidates,) = beam_search(step, torch.zeros(1, 1), torch.tensor([0]), STOP, 3, 200, penalty)
    assert candidates[0].tokens == [STOP]
    assert len(calls) <= most  # with a penalty of 1 a beam might gain up to 34-fold, so it takes a little longer


def test_what_a_beam_can_reach_is_measured_at_the_next_length() -> None:
    """With a = -1 a sequence of n tokens scores log P (5 + n) / 6: <stop> at once, -1.1, against -1 * 7 / 6 at best."""
    calls = []

    def step(tokens: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(tokens)
        likely, stop = math.exp(-1.0), math.exp(-1.1)
        p = torch.tensor([likely, (1 - likely - stop) / 2, (1 - likely - stop) / 2, stop])
        return p.log().expand(len(tokens), 1, 4), state

    (candidates,) = beam_search(step, torch.zeros(1, 1), torch.tensor([0]), STOP, 2, 50, -1.0)
    assert candidates[0].tokens == [STOP]
    assert len(calls) == 1


def test_longer_sequences_win_with_the_penalty() -> None:
    def step(tokens: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Stop has 0.4 at first; token 0 has 0.6, after which stop is certain but for the noise of 0.5."""
        t = state[:, 0]
        first, second = torch.tensor([0.6, 0.0, 0.0, 0.4]), torch.tensor([0.25, 0.2, 0.0, 0.55])
        p = torch.where((t == 0)[:, None], first, second)
        return p.log()[:, None], state + 1

    def best(penalty: float) -> list[int]:
        return beam_search(step, torch.zeros(1, 1), torch.tensor([0]), STOP, 4, 2, penalty)[0][0].tokens

    assert best(0.0) == [STOP]  # log 0.4 against log 0.33
    assert best(3.0) == [0, STOP]


def test_fixed_is_not_copied(make_toy: Make) -> None:
    toy = make_toy(V, sharpness=0.3)
    beam_search(toy, toy.start(2), torch.tensor([0, 1]), (), 3, 10)
    assert len(toy.fed) == 10
    assert len(set(toy.fixed[1:])) == 1


def test_what_has_ended_costs_nothing_more() -> None:
    """Row r stops for sure after r + 1 tokens: then its beams are no more given to the step, nor its Fixed part."""
    seen: list[list[int]] = []

    def step(tokens: torch.Tensor, state: dict[str, Any]) -> tuple[torch.Tensor, dict[str, Any]]:
        t, row = state["t"], state["row"].tree
        assert len(tokens) == len(t) == len(row)
        seen.append(row[:, 0].tolist())
        over = (t[:, 0] >= row[:, 0])[:, None]
        p = torch.where(over, torch.tensor([0.0, 0.0, 0.0, 1.0]), torch.tensor([0.5, 0.3, 0.2, 0.0]))
        return p.log()[:, None], {"t": t + tokens.shape[1], "row": state["row"]}

    start = {"t": torch.zeros(3, 1), "row": Fixed(torch.tensor([[2.0], [0.0], [1.0]]))}
    results = beam_search(step, start, torch.tensor([0, 0, 0]), STOP, 2, 9)
    assert [len(candidates[0].tokens) for candidates in results] == [3, 1, 2]
    assert seen == [[2.0, 0.0, 1.0], [2.0, 2.0, 1.0, 1.0], [2.0, 2.0]]


def test_a_prompt_is_read_by_one_beam(make_toy: Make) -> None:
    """As long as nobody has chosen anything, all beams of an example are one."""
    toy = make_toy(V)
    beam_search(toy, toy.start(2), torch.tensor([[1, 2, 0], [0, 0, 0]]), (), 3, 2, lengths=torch.tensor([3, 2]))
    assert [len(tokens) for tokens in toy.fed] == [2, 6, 3]


def test_a_prompt_that_outlasts_the_others_is_read_by_one_beam(make_toy: Make) -> None:
    toy = make_toy(V)
    prompt = torch.tensor([[1, 0, 0, 0], [0, 2, 1, 0]])
    beam_search(toy, toy.start(2), prompt, (), 3, 1, lengths=torch.tensor([1, 4]))
    assert [len(tokens) for tokens in toy.fed] == [2, 3, 1, 1]


def test_a_search_whose_beams_have_all_ended_is_over() -> None:
    """Fewer candidates than were asked for, because there are no more sequences."""
    calls = []

    def step(tokens: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(tokens)
        return torch.tensor([-math.inf, -math.inf, -math.inf, 0.0]).expand(len(tokens), 1, 4), state

    (candidates,) = beam_search(step, torch.zeros(1, 1), torch.tensor([0]), STOP, 3, 9, n_best=3)
    assert [(c.tokens, c.log_p, c.finished) for c in candidates] == [([STOP], 0.0, True)]
    assert len(calls) == 1


def test_without_a_stop_token_the_limit_ends_it(make_toy: Make) -> None:
    toy = make_toy(V, sharpness=0.3)
    (candidates,) = beam_search(toy, toy.start(1), torch.tensor([0]), (), V**3, 3, n_best=4)
    every = [(toy.log_p(0, [0], [a, b, c]), [a, b, c]) for a in range(V) for b in range(V) for c in range(V)]
    assert [c.tokens for c in candidates] == [tokens for _, tokens in sorted(every, reverse=True)[:4]]
    assert not any(c.finished for c in candidates)


def test_forbidden_tokens_do_not_occur_and_log_p_stays_the_models(make_toy: Make) -> None:
    toy = make_toy(V, sharpness=0.3)
    (candidates,) = beam_search(toy, toy.start(1), torch.tensor([0]), STOP, 8, 6, n_best=8, forbidden={0, 1})
    assert len(candidates) == 6 + 1  # 2, ..., 2, <stop> of every length, and the one that was cut
    for candidate in candidates:
        assert not {0, 1} & set(candidate.tokens)
        assert candidate.log_p == pytest.approx(toy.log_p(0, [0], candidate.tokens))


def test_what_cannot_be_is_said(make_toy: Make) -> None:
    toy = make_toy(V)
    with pytest.raises(UsageError, match="n_best = 3 with width = 2"):
        beam_search(toy, toy.start(1), torch.tensor([0]), STOP, 2, 5, n_best=3)
    toy.O[0, 0] = math.nan
    with pytest.raises(DataError, match="no token can be chosen in row 0"):
        beam_search(toy, toy.start(1), torch.tensor([0]), STOP, 2, 5)
