"""Deep averaging and bags of words, by the equations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.models import bow, dan, tfidf

X = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0))
MASK = torch.arange(6) < torch.tensor([6, 2, 0])[:, None]


def body(**settings: Any) -> dan.DeepAveraging:
    torch.manual_seed(0)
    return dan.make(dan.Config(d_hidden=5, **settings), Sizes(4, 2))


def by_hand(layers: nn.ModuleList, z: Tensor) -> Tensor:
    for layer in layers:
        z = torch.relu(z @ layer.weight.T + layer.bias)
    return z


@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_the_equations(combine: str) -> None:
    model = body(combine=combine).eval()
    y, mask = model(X, MASK)
    assert y.shape == (3, 1, model.d_out)
    assert mask.tolist() == [[True]] * 3
    z = torch.stack([getattr(X[0], combine)(0), getattr(X[1, :2], combine)(0), torch.zeros(4)])
    torch.testing.assert_close(y[:, 0], by_hand(model.perceptron.layers, z))
    assert len(model.perceptron.layers) == 2


@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_word_dropout_leaves_words_out_and_keeps_the_scale(combine: str) -> None:
    """z_0 of a row is seen through an identity; over many draws its mean is that of all words."""
    model = body(combine=combine, word_dropout=0.4)
    seen: list[Tensor] = []
    model.perceptron.register_forward_pre_hook(lambda _, entry: seen.append(entry[0]))
    torch.manual_seed(0)
    x = torch.ones(2000, 10, 4) * torch.arange(1.0, 11)[:, None]
    model(x, torch.ones(2000, 10, dtype=torch.bool))
    model.eval()(x, torch.ones(2000, 10, dtype=torch.bool))
    assert seen[0][:, 0].unique().numel() > 50
    assert seen[0].mean().item() == pytest.approx(seen[1].mean().item(), rel=0.02)
    assert seen[1].unique().numel() == 1
    torch.testing.assert_close(seen[0][:, 0], seen[0][:, 3])  # whole words, never single units


def test_a_row_of_one_word_keeps_it() -> None:
    model = body(word_dropout=0.9)
    y, _ = model(X[:1].expand(200, -1, -1), torch.arange(6).expand(200, 6) < 1)
    assert y.std(0).max() < 1e-6


def test_sizes() -> None:
    assert dan.Config().resized(9).d_hidden == 9
    assert bow.Config().resized(9).d_hidden == 9
    with pytest.raises(UsageError, match="word_dropout"):
        dan.Config.parse({"word_dropout": 1.0})


TEXTS = ["a rose is a rose", "violets are blue", "is a rose red or blue"]
FEATURES = {"counts": CountVectorizer, "tf-idf": TfidfVectorizer}


@pytest.mark.parametrize("module", [bow, tfidf])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_perceptrons_on_scikit_learns_vectors(module: Any, n_layers: int) -> None:
    """MLP_n without its last affine map, which is the head."""
    x = torch.from_numpy(FEATURES[module.MODEL.reads[0]]().fit_transform(TEXTS).toarray()).float()  # [3, V]
    model = module.make(module.Config(n_layers=n_layers, d_hidden=6), Sizes(x.shape[1], 2)).eval()
    x, mask = x.unsqueeze(1), torch.ones(3, 1, dtype=torch.bool)  # [3, 1, V]
    y, _ = model(x, mask)
    assert y.shape == (3, 1, model.d_out)
    torch.testing.assert_close(y, by_hand(model.perceptron.layers, x))
    assert len(model.perceptron.layers) == n_layers
    model.train()
    assert not torch.equal(model(x, mask)[0], model(x, mask)[0])


def test_the_equation_of_tfidf_is_that_of_scikit_learn() -> None:
    counts = torch.from_numpy(CountVectorizer().fit_transform(TEXTS).toarray()).double()
    n, n_i = len(TEXTS), (counts > 0).sum(0)
    z = counts * (((1 + n) / (1 + n_i)).log() + 1)
    wanted = torch.from_numpy(TfidfVectorizer().fit_transform(TEXTS).toarray())
    torch.testing.assert_close(z / z.norm(dim=1, keepdim=True), wanted)


def test_what_they_read_is_told() -> None:
    assert {name: discover.model(name).reads for name in ("dan", "bow", "tfidf")} == {
        "dan": ("embedded",), "bow": ("counts",), "tfidf": ("tf-idf",),
    }  # fmt: skip
