"""The dependence matrix: exact for linear layers, triangular for causal ones, full for those that look both ways."""

from __future__ import annotations

import pytest
import torch

from unrolled.core.causal import Causal
from unrolled.core.spec import Sizes
from unrolled.inspect.tools.dependence import by_change, by_gradient, norm, orthonormal
from unrolled.inspect.tools.opened import Opened, precise
from unrolled.layers.conv.conv import CausalConv
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Bidirectional, Recurrent
from unrolled.models import transformer_encoder

TEXT = "a state is a value"


class BothWays(Causal):
    """An encoder that passes itself off as causal."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x, state=None):
        return self.encoder(x, torch.ones(x.shape[:2], dtype=torch.bool))[0], ()


MODELS = {
    "gru": {"d_state": 8}, "elman": {"d_state": 8}, "tcn": {"widths": [6, 6]},
    "wavenet": {"d_model": 4, "n_dilations": 3},
    "transformer": {"d_model": 16, "n_heads": 2, "n_layers": 2}, "ngram": {"order": 3}, "jordan": {"d_state": 8},
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_models_are_causal(small, model):
    answer = small(model, MODELS[model]).inspect("causality", TEXT)
    assert answer.numbers["causal"]
    strength = answer.arrays["strength"]
    assert not strength.triu(1).any()
    assert bool((strength.diagonal() > 0).all())
    assert answer.numbers["by"] == ("change" if model == "ngram" else "gradient")
    assert answer.pictures[0].scale == "log"
    assert answer.pictures[0].rows[:3] == ["<start>", "a", "␣"]


def test_an_encoder_is_not(planted, around):
    encoder = transformer_encoder.make(
        transformer_encoder.Config(d_model=8, n_heads=2, n_layers=1, d_ff=8), Sizes(6, 8)
    )
    answer = planted(around(BothWays(encoder), 6, 8)).inspect("causality", TEXT)
    assert not answer.numbers["causal"]
    assert answer.numbers["reached_share"] == 1.0
    assert "not lower triangular" in answer.reading


def test_both_directions_and_one_of_them(planted, around):
    torch.manual_seed(0)
    ahead = Recurrent(GRU(4, 3))
    assert planted(around(ahead, 4, 3)).inspect("causality", TEXT).numbers["causal"]
    both = BothWays(Bidirectional(ahead, Recurrent(GRU(4, 3))))
    assert not planted(around(both, 4, 6)).inspect("causality", TEXT).numbers["causal"]


class Peek(Causal):
    """y_t = x_t + x_{t+1}, for t = 3 only."""

    def forward(self, x, state=None):
        y = x.clone()
        y[:, 3:4] = y[:, 3:4] + x[:, 4:5]  # nothing where the input ends before
        return y, ()


class Hidden(Peek):
    """The same, with no gradient coming through."""

    def forward(self, x, state=None):
        return super().forward(x.detach(), state)


@pytest.mark.parametrize(("layer", "by"), [(Peek, "gradient"), (Hidden, "change")])
def test_a_single_leak_is_found_and_named(planted, around, layer, by):
    answer = planted(around(layer(), 4, 4)).inspect("causality", TEXT, {"length": 8})
    assert torch.nonzero(answer.arrays["strength"].triu(1)).tolist() == [[3, 4]]
    assert "output 3 depends on input 4" in answer.reading
    assert answer.numbers["by"] == by


def test_a_linear_layer_exactly():
    torch.manual_seed(0)
    layer = CausalConv(3, 4, kernel=2, dilation=2).double()
    vectors = torch.randn(1, 6, 3, dtype=torch.float64, requires_grad=True)
    strength = by_gradient(Opened(vectors, layer, None), range(6), directions=4)
    old, new = layer.weight[:, 0].norm(), layer.weight[:, 1].norm()
    for t in range(6):
        for s in range(6):
            true = new if s == t else old if s == t - 2 else 0.0
            torch.testing.assert_close(
                strength[t, s], torch.as_tensor(true, dtype=torch.float64).detach(), rtol=1e-12, atol=0
            )


def test_some_directions_estimate_the_norm():
    torch.manual_seed(0)
    J = torch.randn(40, 7, dtype=torch.float64)
    squares = [float((orthonormal(8, 40, seed) @ J).square().sum()) for seed in range(300)]
    assert sum(squares) / 300 == pytest.approx(float(J.square().sum()), rel=0.03)
    V = orthonormal(40, 40, 0)
    torch.testing.assert_close(V @ V.T, torch.eye(40, dtype=torch.float64))


def test_norms_of_the_very_small_and_very_large():
    x = torch.tensor([[3e-200, 4e-200], [3e200, 4e200], [0, 0]], dtype=torch.float64)
    torch.testing.assert_close(norm(x, 1), torch.tensor([5e-200, 5e200, 0], dtype=torch.float64), rtol=1e-12, atol=0)


def test_changes_and_gradients_see_the_same_places(small):
    """By changing inputs a linear model is found to reach exactly as far as by gradient."""
    run = small("ar", {"order": 4})
    strength = run.inspect("causality", TEXT).arrays["strength"]
    batch, _ = run.task.example(TEXT)
    changed = by_change(precise(run.model), batch, range(len(strength)))
    assert torch.equal(changed > 0, strength > 0)


def test_length_is_limited(small):
    answer = small("gru", MODELS["gru"]).inspect("causality", "a" * 100)
    assert answer.arrays["strength"].shape == (32, 32)
    assert "first 32" in answer.reading
