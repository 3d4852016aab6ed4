"""Words and characters together: the n-grams that tokens spell, against plain Python and scikit-learn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

import unrolled
from unrolled.core.spec import Sizes
from unrolled.layers.counting.spelling import ALONE, PAIRED, OfSpelling
from unrolled.models.linear_text import Config, make

TEXTS = ["The cat, the hat", "a", "Über 9 lives; CATS", "the-cat the", "", "..."]


def ids(texts: list[str], table: list[bytes]) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts cut greedily into tokens of a table."""
    rows = []
    for text in texts:
        data, row = text.encode(), []
        while data:
            token = max((t for t in table if t and data.startswith(t)), key=len)
            row.append(table.index(token))
            data = data[len(token) :]
        rows.append(row)
    x = torch.zeros(len(rows), max(map(len, rows)) + 1, dtype=torch.long)
    mask = torch.zeros_like(x, dtype=torch.bool)
    for i, row in enumerate(rows):
        x[i, : len(row)], mask[i, : len(row)] = torch.tensor(row, dtype=torch.long), True
    return x, mask


LETTERS = [b""] * 4 + [bytes([i]) for i in range(256)]
PIECES = [*LETTERS, b"The", b" cat", b" the", b"cat,"]


@pytest.mark.parametrize("table", [LETTERS, PIECES])
def test_the_ngrams_of_bytes_and_words(table):
    layer = OfSpelling(len(table), 2, None, 100)
    layer.spell(table)
    keys, rows = layer.grams(*ids(TEXTS, table))
    for i, text in enumerate(TEXTS):
        own = keys[rows == i]
        data = text.encode()
        ends = [-2, *data, -1]  # <start> and <stop>
        runs = Counter(tuple(ends[a : a + n]) for n in range(2, 6) for a in range(len(ends) - n + 1))
        words = "".join(c if c.isalnum() else " " for c in text).replace("Ü", "ü").split()
        words = [word.lower() for word in words]
        told = Counter(own.tolist())
        assert sorted(told[k] for k in told if k < ALONE) == sorted(runs.values())
        assert sorted(told[k] for k in told if ALONE <= k < PAIRED) == sorted(Counter(words).values())
        assert sorted(told[k] for k in told if k >= PAIRED) == sorted(Counter(zip(words, words[1:])).values())


def test_tokens_do_not_matter():
    found = []
    for table in (LETTERS, PIECES):
        layer = OfSpelling(len(table), 2, None, 100)
        layer.spell(table)
        keys, rows = layer.grams(*ids(TEXTS, table))
        found.append(sorted(zip(rows.tolist(), keys.tolist())))
    assert found[0] == found[1]


def test_weights_of_words_are_those_of_scikit_learn():
    """Of runs of one byte and of words; each set is normalised by itself."""
    texts = ["red red apple", "green apple", "a red pear", "pear pear pear apple"]
    model = make(Config(longest=2, regularisation=1.0), Sizes(len(LETTERS), 2))
    model.spell(LETTERS)
    x, mask = ids(texts, LETTERS)
    seen = {}
    y = torch.tensor([0, 0, 1, 1])
    model.solve([(x, mask, y)])
    assert not model.apart  # three words, on average
    model.apart.fill_(True)
    used, z = model.counts(x, mask, model.bias)
    z = model._normalised(z * model.idf[used], model.keys[used])
    second = model.second(model.keys[used].numpy())
    sklearn = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+").fit_transform(texts).toarray()
    for i in range(len(texts)):
        seen[i] = sorted(v for v in z[i, second].tolist() if v)
        np.testing.assert_allclose(seen[i], sorted(v for v in sklearn[i] if v), rtol=1e-5)
        assert float(z[i, ~second].norm()) == pytest.approx(1.0)


@pytest.mark.parametrize(("texts", "apart"), [(["Ana", "Ivan"], False), (["one two three four", "five"] * 2, False),
                                              (["one two three four", "five six seven eight"], True)])  # fmt: skip
def test_words_count_as_much_as_bytes_where_texts_have_several(texts, apart):
    model = make(Config(regularisation=1.0), Sizes(len(LETTERS), 2))
    model.spell(LETTERS)
    model.solve([(*ids(texts, LETTERS), torch.arange(len(texts)) % 2)])
    assert bool(model.apart) == apart


def test_a_run_is_saved_and_predicts_the_same(tmp_path):
    rows = [{"text": f"{w} number {i}", "label": "ab"[w[0] == "g"]} for i in range(30) for w in ("good", "poor")]
    run = unrolled.train(rows, "classify", "linear-text", out=tmp_path / "run", threads=1, split="60/20/20")
    assert run.result["test"]["error"] == 0
    again = unrolled.load(tmp_path / "run")
    assert again.predict(["good goods"])[0]["prediction"] == "b"
    assert again.predict(["goods", "poorly"]) == run.predict(["goods", "poorly"])
