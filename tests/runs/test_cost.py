"""What models cost: counted against torch's own counter, and against what is known on paper."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from unrolled.core import discover
from unrolled.core.causal import Causal, serial_depth, tick_multiply_adds
from unrolled.core.compose import AsEncoder
from unrolled.core.spec import Sizes
from unrolled.layers.attention.attention import CausalSelfAttention, MultiHead
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.recurrent import Bidirectional, Recurrent
from unrolled.runs import cost


def counted(layer: Causal, x: torch.Tensor, position: int) -> int:
    """By torch, which sees plain products only: gradients on, no fast path."""
    _, state = layer(x[:, :position])
    with FlopCounterMode(display=False) as counter:
        layer(x[:, position : position + 1], state)
    return counter.get_total_flops() // 2


@pytest.mark.parametrize("name", ["memoryless", "elman", "linear-rnn", "tcn", "wavenet", "ar"])
def test_a_tick_costs_what_torch_counts(name):
    module = discover.models.load(name)
    body = module.make(module.Config(**({"scan": "loop"} if "scan" in module.Config.model_fields else {})), Sizes(6, 5))
    x = torch.randn(1, 40, 6)
    assert tick_multiply_adds(body, 30) == counted(body, x, 30)


def test_gates_are_products_too():
    assert tick_multiply_adds(Recurrent(GRU(6, 4)), 3) == 3 * 4 * (6 + 4)


@pytest.mark.parametrize(("window", "position", "seen"), [(None, 9, 10), (4, 9, 4), (4, 2, 3)])
def test_attention_reads_what_is_in_sight(window, position, seen):
    layer = CausalSelfAttention(MultiHead(8, n_heads=2), window=window)
    assert tick_multiply_adds(layer, position) == 4 * 8 * 8 + seen * 2 * 8


def test_full_attention_grows_by_the_position():
    module = discover.models.load("transformer")
    growing = module.make(module.Config(window=0, n_layers=3, d_model=8, n_heads=2), Sizes(8, 8))
    assert cost.tick_cost(growing)[1] == 3 * 2 * 8
    assert cost.tick_cost(module.make(module.Config(), Sizes(8, 8)))[1] == 0


@pytest.mark.parametrize(
    ("name", "settings", "depth"),
    [
        ("elman", {"n_layers": 2}, 200),
        ("memoryless", {"n_layers": 2}, 2),
        ("tcn", {"widths": [4, 4]}, 4),
        ("tcn", {"widths": [4, 4], "form": "plain"}, 2),
        ("wavenet", {"n_dilations": 3, "n_stacks": 2}, 7),
        ("transformer", {"n_layers": 3, "norm": "post"}, 7),
        ("transformer-encoder", {"n_layers": 3, "norm": "post"}, 7),
        ("ngram", {}, 1),
        ("bigru", {"n_layers": 2}, 200),
        ("dan", {"n_layers": 3}, 3),
        ("bow", {"n_layers": 2}, 2),
    ],
)
def test_steps_that_must_wait(name, settings, depth):
    module = discover.models.load(name)
    assert serial_depth(module.make(module.Config(**settings), Sizes(8, 8)), 100) == depth


def test_both_directions_run_at_once_and_deer_in_logarithmic_depth():
    assert serial_depth(Bidirectional(Recurrent(GRU(2, 2)), Recurrent(GRU(2, 2))), 50) == 50
    assert serial_depth(Recurrent(GRU(2, 2), deer), 1000) == 10


def test_facts_of_every_kind():
    layer = Recurrent(GRU(6, 4))
    causal = cost.facts(layer, 10)
    assert causal == cost.facts(AsEncoder(layer), 10)
    assert (causal["serial_depth"], causal["tick_multiply_adds"]) == (10, 3 * 4 * (6 + 4))
    for name, depth in (("bilstm", 10), ("dan", 2), ("tfidf", 1)):
        module = discover.models.load(name)
        found = cost.facts(module.make(module.Config(), Sizes(8, 8)), 10)
        assert found == {"receptive_field": None, "state_grows": None, "serial_depth": depth}


def test_times_and_sizes_are_measured():
    layer = Recurrent(GRU(3, 8))
    x = torch.randn(1, 7, 3)
    assert cost.tick_microseconds(layer, x) > 0
    assert layer.training
    assert cost.state_bytes(layer, x) == 8 * 4
    cost.forget_peak()
    peak = cost.peak_megabytes()
    assert peak is None or peak > 10
