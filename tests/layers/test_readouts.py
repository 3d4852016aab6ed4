"""Readouts against plain loops over the real positions, against torch.nn, and the law of padding."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.trace import trace
from unrolled.layers.attention.readout import Readout, readout_named
from unrolled.layers.readouts.attention import AttentionPooling
from unrolled.layers.readouts.max import Max
from unrolled.layers.readouts.query import LearnedQuery

D = 4
LENGTHS = [5, 2, 1, 0]


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    y = torch.randn(4, 5, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return y, torch.arange(5) < torch.tensor(LENGTHS)[:, None]


def made(name: str) -> Readout:
    torch.manual_seed(1)
    return readout_named(name, D).double()


PLAIN = {
    "last": lambda row: row[-1],
    "first-last": lambda row: torch.cat([row[0], row[-1]]),
    "mean": lambda row: sum(row) / len(row),
    "max": lambda row: torch.stack([max(column) for column in row.T]),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_readouts_are_what_a_loop_says(name: str, batch: tuple[Tensor, Tensor]) -> None:
    y, mask = batch
    found = made(name)(y, mask)
    for b, n in enumerate(LENGTHS):
        wanted = PLAIN[name](y[b, :n]) if n else torch.zeros(found.shape[1], dtype=y.dtype)
        torch.testing.assert_close(found[b], wanted)


def test_attention_is_a_softmax_over_the_real_positions(batch: tuple[Tensor, Tensor]) -> None:
    y, mask = batch
    readout = made("attention")
    assert isinstance(readout, AttentionPooling)
    with trace() as seen:
        found = readout(y, mask)
    (weights,) = seen["attention"]
    assert weights.shape == (4, 1, 1, 5)
    for b, n in enumerate(LENGTHS):
        scores = [
            float((readout.v.weight[0] @ torch.tanh(readout.W.weight @ v + readout.W.bias)).detach()) for v in y[b, :n]
        ]
        alpha = [math.exp(s) / sum(map(math.exp, scores)) for s in scores]
        assert weights[b, 0, 0].tolist() == pytest.approx(alpha + [0.0] * (5 - n))
        wanted = sum((a * v for a, v in zip(alpha, y[b, :n], strict=True)), torch.zeros(D, dtype=y.dtype))
        torch.testing.assert_close(found[b], wanted)


def test_learned_queries_are_torch_multi_head_attention(batch: tuple[Tensor, Tensor]) -> None:
    y, mask = (part[:3] for part in batch)  # torch gives NaN where nothing is real
    torch.manual_seed(2)
    readout = LearnedQuery(D, n_queries=3, n_heads=2).double()
    theirs = nn.MultiheadAttention(D, 2, bias=False, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([readout.heads.W_q.weight, readout.heads.W_kv.weight]))
        theirs.out_proj.weight.copy_(readout.heads.W_c.weight)
    wanted, weights = theirs(
        readout.queries.expand(3, -1, -1), y, y, key_padding_mask=~mask, average_attn_weights=False
    )
    with trace() as seen:
        found = readout(y, mask)
    torch.testing.assert_close(found, wanted.flatten(1))
    torch.testing.assert_close(seen["attention"][0], weights)
    assert readout.d_out == found.shape[1] == 3 * D


@pytest.mark.parametrize("name", discover.readouts.names())
@pytest.mark.parametrize("junk", [math.nan, math.inf, -math.inf, 1e30])
def test_padding_never_counts(name: str, junk: float, batch: tuple[Tensor, Tensor]) -> None:
    y, mask = batch
    results = []
    for entry in (y.clone(), y.masked_fill(~mask.unsqueeze(-1), junk)):
        readout = made(name)
        entry.requires_grad_()
        found = readout(entry, mask)
        (found * torch.arange(1.0, 1 + found.numel()).view_as(found)).sum().backward()
        results.append([found, entry.grad, *(p.grad for p in readout.parameters())])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)
        assert clean.isfinite().all()
    assert (results[0][1][~mask] == 0).all()
    assert (results[0][1][mask.any(1)] != 0).any()


@pytest.mark.parametrize("name", discover.readouts.names())
def test_less_padding_gives_the_same_and_nothing_gives_zeros(name: str, batch: tuple[Tensor, Tensor]) -> None:
    y, mask = batch
    readout = made(name)
    found = readout(y, mask)
    assert found.shape == (4, readout.d_out)
    for b, n in enumerate(LENGTHS):
        torch.testing.assert_close(readout(y[b : b + 1, :n], mask[b : b + 1, :n])[0], found[b])
    assert (found[3] == 0).all()
    assert readout(y[:, :0], mask[:, :0]).tolist() == torch.zeros(4, readout.d_out).tolist()
    assert readout(y[:0], mask[:0]).shape == (0, readout.d_out)


@pytest.mark.parametrize("name", discover.readouts.names())
def test_gradients(name: str, batch: tuple[Tensor, Tensor]) -> None:
    y, mask = batch
    readout = made(name)
    assert torch.autograd.gradcheck(lambda entry: readout(entry, mask), y.clone().requires_grad_())


@pytest.mark.parametrize("name", ["last", "first-last", "mean", "max", "attention", "query"])
def test_real_positions_may_stand_anywhere(name: str, batch: tuple[Tensor, Tensor]) -> None:
    """Dropped words leave holes."""
    y, _ = batch
    mask = torch.tensor([[False, True, False, True, True]])
    readout = made(name)
    torch.testing.assert_close(readout(y[:1], mask), readout(y[:1, [1, 3, 4]], torch.ones(1, 3, dtype=torch.bool)))


def test_negative_values_have_a_negative_maximum() -> None:
    assert Max(1)(torch.tensor([[[-3.0], [-2.0], [0.0]]]), torch.tensor([[True, True, False]])).item() == -2


def test_names() -> None:
    with pytest.raises(UsageError, match="there is no readout 'men'; did you mean 'mean'"):
        readout_named("men", 3)
    with pytest.raises(UsageError, match="width 4 is not divisible by 3 heads"):
        LearnedQuery(4, n_heads=3)
    assert readout_named("query", 6).heads.n_heads == 2
