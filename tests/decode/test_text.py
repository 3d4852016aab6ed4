"""Texts from a model of tokens: what is sought, in which order, and how it becomes text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from unrolled.decode.beam import beam_search
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of
from unrolled.decode.text import Begun, Writer

Make = Callable[..., Any]
V, STOP, NEVER = 6, 3, 5


class Letters:
    """Token k is the k-th letter."""

    def decode(self, ids: Any) -> str:
        return "".join(self.name(k) for k in ids)

    def name(self, token: int) -> str:
        return "abcdef"[token]

    def stream(self) -> Letters:
        return self

    def push(self, token: int) -> str:
        return self.name(token) if token else ""  # an `a` is held back, as half a character would be

    def close(self) -> str:
        return "."


@pytest.fixture
def toy(make_toy: Make) -> Any:
    return make_toy(V, seed=1, sharpness=0.5)


WRITER = Writer(Letters(), [STOP], [NEVER])


def begun(toy: Any) -> Begun:
    return Begun(torch.tensor([[1, 2]]), toy, toy.start(1))


def test_samples_come_best_first_and_more_tries_find_better_ones(toy: Any) -> None:
    (found,) = WRITER.write(begun(toy), Decoding(n=2, best_of=9, max_tokens=6, seed=4))
    chooser = make_chooser(Decoding(seed=4), [NEVER])
    (every,) = best_of(9, toy, toy.start(1), torch.tensor([[1, 2]]), None, chooser, STOP, 6, seed=4)
    assert [text.logp for text in found] == [candidate.log_p for candidate in every[:2]]
    ((plain,),) = WRITER.write(begun(toy), Decoding(max_tokens=6, seed=4))
    assert plain.text in [Letters().decode([k for k in c.tokens if k != STOP]) for c in every]
    assert [len(WRITER.write(begun(toy), Decoding(n=3, max_tokens=6, seed=4))[0]), len(found)] == [3, 2]


@pytest.mark.parametrize(("n", "beam"), [(1, 4), (3, 4), (3, 1)])
def test_a_beam_is_as_wide_as_what_is_asked_of_it(toy: Any, n: int, beam: int) -> None:
    (found,) = WRITER.write(begun(toy), Decoding(n=n, beam=beam, length_penalty=0.7, max_tokens=5))
    (wanted,) = beam_search(toy, toy.start(1), torch.tensor([[1, 2]]), STOP, max(beam, n), 5, 0.7, n, forbidden=[NEVER])
    assert [(text.logp, text.tokens, text.finished) for text in found] == [
        (candidate.log_p, len(candidate.tokens), candidate.finished) for candidate in wanted
    ]


def test_the_stop_is_counted_and_not_written(toy: Any) -> None:
    (texts,) = WRITER.write(begun(toy), Decoding(n=40, max_tokens=4, seed=1))
    assert {text.finished for text in texts} == {True, False}
    for text in texts:
        assert len(text.text) == text.tokens - text.finished
        assert not set(text.text) & {"d", "f"}
        assert text.finished or text.tokens == 4


def test_a_stream_is_the_text_piece_by_piece(toy: Any) -> None:
    for seed in range(6):
        ((text,),) = WRITER.write(begun(toy), Decoding(max_tokens=7, seed=seed))
        pieces = list(WRITER.stream(begun(toy), Decoding(max_tokens=7, seed=seed)))
        assert pieces == [*text.text.replace("a", ""), "."]


def test_the_likeliest_tokens_with_their_probabilities(toy: Any) -> None:
    p = toy(torch.tensor([[1, 2]]), toy.start(1))[0][0, -1].softmax(-1)
    order = p.argsort(descending=True).tolist()
    for top in (2, V, 100):
        found = WRITER.likely(begun(toy), top)
        assert [line["token"] for line in found] == [Letters().name(k) for k in order[:top]]
        assert [line["p"] for line in found] == pytest.approx(p[order[:top]].tolist())
