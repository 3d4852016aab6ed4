"""Rollouts: each row in a batch is what it is alone; log P adds up; gradients flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from unrolled.core import state as tree
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed
from unrolled.decode.choose import Chooser, Scheduled, draw, greedy, make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of, collect, rollout

Make = Callable[..., Any]
V, STOP, JUNK = 7, 3, 5
PROMPTS = [[1, 2, 4, 6, 0, 1], [2], [4, 4, 3], [6, 3]]  # a stop token inside a prompt ends nothing
PENALISED = make_chooser(Decoding(repetition_penalty=1.3, top_p=0.9))


def padded(prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(p) for p in prompts])
    rows = [p + [JUNK] * (int(lengths.max()) - len(p)) for p in prompts]
    return torch.tensor(rows), lengths


def alone(toy: Any, row: int, choose: Chooser, max_steps: int, stop: object = STOP, seed: int = 1) -> tuple:
    prompt = torch.tensor([PROMPTS[row]])
    columns = rollout(toy, toy.start([row]), prompt, None, choose, stop, max_steps, rows=torch.tensor([row]), seed=seed)
    return collect(columns)[0]


@pytest.mark.parametrize("choose", [greedy, draw, PENALISED])
@pytest.mark.parametrize("seed", range(5))
def test_rows_in_a_batch_are_what_they_are_alone(make_toy: Make, choose: Chooser, seed: int) -> None:
    toy = make_toy(V, seed)
    prompt, lengths = padded(PROMPTS)
    together = collect(rollout(toy, toy.start(4), prompt, lengths, choose, STOP, 9, seed=seed))
    for row, candidate in enumerate(together):
        single = alone(toy, row, choose, 9, seed=seed)
        assert candidate.tokens == single.tokens
        assert candidate.log_p == pytest.approx(single.log_p)
        assert candidate.finished == single.finished == (candidate.tokens[-1] == STOP)
        assert len(candidate.tokens) == 9 or candidate.finished


def test_first_chunk_then_own_tokens_never_padding(make_toy: Make) -> None:
    toy = make_toy(V)
    prompt, lengths = padded(PROMPTS[::2])  # lengths 6 and 3
    columns = list(rollout(toy, toy.start(2), prompt, lengths, lambda y, h, u: torch.full((len(y),), 2), (), 4))
    assert toy.fed[0].tolist() == [PROMPTS[0][:3], PROMPTS[2]]
    assert [chunk[0, 0].item() for chunk in toy.fed[1:]] == [*PROMPTS[0][3:], 2, 2, 2]  # the last choice is not fed
    assert not any((chunk == JUNK).any() for chunk in toy.fed)
    active = torch.stack([column.active for column in columns], dim=1).int().tolist()
    assert active == [[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]]
    assert [column.tokens[0].item() for column in columns[:3]] == PROMPTS[0][3:]
    assert all((column.log_p[~column.active] == 0).all() for column in columns)


def test_choosers_see_the_whole_history_of_each_row(make_toy: Make) -> None:
    toy, seen = make_toy(V), []

    def watch(y: torch.Tensor, history: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        seen.append(history.clone())
        return draw(y, history, noise)

    prompt, lengths = padded(PROMPTS)
    tokens = [column.tokens for column in rollout(toy, toy.start(4), prompt, lengths, watch, (), 20)]
    expected = torch.cat([prompt[:, :1], torch.stack(tokens, dim=1)], dim=1)
    left = {4: [0, 1, 2, 3], 2: [0, 2], 1: [0]}  # the rows with shorter prompts end before and leave
    for t, history in enumerate(seen, start=1):
        assert torch.equal(history, expected[left[len(history)], :t])
    for row, own in enumerate(PROMPTS):
        assert expected[row, : len(own)].tolist() == own


@pytest.mark.parametrize("choose", [greedy, draw, PENALISED])
def test_log_p_is_the_score_of_the_sequence_under_the_plain_model(make_toy: Make, choose: Chooser) -> None:
    toy = make_toy(V, seed=3)
    for row, prompt in enumerate(PROMPTS):
        candidate = alone(toy, row, choose, 12)
        assert candidate.log_p == pytest.approx(toy.log_p(row, prompt, candidate.tokens))
        assert candidate.score == candidate.log_p


def test_a_stopped_stream_goes_on_where_it_was(make_toy: Make) -> None:
    toy = make_toy(V, seed=4)
    whole = alone(toy, 0, PENALISED, 12, stop=())
    prompt = torch.tensor([PROMPTS[0] + whole.tokens[:5]])
    rest = collect(rollout(toy, toy.start(1), prompt, None, PENALISED, (), 7, seed=1))[0]
    assert rest.tokens == whole.tokens[5:]


def test_seeds_and_row_numbers_matter(make_toy: Make) -> None:
    toy = make_toy(V, sharpness=0.1)
    prompt = torch.ones(2, 1, dtype=torch.long)
    first = collect(rollout(toy, toy.start([0, 0]), prompt, None, draw, (), 30))
    other = collect(rollout(toy, toy.start([0, 0]), prompt, None, draw, (), 30, seed=1))
    again = collect(rollout(toy, toy.start([0, 0]), prompt, None, draw, (), 30, rows=torch.tensor([1, 0])))
    assert first[0].tokens != first[1].tokens
    assert first[0].tokens != other[0].tokens
    assert [c.tokens for c in again] == [c.tokens for c in first[::-1]]


def test_several_stop_tokens(make_toy: Make) -> None:
    toy = make_toy(V, sharpness=0.1)
    rows = collect(rollout(toy, toy.start(50), torch.ones(50, 1, dtype=torch.long), None, draw, {2, 5}, 100))
    assert {c.tokens[-1] for c in rows} == {2, 5}
    assert all(c.finished and not {2, 5} & set(c.tokens[:-1]) for c in rows)


def test_sampled_sequences_have_the_frequencies_of_the_model(make_toy: Make) -> None:
    toy, n, stop = make_toy(3, seed=1, sharpness=0.7), 4000, 2
    rows = collect(rollout(toy, toy.start([0] * n), torch.zeros(n, 1, dtype=torch.long), None, draw, stop, 3))
    found: dict[tuple[int, ...], int] = {}
    for candidate in rows:
        found[tuple(candidate.tokens)] = found.get(tuple(candidate.tokens), 0) + 1
    finished = [(log_p, tuple(tokens)) for log_p, tokens in toy.every_sequence(0, [0], stop, 3)]
    cut = [(toy.log_p(0, [0], [a, b, c]), (a, b, c)) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    expected = {tokens: n * 2.718281828459045**log_p for log_p, tokens in finished + cut}
    assert sum(expected.values()) == pytest.approx(n)
    assert set(found) <= set(expected)
    chi_square = sum((found.get(k, 0) - e) ** 2 / e for k, e in expected.items())
    assert len(expected) == 15
    assert 3 < chi_square < 36.1  # 14 degrees of freedom: 0.1 %


def test_best_of_n(make_toy: Make) -> None:
    toy = make_toy(V, seed=2, sharpness=0.5)
    prompt, lengths = padded(PROMPTS)
    groups = best_of(6, toy, toy.start(4), prompt, lengths, draw, STOP, 8, seed=9)
    fewer = best_of(2, toy, toy.start(4), prompt, lengths, draw, STOP, 8, seed=9)
    for row, group in enumerate(groups):
        assert len(group) == 6
        assert [c.log_p for c in group] == sorted((c.log_p for c in group), reverse=True)
        for candidate in group:
            assert candidate.log_p == pytest.approx(toy.log_p(row, PROMPTS[row], candidate.tokens))
        assert alone(toy, row, draw, 8, seed=9).tokens in [c.tokens for c in group]
        assert {tuple(c.tokens) for c in fewer[row]} <= {tuple(c.tokens) for c in group}
        assert len({tuple(c.tokens) for c in group}) > 1


def test_the_best_of_one_is_the_plain_rollout(make_toy: Make) -> None:
    toy, prompt = make_toy(V), torch.tensor([[1, 2], [4, 4]])
    (one,), (two,) = best_of(1, toy, toy.start(2), prompt, None, draw, STOP, 8, seed=9)
    assert [one, two] == collect(rollout(toy, toy.start(2), prompt, None, draw, STOP, 8, seed=9))
    with pytest.raises(UsageError, match="best_of = 0"):
        best_of(0, toy, toy.start(2), prompt, None, draw, STOP, 8)


@pytest.mark.parametrize("shape", [(2,), (2, 1, 1), (0, 3)])
def test_a_prompt_is_rows_of_tokens(make_toy: Make, shape: tuple[int, ...]) -> None:
    toy = make_toy(V)
    with pytest.raises(UsageError, match="at least one row"):
        next(rollout(toy, toy.start(2), torch.zeros(shape, dtype=torch.long), None, greedy, (), 3))


def test_a_cloned_state_can_be_rolled_out_again(make_toy: Make) -> None:
    toy, prompt = make_toy(V), torch.tensor([[1, 2]])
    with torch.no_grad():
        _, state = toy(torch.tensor([[4, 4]]), toy.start(1))
    kept = tree.clone(state)
    assert collect(rollout(toy, state, prompt, None, draw, (), 9)) == collect(
        rollout(toy, kept, prompt, None, draw, (), 9)
    )


def test_scheduled_mixing_trains_through_the_rollout(make_toy: Make) -> None:
    toy = make_toy(V)
    toy.E.requires_grad_()
    truth = torch.tensor([[1, 4, 2, 6, 0], [1, 0, 0, 2, 4]])
    for probability in (1.0, 0.5, 0.0):
        columns = list(rollout(toy, toy.start(2), truth[:, :1], None, Scheduled(truth, probability), (), 4))
        y = torch.stack([column.y for column in columns], dim=1)  # [B, T, V]
        loss = torch.nn.functional.cross_entropy(y.flatten(0, 1), truth[:, 1:].flatten())
        (gradient,) = torch.autograd.grad(loss, toy.E, retain_graph=True)
        own = torch.stack([column.tokens for column in columns], dim=1)
        inputs = torch.cat([truth[:, :1], own[:, :-1]], dim=1)
        forced = torch.nn.functional.cross_entropy(toy(inputs, toy.start(2))[0].flatten(0, 1), truth[:, 1:].flatten())
        torch.testing.assert_close(gradient, torch.autograd.grad(forced, toy.E)[0])
        assert gradient.abs().sum() > 0
        if probability == 1.0:
            assert torch.equal(own, truth[:, 1:])
    log_p = sum(column.log_p.sum() for column in columns)  # type: ignore[misc]
    assert torch.autograd.grad(log_p, toy.E)[0].abs().sum() > 0


def test_rows_that_ended_leave_when_they_are_half_of_the_batch() -> None:
    """Row r stops after r + 1 tokens; what is left is as it would be alone, in the order of the rows."""
    ends = torch.tensor([3.0, 0.0, 5.0, 1.0, 0.0, 2.0])
    seen: list[list[float]] = []

    def step(tokens: torch.Tensor, state: Any) -> Any:
        t, row = state[0], state[1].tree
        seen.append(row.tolist())
        over = (t >= row)[:, None]
        p = torch.where(over, torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.6, 0.4, 0.0]))
        return p.log()[:, None], (t + tokens.shape[1], state[1])

    start = (torch.zeros(6), Fixed(ends))
    columns = list(rollout(step, start, torch.zeros(6, 1, dtype=torch.long), None, draw, 2, 9, seed=4))
    assert seen == [ends.tolist()] * 2 + [[3.0, 5.0, 2.0]] * 2 + [[5.0]] * 2
    assert all(len(part) == 6 for column in columns for part in column[:4])
    together = collect(columns)
    for row in range(6):
        alone = rollout(step, (torch.zeros(1), Fixed(ends[row : row + 1])), torch.zeros(1, 1, dtype=torch.long), None,
                        draw, 2, 9, rows=torch.tensor([row]), seed=4)  # fmt: skip
        assert collect(alone)[0] == together[row]
    assert [len(candidate.tokens) for candidate in together] == [4, 1, 6, 2, 1, 3]


def test_the_truth_of_scheduled_mixing_leaves_with_its_row(make_toy: Make) -> None:
    toy = make_toy(V)
    truth = torch.tensor([[1, 5, 5, 5, 5], [1, 3, 5, 5, 5], [1, 3, 5, 5, 5], [1, 2, 4, 6, 0]])
    rows = collect(rollout(toy, toy.start(4), truth[:, :1], None, Scheduled(truth, 1.0), {3, 5}, 4))
    assert [candidate.tokens for candidate in rows] == [[5], [3], [3], [2, 4, 6, 0]]


def test_no_graph_is_kept_when_collecting(make_toy: Make) -> None:
    toy = make_toy(V)
    toy.E.requires_grad_()
    graphs = []

    def step(tokens: torch.Tensor, state: Any) -> Any:
        logits, state = toy(tokens, state)
        graphs.append(logits.requires_grad)
        return logits, state

    collect(rollout(step, toy.start(1), torch.tensor([[1]]), None, draw, (), 3))
    assert graphs == [False] * 3
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("lengths", "max_steps", "message"),
    [([2, 0], 5, "prompt 1 has 0 of 2 steps"), ([3, 1], 5, "prompt 0 has 3 of 2"), ([1, 1], 0, "max_steps = 0")],
)
def test_what_cannot_be_is_said(make_toy: Make, lengths: list[int], max_steps: int, message: str) -> None:
    toy, prompt = make_toy(V), torch.zeros(2, 2, dtype=torch.long)
    with pytest.raises(UsageError, match=message):
        next(rollout(toy, toy.start(2), prompt, torch.tensor(lengths), greedy, (), max_steps))
