"""Saliency: completeness, attributions that are known beforehand, and the same through occlusion."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.causal import Causal
from unrolled.core.tokens import UNKNOWN
from unrolled.inspect.saliency import integrated_gradients


def test_a_product_is_shared_and_a_sum_is_given_back():
    v = torch.tensor([[[2.0], [3.0], [5.0]]], dtype=torch.float64)
    found = integrated_gradients(lambda v: (v[:, 0] * v[:, 1] + 4 * v[:, 2])[:, 0], v)
    torch.testing.assert_close(found.attribution, torch.tensor([3.0, 3.0, 20.0]).double())
    assert found.difference == 26


def test_sharp_functions_are_followed():
    """Nearly everything happens close to the baseline, as behind a normalisation."""
    v = torch.tensor([[[2.0], [3.0]]], dtype=torch.float64)
    found = integrated_gradients(lambda v: torch.tanh(500 * v.sum((1, 2))), v, tolerance=1e-3)
    assert found.error < 2e-3
    torch.testing.assert_close(found.attribution, torch.tensor([0.4, 0.6]).double(), atol=2e-3, rtol=0)


def test_evaluations_are_limited_and_the_error_is_told():
    torch.manual_seed(0)
    v = torch.ones(1, 1, 1, dtype=torch.float64)
    found = integrated_gradients(lambda v: (v[:, 0, 0] > 0.3).double() + 0 * v.sum((1, 2)), v, evaluations=64)
    assert found.evaluations <= 64
    assert found.error == pytest.approx(1)  # a step has no slope anywhere


MODELS = {
    "gru": {"d_state": 12}, "lstm": {"d_state": 12}, "tcn": {"widths": [8, 8]},
    "wavenet": {"d_model": 4, "n_dilations": 3},
    "transformer": {"d_model": 16, "n_heads": 2, "n_layers": 2},
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_completeness_of_every_family(small, model):
    answer = small(model, MODELS[model]).inspect("saliency", "a state is a value")
    total = float(answer.arrays["integrated_gradients"].sum())
    difference = answer.numbers["log_p"] - answer.numbers["log_p_baseline"]
    assert total == pytest.approx(difference, rel=0.01)
    assert answer.numbers["completeness_error"] < 0.01
    assert answer.numbers["baseline"] == "zero vectors"
    assert "zero vectors" in answer.reading


def test_f_is_the_log_probability(small):
    run = small("gru", MODELS["gru"])
    likely = run.predict(["a st"])[0]
    numbers = run.inspect("saliency", f"a st{likely['next']}", {"at": 4}).numbers
    assert numbers["target"] == likely["next"]
    assert numbers["log_p"] == pytest.approx(torch.tensor(likely["p"]).log().item(), abs=1e-5)


def test_a_memoryless_model_looks_at_one_position(small):
    arrays = small("memoryless", {"d_state": 4}).inspect("saliency", "a state", {"at": 4}).arrays
    for attribution in arrays.values():
        assert torch.nonzero(attribution).flatten().tolist() == [4]


class Delayed(Causal):
    """y_t = x_{t-2}."""

    receptive_field = 3

    def forward(self, x, state=None):
        line = torch.cat([x.new_zeros(len(x), 2, x.shape[2]) if state is None else state, x], dim=1)
        return line[:, :-2], line[:, -2:]


def test_a_planted_delay_is_found(planted, around):
    arrays = planted(around(Delayed(), 5, 5)).inspect("saliency", "a state is a value", {"at": 9}).arrays
    assert list(arrays) == ["integrated_gradients", "occlusion"]
    for attribution in arrays.values():
        assert torch.nonzero(attribution).flatten().tolist() == [7]


def test_occlusion_by_hand(small):
    run = small("ngram")
    answer = run.inspect("saliency", "a state", {"at": 5})
    assert list(answer.arrays) == ["occlusion"]  # nothing to differentiate
    batch, _ = run.task.example("a state")
    model = run.model.double()

    def log_p(x):
        return model(x)[0][0, 5].log_softmax(-1)[batch.y[0, 5]]

    for t in range(8):
        x = batch.x.clone()
        x[0, t] = UNKNOWN
        torch.testing.assert_close(answer.arrays["occlusion"][t], log_p(batch.x) - log_p(x), atol=1e-9, rtol=0)
    assert answer.arrays["occlusion"].abs().max() > 0.1


def test_vectors_are_explained_as_they_came_in(small):
    """With zero as what replaces a frame, a frame that is zero already has no share."""
    answer = small("gru", MODELS["gru"], task="next-frame").inspect("saliency", [[0], [], [2, 3], [1]])
    integrated, occlusion = answer.arrays.values()
    assert integrated[[0, 2]].tolist() == [0, 0]  # before the first frame stands an empty one
    assert occlusion[[0, 2]].tolist() == [0, 0]
    assert bool((integrated[[1, 3]] != 0).all())
    assert answer.numbers["completeness_error"] < 0.01
    assert [picture.kind for picture in answer.pictures] == ["plot", "plot"]


def test_without_gradients_occlusion_still_answers(planted, around):
    class Cut(Causal):
        def forward(self, x, state=None):
            return x.detach(), ()

    answer = planted(around(Cut(), 3, 3)).inspect("saliency", "value")
    assert list(answer.arrays) == ["occlusion"]
    assert [picture.kind for picture in answer.pictures] == ["tokens", "bars"]


def test_a_zero_map_has_pictures_too(planted, around):
    model = around(nn.Identity(), 3, 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    answer = planted(model).inspect("saliency", "value")
    assert not any(bool(a.any()) for a in answer.arrays.values())
