"""Parts under their names: what a decoder and a reader compute, and what their weights are called."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.causal import Causal, Encoder, serial_depth, tick_multiply_adds
from unrolled.core.compose import Each, SerialEncoder, as_encoder, without_padding
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.layers.attention.position import Learned, Placed, PlacedAll
from unrolled.layers.parts.assembled import Decoder, Reader
from unrolled.layers.parts.conditioning import Started
from unrolled.layers.parts.embedding import Borrowed, Table, TiedHead
from unrolled.layers.parts.encoder_decoder import EncoderDecoder
from unrolled.layers.readouts.last import Last
from unrolled.layers.readouts.mean import Mean
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.testing import check_causal, check_conditional, check_encoder

V, D, N = 7, 3, 4
MASK = torch.arange(5) < torch.tensor([5, 2, 0])[:, None]


def gru() -> Recurrent:
    return Recurrent(GRU(D, N))


class Centred(Encoder):
    d_in = d_out = D

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = without_padding(x, mask)
        return without_padding(x - x.sum(1, keepdim=True) / mask.sum(1)[:, None, None].clamp_min(1), mask), mask


class Accepting(Recurrent):
    """A layer with a way of its own to its last output."""

    asked = 0

    def ending(self, x: Tensor, mask: Tensor) -> Tensor:
        self.asked += 1
        y, _ = self(x)
        return y[torch.arange(len(y)), mask.sum(1).clamp_min(1) - 1][:, None]


# ---- decoders


def test_a_decoder_is_its_parts_one_after_the_other_with_the_state_of_its_body() -> None:
    table, body, head = Table(V, D), gru(), nn.Linear(N, V)
    decoder = Decoder(table, body, head, before=[nn.Dropout(0.5)], behind=[nn.Dropout(0.5)]).eval()
    x = torch.randint(V, (2, 5))
    y, state = decoder(x)
    inner, kept = body(table(x))
    torch.testing.assert_close(y, head(inner))
    assert torch.equal(state, kept)
    assert decoder.receptive_field is None and not decoder.state_grows
    check_causal(decoder, x)


def test_names_are_those_of_parts_whatever_stands_between_them() -> None:
    plain = Decoder(Table(V, D), gru(), nn.Linear(N, V))
    dropped = Decoder(Table(V, D), gru(), nn.Linear(N, V), before=[nn.Dropout(0.1)], behind=[nn.Dropout(0.1)])
    assert list(plain.state_dict()) == list(dropped.state_dict())
    assert {name.split(".")[0] for name in plain.state_dict()} == {"embedding", "body", "head"}
    read = Reader(Table(V, D), gru(), Mean(N), nn.Linear(N, 2), before=[nn.Dropout(0.1)])
    bodies = [[name for name in model.state_dict() if name.startswith("body.")] for model in (plain, read)]
    assert bodies[0] == bodies[1] != []


def test_dropout_stands_before_and_behind_the_body_only_in_training() -> None:
    decoder = Decoder(Table(V, D), gru(), nn.Linear(N, V), before=[nn.Dropout(0.5)], behind=[nn.Dropout(0.5)])
    x = torch.randint(V, (1, 5))
    assert not torch.equal(decoder.train()(x)[0], decoder(x)[0])
    assert torch.equal(decoder.eval()(x)[0], decoder(x)[0])


def test_a_head_that_is_lent_is_saved_counted_and_copied_once() -> None:
    head = nn.Linear(N, V)
    model = Started(Decoder(Table(V + 2, D), gru(), Borrowed(head)), V, head)
    assert {name.split(".")[0] for name in model.state_dict()} == {"decoder", "head"}
    assert [name for name in model.state_dict() if "head" in name] == ["head.weight", "head.bias"]
    whole = Decoder(Table(V + 2, D), gru(), nn.Linear(N, V))
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in whole.parameters())
    assert tick_multiply_adds(model.decoder, 5) == tick_multiply_adds(whole, 5)
    assert serial_depth(model.decoder, 5) == serial_depth(whole, 5) == 7
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.head.weight.zero_()
        other.head.bias.fill_(3.0)
    x = torch.randint(V, (2, 4))
    assert (other.decoder(x)[0] == 3).all()
    assert not (model.decoder(x)[0] == 3).all()
    check_conditional(model, torch.tensor([0, 1, 1]), None, torch.randint(V, (3, 6)))


def test_a_tied_table_is_one_weight_of_the_input() -> None:
    table = Table(V, N)
    model = Decoder(table, Recurrent(GRU(N, N)), TiedHead(table, V - 1))
    assert [name for name in model.state_dict() if not name.startswith("body.")] == ["embedding.weight", "head.bias"]
    x = torch.randint(V, (2, 4))
    torch.testing.assert_close(model(x)[0], model.body(table(x))[0] @ table.weight[:-1].T)
    untied = Decoder(Table(V, N), Recurrent(GRU(N, N)), nn.Linear(N, V - 1))
    assert tick_multiply_adds(model, 0) == tick_multiply_adds(untied, 0)
    check_causal(model, x)


# ---- readers

READERS: dict[str, Callable[[], Encoder]] = {
    "each": lambda: Reader(nn.Linear(2, D), Centred(), None, nn.Linear(D, 2)),
    "each on tokens": lambda: Reader(nn.Embedding(V, D), gru(), None, nn.Linear(N, 2)),
    "delayed": lambda: Reader(nn.Linear(2, D), gru(), None, nn.Linear(N, 2), delay=3),
    "whole": lambda: Reader(None, Centred(), Mean(D), nn.Linear(D, 2)),
    "whole on tokens": lambda: Reader(Table(V, D), gru(), Last(N), nn.Linear(N, 2)),
    "an acceptor": lambda: Reader(Table(V, D), Accepting(GRU(D, N)), Last(N), nn.Linear(N, 2)),
    "of a reader": lambda: Reader(None, Reader(None, gru(), Mean(N), nn.Linear(N, D)), Mean(D), nn.Linear(D, 2)),
    "a body alone": lambda: Reader(None, Centred()),
}


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
def test_readers_obey_the_laws(make: Callable[[], Encoder]) -> None:
    assert "padding" in check_encoder(make())


def test_one_answer_per_row_also_for_a_row_without_positions() -> None:
    head = nn.Linear(N, 2)
    y, mask = Reader(None, gru(), Mean(N), head)(torch.randn(3, 5, D), MASK)
    assert y.shape == (3, 1, 2)
    assert mask.tolist() == [[True]] * 3
    torch.testing.assert_close(y[2, 0], head.bias)


def test_the_last_output_alone_comes_by_the_short_way() -> None:
    body = Accepting(GRU(D, N))
    last, mean = Reader(None, body, Last(N)), Reader(None, body, Mean(N))
    x = torch.randn(3, 5, D)
    y, _ = last(x, MASK)
    assert body.asked == 1
    torch.testing.assert_close(y[0, 0], body(x)[0][0, 4])
    torch.testing.assert_close(y[1, 0], body(x)[0][1, 1])
    assert not y[2].any()
    mean(x, MASK)
    last.by_position()(x, MASK)
    assert body.asked == 1


def test_serial_depth_of_readers() -> None:
    assert serial_depth(Reader(None, gru(), Mean(N), nn.Linear(N, 2)), 50) == 52
    assert serial_depth(Reader(Table(V, D), gru(), None, nn.Linear(N, 2), before=[nn.Dropout(0.1)]), 50) == 52


def test_delayed_says_what_the_layer_says_later() -> None:
    """y_t = layer(x_1 .. x_T, 0, .. 0)_{t+d}, in a batch of unequal rows as alone."""
    layer, rows = Recurrent(GRU(2, 3)), [torch.randn(5, 2), torch.randn(2, 2)]
    x = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=7.0)
    y, _ = Reader(None, layer, delay=4)(x, torch.tensor([[1] * 5, [1, 1, 0, 0, 0]]).bool())
    for i, row in enumerate(rows):
        later, _ = layer(torch.cat([row, torch.zeros(4, 2)])[None])
        assert torch.allclose(y[i, : len(row)], later[0, 4:], atol=1e-6)
    assert not y[1, 2:].any()


def test_an_encoder_cannot_be_delayed() -> None:
    with pytest.raises(UsageError, match="only causal layers"):
        Reader(None, SerialEncoder(nn.Linear(2, 2)), delay=1)


def test_a_reader_runs_live_where_it_does_not_look_ahead() -> None:
    reader = Reader(nn.Linear(2, D), gru(), None, nn.Linear(N, 2), delay=1, behind=[nn.Dropout(0.5)]).eval()
    live = reader.causal()
    assert live is not None and isinstance(live, Causal) and not live.training
    x = torch.randn(1, 6, 2)
    later, _ = live(torch.cat([x, torch.zeros(1, 1, 2)], 1))
    torch.testing.assert_close(reader(x, torch.ones(1, 6, dtype=torch.bool))[0], later[:, 1:])
    assert Reader(None, Centred()).causal() is None
    assert Reader(None, gru(), Mean(N)).causal() is None


def test_behind_its_embedding_a_model_reads_vectors() -> None:
    table, x = Table(V, D), torch.randint(V, (2, 5))
    mask = torch.ones(2, 5, dtype=torch.bool)
    reader = Reader(table, gru(), Mean(N), nn.Linear(N, 2))
    torch.testing.assert_close(reader.behind_embedding()(table(x), mask), reader(x, mask))
    decoder = Decoder(table, gru(), nn.Linear(N, V))
    torch.testing.assert_close(decoder.behind_embedding()(table(x))[0], decoder(x)[0])
    assert decoder.d_in is None and Decoder(nn.Linear(6, D), gru()).d_in == 6


def test_the_longest_input_is_that_of_the_part_with_the_fewest_positions() -> None:
    placed = Placed(Learned(4, max_length=8))
    whole = SerialEncoder(nn.Linear(3, 4), placed, PlacedAll(Learned(4, max_length=6)), nn.Linear(4, 2))
    assert (whole.max_length, as_encoder(placed).max_length) == (6, 8)
    assert Reader(None, whole).max_length == Reader(None, whole).by_position().max_length == 6
    assert Reader(None, placed, delay=3).max_length == 5
    assert Reader(None, Each(nn.Identity()), delay=3).max_length is None
    mask = torch.ones(1, 8, dtype=torch.bool)
    assert Reader(None, placed, delay=3)(torch.zeros(1, 5, 4), mask[:, :5])[0].shape == (1, 5, 4)
    with pytest.raises(UsageError, match="beyond max_length"):
        Reader(None, placed, delay=3)(torch.zeros(1, 6, 4), mask[:, :6])


@pytest.mark.parametrize(("position", "longest"), [("learned", 9), ("rotary", None)])
def test_a_model_says_how_long_a_source_may_be(position: str, longest: int | None) -> None:
    spec = discover.model("transformer-encoder")
    config = spec.tiny.updated({"position": position, "n_positions": 9})
    encoder = spec.make(config, Sizes(4, 4))
    assert encoder.max_length == longest
    pair = discover.model("encdec-transformer")
    settings = pair.tiny.updated({"position": position, "n_positions": 9})
    halves = pair.make(settings, Sizes(4, 4, 4))
    assert EncoderDecoder(as_encoder(halves.encoder), halves.decoder).max_source == longest
