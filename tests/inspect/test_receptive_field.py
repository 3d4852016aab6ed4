"""Receptive fields measured against claims that are right, too large and wrong."""

from __future__ import annotations

import pytest
import torch

from unrolled.core.causal import Causal
from unrolled.inspect.receptive_field import effective, verdict
from unrolled.layers.conv.conv import CausalConv


@pytest.mark.parametrize(
    ("model", "settings", "field"),
    [
        ("tcn", {"widths": [6, 6, 6], "kernel": 3}, 1 + 2 * 2 * (1 + 2 + 4)),
        ("tcn", {"widths": [6, 6], "kernel": 2, "model.form": "plain"}, 1 + 1 + 2),
        ("wavenet", {"d_model": 4, "n_dilations": 4}, 17),
        ("transformer", {"d_model": 8, "n_heads": 2, "n_layers": 2, "window": 5}, 9),
        ("ar", {"order": 7}, 7),
        ("ngram", {"order": 4}, 3),
        ("memoryless", {"d_state": 4}, 1),
    ],
)
def test_claims_of_models_are_what_is_measured(small, model, settings, field):
    numbers = small(model, settings).inspect("receptive-field", "a state is").numbers
    assert (numbers["claimed"], numbers["measured"], numbers["verdict"]) == (field, field, "agrees")
    assert numbers["by"] == ("change" if model == "ngram" else "gradient")
    assert 1 <= numbers["effective"] <= field


def test_the_whole_past(small):
    answer = small("gru", {"d_state": 8}).inspect("receptive-field", "a state is", {"length": 40})
    assert (answer.numbers["claimed"], answer.numbers["measured"], answer.numbers["verdict"]) == (None, 40, "agrees")
    by_lag = answer.arrays["by_lag"]
    assert float(by_lag[0]) > float(by_lag[30]) > 0


def test_wrong_claims_are_told(planted, around):
    convolution = CausalConv(4, 4, kernel=3, dilation=2)  # reaches 5
    for claim, word in ((4, "bug"), (9, "could be larger"), (5, "exactly 5 reach"), (None, "are lost")):
        convolution.receptive_field = claim
        answer = planted(around(convolution, 4, 4)).inspect("receptive-field", "a state is")
        assert answer.numbers["measured"] == 5
        assert word in answer.reading


def test_an_input_that_is_too_short_is_told(small):
    run = small("wavenet", {"d_model": 4, "n_dilations": 4})
    numbers = run.inspect("receptive-field", "a state is", {"length": 10}).numbers
    assert (numbers["measured"], numbers["verdict"]) == (10, "cut")


def test_no_input_reaches(planted, around):
    class Deaf(Causal):
        def forward(self, x, state=None):
            return x * 0, ()

    answer = planted(around(Deaf(), 3, 3)).inspect("receptive-field", "value")
    assert (answer.numbers["measured"], answer.numbers["effective"]) == (0, 0)


def test_a_model_with_learned_positions_is_not_asked_too_long(small):
    settings = {"d_model": 8, "n_heads": 2, "n_layers": 1, "window": 0, "position": "learned", "n_positions": 50}
    assert small("transformer", settings).inspect("receptive-field", "a state is").numbers["positions"] == 50


def test_frames(small):
    numbers = small("tcn", {"widths": [6, 6], "kernel": 2}, task="next-frame").inspect("receptive-field").numbers
    assert (numbers["claimed"], numbers["measured"]) == (7, 7)


def test_words():
    assert [verdict(5, m, 20) for m in (4, 5, 6)] == ["smaller", "agrees", "larger"]
    assert (verdict(None, 20, 20), verdict(None, 19, 20), verdict(30, 20, 20)) == ("agrees", "smaller", "cut")
    assert effective(torch.ones(100), 0.99) == 99
    assert effective(torch.zeros(3), 0.9) == 0
