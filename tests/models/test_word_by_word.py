"""The solved baselines of translation: a dictionary that can be learned is learned, and copying is copying."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from unrolled.core.causal import begin
from unrolled.core.spec import Sizes
from unrolled.core.tokens import START, STOP, UNKNOWN
from unrolled.data.config import DataConfig
from unrolled.decode.choose import greedy
from unrolled.decode.rollout import collect, rollout
from unrolled.layers.counting import lexicon
from unrolled.layers.counting.retrieval import Beside
from unrolled.models import copy_source, dictionary
from unrolled.tasks import translate

WORDS = {"le": "the", "un": "a", "chat": "cat", "chien": "dog", "dort": "sleeps", "mange": "eats"}


@pytest.fixture
def task():
    """Every sentence of three words, the last one's order too is that of the source."""
    kinds = [["le", "un"], ["chat", "chien"], ["dort", "mange"]]
    pairs = [(" ".join(s), " ".join(WORDS[w] for w in s)) for s in itertools.product(*kinds)] * 3
    task = translate.Task(translate.Config(), DataConfig(tokens="word", split="60/20/20"))
    task.prepare({"train": pairs, "valid": pairs[:2], "test": pairs[:4]})
    return task


def written(task, model, text):
    source = torch.from_numpy(task.encode_source(text, "")[None]).long()
    decoder, state = begin(model, source, None)
    (found,) = collect(rollout(decoder, state, torch.tensor([[START]]), None, greedy, STOP, 9))
    return task.text_of(found.tokens[:-1])


def solved(task, module):
    ports = task.ports()
    model = module.make(module.Config(), Sizes(ports.n_tokens, ports.d_out, ports.source.n_tokens))
    task.solve(model.decoder)
    return model


def test_a_dictionary_is_learned_from_sentences(task):
    model = solved(task, dictionary)
    assert written(task, model, "un chien dort") == "a dog sleeps"
    assert written(task, model, "le chat mange") == "the cat eats"
    assert float(model.decoder.e) < 0.05
    assert task.evaluate(model, "test")["exact_match"] == 1


def test_words_that_always_stand_together_are_told_apart():
    """`chat` is seen with `the` as often as with `cat`; but `the` is what `le` brings about."""
    pairs = [(f"le {word}", f"the {WORDS[word]}") for word in ("chat", "chien", "dort", "mange")] * 3
    task = translate.Task(translate.Config(), DataConfig(tokens="word"))
    task.prepare({"train": pairs, "valid": pairs[:1], "test": pairs[:1]})
    decoder = solved(task, dictionary).decoder
    for word in ("chat", "chien", "dort", "mange"):
        token = int(task.encode_source(f"le {word}", "")[1])
        assert task.codec.decode([int(decoder.best[token, 0])]) == f" {WORDS[word]}"
        assert decoder.p[token, 0] > 0.8


def test_a_word_that_was_never_seen_is_unknown_and_no_end(task):
    model = solved(task, dictionary)
    source = torch.tensor([[0, 0]])  # <empty> is in no source
    y, _ = model.decoder(torch.zeros(1, 3, dtype=torch.long), model.condition(source))
    assert y.argmax(-1).tolist() == [[UNKNOWN, UNKNOWN, STOP]]


def test_probabilities_sum_to_one(task):
    for module in (dictionary, copy_source):
        model = solved(task, module)
        y, _ = model.decoder(torch.zeros(2, 5, dtype=torch.long), model.condition(torch.tensor([[4, 5, 6], [7, 5, 4]])))
        assert torch.allclose(y.exp().sum(-1), torch.ones(2, 5), atol=1e-5)


def test_copying_writes_what_is_spelt_alike():
    task = translate.Task(translate.Config(), DataConfig())
    pairs = [("abcd", "abcd"), ("dcba", "dcbx"), ("bad", "bad"), ("cab", "cab")] * 3
    task.prepare({"train": pairs, "valid": pairs[:1], "test": pairs[:3]})
    model = solved(task, copy_source)
    assert written(task, model, "dab") == "dab"
    figures = task.evaluate(model, "test")
    assert figures["exact_match"] == pytest.approx(2 / 3)
    assert 0 < float(model.decoder.e) < 0.2


def test_the_end_of_a_padded_source_is_where_it_ends(task):
    model = solved(task, dictionary)
    source = torch.tensor([[4, 5, 6], [4, 99 % 6, 0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    y, _ = model.decoder(torch.zeros(2, 3, dtype=torch.long), model.condition(source, mask))
    assert y[1, 1].argmax() == STOP
    assert y[0, 1].argmax() != STOP


# ---- by hand: two pairs, `a -> x` and `a b -> x y`, with a = x = 4, b = y = 5 and six tokens in all


def counted(**settings):
    """A dictionary of these pairs."""
    offsets = [np.array(each) for each in ([0, 1, 3], [0, 1, 3])]
    pairs = Beside(np.array([4, 4, 5]), offsets[0], np.array([4, 4, 5], np.int32), offsets[1], np.arange(6))
    model = dictionary.make(dictionary.Config(**settings), Sizes(6, 6, 6))
    model.decoder.solve(pairs)
    return model


def test_expectation_maximisation_by_hand():
    """First round: n(x, a) = 1 + 1/2, n(y, a) = n(x, b) = n(y, b) = 1/2, so that d(x | a) = 3/4 and d(x | b) = 1/2.
    Second: n(x, a) = 1 + 3/5, n(y, a) = 1/3, n(x, b) = 2/5, n(y, b) = 2/3."""
    once, twice = counted(rounds=1).decoder, counted(rounds=2).decoder
    assert once.best[4, :2].tolist() == [4, 5] and once.p[4, :2].tolist() == pytest.approx([3 / 4, 1 / 4])
    assert once.p[5, :2].tolist() == pytest.approx([1 / 2, 1 / 2])
    assert twice.best[4, :2].tolist() == [4, 5] and twice.p[4, :2].tolist() == pytest.approx([24 / 29, 5 / 29])
    assert twice.best[5, :2].tolist() == [5, 4] and twice.p[5, :2].tolist() == pytest.approx([5 / 8, 3 / 8])
    assert counted(rounds=2, kept=1).decoder.p[5].tolist() == [1.0]


def test_every_target_is_counted_once_more_than_it_is_seen():
    """x is a target twice, y once, <stop> twice, three tokens never: (1 + count) / 11."""
    assert counted().decoder.u.tolist() == pytest.approx([1 / 11, 1 / 11, 1 / 11, 3 / 11, 3 / 11, 2 / 11])


def test_the_share_of_targets_that_the_table_does_not_explain(monkeypatch):
    """From e = 1/2, with d(x | a) = 24/29 twice, d(y | b) = 5/8 and d(<stop> | end) = 1 twice:
    e <- (1 + sum e u / (e u + (1 - e) d)) / (2 + 5), the first round by hand and the others as they follow."""
    monkeypatch.setattr(lexicon, "ROUNDS", 1)
    assert float(counted(rounds=2).decoder.e) == pytest.approx((1 + 2 * 29 / 117 + 16 / 71 + 2 * 3 / 14) / 7)
    monkeypatch.undo()
    e, terms = 0.5, [(3 / 11, 24 / 29, 2), (2 / 11, 5 / 8, 1), (3 / 11, 1.0, 2)]
    for _ in range(10):
        e = (1 + sum(n * e * u / (e * u + (1 - e) * d) for u, d, n in terms)) / 7
    model = counted(rounds=2)
    assert float(model.decoder.e) == pytest.approx(e, rel=1e-5)
    y, _ = model.decoder(torch.zeros(1, 3, dtype=torch.long), model.condition(torch.tensor([[4, 5]])))
    wanted = [(1 - e) * 24 / 29 + e * 3 / 11, (1 - e) * 3 / 8 + e * 3 / 11, e * 3 / 11]
    assert y[0, :, 4].exp().tolist() == pytest.approx(wanted, rel=1e-5)
    assert float(y[0, 2, STOP].exp()) == pytest.approx((1 - e) + e * 3 / 11, rel=1e-5)
