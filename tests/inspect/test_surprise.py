"""Surprise: it adds up to the score of the text, and says what was expected."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.inspect import surprise


@pytest.mark.parametrize("model", ["gru", "ngram"])
def test_it_adds_up_to_the_score(small, model):
    run = small(model, {"d_state": 8} if model == "gru" else None)
    for text in ("a state is a value", "qqq zzz", ""):  # as trained on, and never seen
        answer, score = run.inspect("surprise", text), run.score([text])[0]
        assert answer.numbers["nats"] == pytest.approx(-score["logp"], rel=1e-6)
        assert answer.numbers["tokens"] == score["tokens"] == len(answer.arrays["nats"])
        assert answer.numbers["nats_per_token"] == pytest.approx(score["nats_per_token"], rel=1e-6)
        assert answer.numbers["bits_per_token"] == pytest.approx(answer.numbers["nats_per_token"] / math.log(2))


def test_a_stream_adds_up_too(small, tmp_path):
    run = small("gru", {"d_state": 8, "examples": "stream", "length": 8, "data.tokens": "char"})
    answer = run.inspect("surprise", "a state is a value")
    assert answer.numbers["nats"] == pytest.approx(-run.score(["a state is a value"])[0]["logp"], rel=1e-6)
    assert answer.pictures[0].tokens == list("a␣state␣is␣a␣value")  # no <stop>


def test_label_smoothing_plays_no_part(small):
    run = small("gru", {"d_state": 8, "label_smoothing": 0.3})
    assert run.inspect("surprise", "value").numbers["nats"] == pytest.approx(-run.score(["value"])[0]["logp"], rel=1e-6)


def test_expectations_of_a_bigram_table(planted, small):
    """A model that says p(b | a) = 0.7, p(c | a) = 0.2, p(e | a) = 0.1, whatever else."""
    run = small("memoryless", {"d_state": 4})
    n, ids = run.task.ports().n_tokens, {c: int(run.task.codec.encode(c)[0]) for c in "ates"}
    table = torch.full((n, n), -20.0)
    table[ids["a"], [ids["t"], ids["e"], ids["s"]]] = torch.tensor([0.7, 0.2, 0.1]).log()
    answer = planted(Serial(nn.Embedding.from_pretrained(table))).inspect("surprise", "ae", {"top": 3, "places": 1})
    tokens, worst = answer.pictures
    assert tokens.tokens == ["a", "e", "<stop>"]
    assert tokens.values[1] == pytest.approx(-math.log(0.2), abs=1e-6)
    assert tokens.hints[1].endswith("expected: t 0.70, e 0.20, s 0.10")
    assert tokens.values[0] == pytest.approx(math.log(n), abs=1e-5)  # after <start> all are alike
    assert answer.numbers["places"][0]["position"] == worst.rows[0][0] == 0
    assert len(worst.rows) == 1


def test_the_most_surprising_come_first(small):
    answer = small("ngram").inspect("surprise", "a state is a vqlue", {"places": 4})
    nats = [place["nats"] for place in answer.numbers["places"]]
    assert nats == sorted(nats, reverse=True)
    assert len(nats) == 4
    assert nats[0] == pytest.approx(float(answer.arrays["nats"].max()))
    assert answer.numbers["places"][0]["token"] == "<unknown>"


def test_only_for_tokens(small):
    run = small("gru", {"d_state": 8}, task="next-frame")
    assert "does not predict tokens" in surprise.applies(run)
    with pytest.raises(UsageError, match="'surprise' does not apply"):
        run.inspect("surprise")
