"""Bags of tokens against scikit-learn; words by their letters."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from unrolled.core.errors import UsageError
from unrolled.layers.counting.bag_of_words import Bag
from unrolled.layers.parts.char_words import SpeltWords

TEXTS = ["the cat sat on the mat", "the dog sat", "a cat and a dog and a cat"]
WORDS = sorted({word for text in TEXTS for word in text.split()})


def ids() -> list[np.ndarray]:
    return [np.array([1 + WORDS.index(word) for word in text.split()]) for text in TEXTS]


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    rows = [torch.from_numpy(ids()[i]) for i in range(3)]
    x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return x, x != 0


@pytest.mark.parametrize(("features", "vectorizer"), [("counts", CountVectorizer), ("tf-idf", TfidfVectorizer)])
def test_the_same_vectors_as_scikit_learn(features, vectorizer):
    bag = Bag(len(WORDS) + 1, features)
    bag.count_documents(ids())
    y, mask = bag(*batch())
    expected = vectorizer(vocabulary=WORDS, token_pattern=r"\S+").fit_transform(TEXTS).toarray()
    assert y.shape == (3, 1, len(WORDS) + 1) and mask.all()
    np.testing.assert_allclose(y[:, 0, 1:].numpy(), expected, atol=1e-6)
    assert (y[:, 0, 0] == 0).all()  # padding is no word


def test_what_else_there_is_is_refused():
    with pytest.raises(UsageError, match="expected counts or tf-idf"):
        Bag(4, "words")


def test_letters_beyond_the_end_of_a_word_change_nothing():
    torch.manual_seed(0)
    layer = SpeltWords(9, 7, 4, 6).eval()
    x = torch.tensor([[[3, 2, 5, 0, 0], [4, 1, 0, 0, 0]]])
    wider = torch.nn.functional.pad(x, (0, 3))
    torch.testing.assert_close(layer(x), layer(wider))
    assert layer(x).shape == (1, 2, layer.d_out)
    other = x.clone()
    other[0, 0, 2] = 6
    assert not torch.allclose(layer(x)[0, 0], layer(other)[0, 0])
    torch.testing.assert_close(layer(x)[0, 1], layer(other)[0, 1])
