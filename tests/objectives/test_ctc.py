"""The loss of CTC and its searches against sums over every alignment."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from unrolled.core.errors import DataError, UsageError
from unrolled.decode.ctc import best_paths, prefix_search
from unrolled.objectives.ctc import BLANK, ctc_loss, frames_needed, sequence_losses

S, V = 5, 3


def merged(path: Sequence[int]) -> list[int]:
    """B(pi): what a path over the frames says: runs of one token are merged, then blanks left out."""
    return [token for token, before in zip(path, [BLANK, *path]) if token not in (before, BLANK)]


def every_target(logits: Tensor) -> dict[tuple[int, ...], float]:
    """p(y | x) of every y that frames [S, V] can say, by adding up all V^S paths."""
    q = logits.double().softmax(-1).tolist()
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        found[tuple(merged(path))] += math.prod(q[t][k] for t, k in enumerate(path))
    assert sum(found.values()) == pytest.approx(1)
    return found


def drawn(seed: int, rows: int = 1) -> Tensor:
    return 1.5 * torch.randn(rows, S, V, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def whole(rows: int = 1) -> Tensor:
    return torch.ones(rows, S, dtype=torch.bool)


def test_paths_are_merged_before_blanks_leave() -> None:
    assert merged([0, 1, 1, 0, 1, 2, 2, 0]) == [1, 1, 2]
    assert merged([]) == merged([0, 0]) == []


@pytest.mark.parametrize("target", [(), (1,), (2, 2), (1, 2, 1), (1, 1, 2, 2), (2, 2, 2)])
def test_the_loss_is_the_sum_over_alignments(target: tuple[int, ...]) -> None:
    logits = drawn(len(target))
    wanted = every_target(logits[0]).get(target, 0.0)
    y = torch.tensor([[*target, 0, 0][:5]], dtype=torch.long)
    if wanted == 0:
        with pytest.raises(DataError, match="has 5 frames, but its target needs"):
            sequence_losses(logits, whole(), y)
        return
    assert sequence_losses(logits, whole(), y).exp().item() == pytest.approx(1 / wanted)


def test_rows_of_unlike_lengths_are_as_alone_whatever_stands_behind_them() -> None:
    logits = drawn(7, rows=3)
    lengths, targets = [5, 3, 1], torch.tensor([[1, 2, 1], [2, 0, 0], [1, 0, 0]])
    mask = torch.arange(S) < torch.tensor(lengths)[:, None]
    alone = [
        sequence_losses(logits[b : b + 1, :n], mask[b : b + 1, :n], targets[b : b + 1]) for b, n in enumerate(lengths)
    ]
    filled = logits.masked_fill(~mask.unsqueeze(-1), float("nan")).requires_grad_()
    total, count = ctc_loss(filled, mask, targets)
    assert total.item() == pytest.approx(sum(each.item() for each in alone))
    assert count.item() == 5
    total.backward()
    assert filled.grad is not None
    assert filled.grad[~mask].abs().sum() == 0
    assert filled.grad[mask].isfinite().all()
    assert filled.grad[mask].abs().sum() > 0


def test_a_source_that_is_too_short_is_told() -> None:
    assert frames_needed(torch.tensor([[1, 1, 1], [1, 2, 0]])).tolist() == [5, 2]
    mask = torch.arange(S) < torch.tensor([5, 4])[:, None]
    with pytest.raises(DataError, match="row 1 of the batch has 4 frames, but its target needs 5 for CTC"):
        ctc_loss(drawn(0, rows=2), mask, torch.tensor([[1, 2, 0], [2, 2, 2]]))


@pytest.mark.parametrize("seed", range(6))
def test_a_wide_search_finds_the_true_best(seed: int) -> None:
    logits = drawn(seed)
    every = sorted(every_target(logits[0]).items(), key=lambda pair: -pair[1])
    (found,) = prefix_search(logits, whole(), width=V**S, n_best=6)
    assert [tuple(candidate.tokens) for candidate in found] == [target for target, _ in every[:6]]
    for candidate, (_, p) in zip(found, every[:6], strict=True):
        assert math.exp(candidate.log_p) == pytest.approx(p)
        assert candidate.score == candidate.log_p
        assert candidate.finished


def test_a_narrow_search_can_beat_the_best_path() -> None:
    """Two frames of q = (-: 0.4, 1: 0.35, 2: 0.25): the best path is empty, but 1 has three paths."""
    logits = torch.tensor([0.4, 0.35, 0.25]).log().expand(1, 2, 3)
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert best_paths(logits, mask)[0].tokens == []
    assert prefix_search(logits, mask, width=2)[0][0].tokens == [1]


def test_searches_end_with_each_row() -> None:
    logits = drawn(3, rows=2)
    mask = torch.arange(S) < torch.tensor([5, 2])[:, None]
    filled = logits.masked_fill(~mask.unsqueeze(-1), float("nan"))
    for search in (lambda z, m: [[c] for c in best_paths(z, m)], lambda z, m: prefix_search(z, m, 4, n_best=3)):
        together = search(filled, mask)
        assert together == [search(logits[:1], mask[:1])[0], search(logits[1:, :2], mask[1:, :2])[0]]


def test_best_path_adds_up_the_best_tokens() -> None:
    logits = drawn(5)
    values, path = logits.log_softmax(-1)[0].max(-1)
    (found,) = best_paths(logits, whole())
    assert found.tokens == merged(path.tolist())
    assert found.log_p == pytest.approx(values.sum().item())


def test_impossible_widths() -> None:
    for width, n_best, tokens in ((2, 3, 1), (2, 0, 1), (0, 0, 1), (2, 2, 0)):
        with pytest.raises(UsageError, match=f"n_best = {n_best} with width = {width}"):
            prefix_search(drawn(0), whole(), width=width, n_best=n_best, tokens_per_frame=tokens)


def test_one_token_a_frame_is_the_best_path() -> None:
    logits = drawn(2)
    (found,) = prefix_search(logits, whole(), width=1, n_best=1, tokens_per_frame=1)
    assert found[0].tokens == best_paths(logits, whole())[0].tokens
