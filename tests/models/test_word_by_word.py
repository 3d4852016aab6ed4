"""The solved baselines of translation: a dictionary that can be learned is learned, and copying is copying."""

from __future__ import annotations

import itertools

import pytest
import torch

from unrolled.core.causal import begin
from unrolled.data.codec import START, STOP, UNKNOWN
from unrolled.data.config import DataConfig
from unrolled.decode.choose import greedy
from unrolled.decode.rollout import collect, rollout
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
    model = module.make(module.Config(), ports.n_tokens, ports.d_out, ports.source.n_tokens)
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
    task.prepare({"train": pairs, "valid": pairs[:1]})
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
