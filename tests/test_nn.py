"""The public layers: what `unrolled.nn` names, and the recurrent layers that it makes of cells."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from unrolled import nn
from unrolled.errors import UsageError
from unrolled.testing import check_causal, check_encoder

ONE_WAY = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.BookGRU: nn.BookGRUCell, nn.Elman: nn.ElmanCell}
BOTH_WAYS = {nn.BiLSTM: nn.LSTMCell, nn.BiGRU: nn.GRUCell, nn.BiElman: nn.ElmanCell}


def test_the_docstring_names_every_name_and_no_other() -> None:
    listed = (nn.__doc__ or "").split("\n\n")[2]
    told = set(re.findall(r"\w+", " ".join(re.sub(r"^    \w+ {2,}", "", line) for line in listed.splitlines())))
    assert set(nn.__all__) <= told
    assert {word for word in told if word[0].isupper()} - {"RNN"} <= set(nn.__all__)
    assert len(set(nn.__all__)) == len(nn.__all__)


@pytest.mark.parametrize("layer", ONE_WAY)
def test_layers_along_a_stream_keep_the_laws(layer: Any) -> None:
    torch.manual_seed(0)
    made = layer(3, 4, n_layers=2, dropout=0.3)
    check_causal(made)
    assert (made.d_out, made(torch.zeros(2, 5, 3))[0].shape) == (4, (2, 5, 4))
    assert made.dropout.p == 0.3
    assert [type(each.cell) for each in made] == 2 * [ONE_WAY[layer]]


@pytest.mark.parametrize("layer", BOTH_WAYS)
def test_layers_that_read_both_ways_keep_the_laws(layer: Any) -> None:
    torch.manual_seed(0)
    made = layer(3, 4, n_layers=2)
    check_encoder(made, d_in=3)
    assert made.d_out == 8
    assert [type(each.cell) for pair in made.layers for each in (pair.ahead, pair.back)] == 4 * [BOTH_WAYS[layer]]


@pytest.mark.parametrize("layer", [nn.LSTM(3, 4, 2), nn.GRU(3, 4), nn.Elman(3, 4, 2)])
def test_they_convert_to_torch_and_back(layer: Any) -> None:
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(nn.to_torch(layer)(x)[0], layer(x)[0])
    torch.testing.assert_close(nn.from_torch(nn.to_torch(layer))(x)[0], layer(x)[0])


def test_those_of_both_ways_too() -> None:
    x, layer = torch.randn(2, 5, 3), nn.BiGRU(3, 4, 2)
    mask = torch.ones(2, 5, dtype=torch.bool)
    torch.testing.assert_close(nn.to_torch(layer)(x)[0], layer(x, mask)[0])


@pytest.mark.parametrize("sizes", [{"d_state": 0}, {"d_state": 4, "n_layers": 0}, {"d_state": 4, "dropout": 1.5}])
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, Any]) -> None:
    for layer in (nn.GRU, nn.BiGRU):
        with pytest.raises(UsageError, match=f"invalid value {list(sizes)[-1]} = "):
            layer(3, **sizes)


def test_a_model_of_public_names_is_searched_with_a_beam() -> None:
    torch.manual_seed(0)
    model = nn.Serial(torch.nn.Embedding(7, 8), nn.GRU(8, 16), torch.nn.Linear(16, 7))
    first = torch.zeros(2, 1, dtype=torch.long)
    best = nn.beam_search(model, None, first, stop=6, width=1, max_steps=4)
    written = nn.collect(nn.rollout(model, None, first, None, nn.greedy, stop=6, max_steps=4))
    assert [each.tokens for each in written] == [each[0].tokens for each in best]


def test_a_known_sequence_beside_the_input() -> None:
    decoder = nn.Serial(nn.Appended(2), nn.GRU(5, 4))
    model, known, x = nn.Guided(decoder), torch.randn(2, 6, 2), torch.randn(2, 6, 3)
    y, _ = decoder(x, model.condition(known))
    expected, _ = decoder.layers[1](torch.cat([x, known], dim=2))
    torch.testing.assert_close(y, expected)
