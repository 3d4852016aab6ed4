"""Recurrent decoders and the two halves put together."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.compose import Each, as_encoder
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, leaves
from unrolled.core.trace import trace
from unrolled.layers.parts.assembled import Decoder, Reader
from unrolled.layers.parts.decoders import attention_decoder, fixed_context_decoder
from unrolled.layers.parts.encoder_decoder import Backwards, EncoderDecoder, SourcedSerial
from unrolled.layers.recurrent.cells import GRU, LSTM
from unrolled.layers.recurrent.family import RecurrentConfig

SMALL = RecurrentConfig(d_state=4, n_layers=2)
MASK = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])


def test_the_code_makes_the_whole_first_state():
    """Fig. 7.9 (a): z* is the source at each row's last real step; all layers, h and c."""
    decoder = fixed_context_decoder(SMALL, 3, 5, LSTM, "start")
    v = torch.randn(2, 6, 5)
    z = torch.stack([v[0, 5], v[1, 2]])
    h = torch.tanh(decoder.initial.W_z(z))  # [B, 4 N]: h and c of two layers
    first, second = decoder.start(v, MASK)
    assert torch.equal(torch.cat([first, second], 1), h)
    x = torch.randn(2, 7, 3)
    y, _ = decoder(x, (first, second))
    lstm = nn.LSTM(3, 4, num_layers=2, batch_first=True)
    for i, layer in enumerate(decoder.stack.layers):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(lstm, f"{name}_l{i}").data = getattr(layer.cell, name).data
    h_0, c_0 = (torch.stack([first[:, part], second[:, part]]) for part in (slice(0, 4), slice(4, 8)))
    assert torch.allclose(y, lstm(x, (h_0, c_0))[0], atol=1e-6)


def test_the_code_stands_beside_input_and_output():
    """Fig. 7.9 (b)."""
    decoder = fixed_context_decoder(RecurrentConfig(d_state=4), 3, 5, GRU, "every-step")
    v, x = torch.randn(2, 6, 5), torch.randn(2, 7, 3)
    state = decoder.start(v, MASK)
    z = torch.stack([v[0, 5], v[1, 2]])
    h, (layer,) = state[1][0], decoder.stack.layers
    y, _ = decoder(x, state)
    for t in range(7):
        h = layer.cell(torch.cat([x[:, t], z], -1), h)
        assert torch.allclose(y[:, t], torch.cat([h, z], -1), atol=1e-6)
    assert decoder.d_out == 9


def test_deep_output_and_the_state_alone():
    deep = attention_decoder(SMALL, 3, 5, GRU)
    plain = attention_decoder(SMALL, 3, 5, GRU, output="state")
    plain.load_state_dict({k: v for k, v in deep.state_dict().items() if not k.startswith("W_o")})
    v, x = torch.randn(2, 6, 5), torch.randn(2, 7, 3)
    s, _ = plain(x, plain.start(v, MASK))
    with trace() as seen:
        y, _ = deep(x, deep.start(v, MASK))
    (alpha,) = seen["attention"]
    assert alpha.shape == (2, 1, 7, 6)
    wanted = torch.tanh(deep.W_o(torch.cat([s, alpha[:, 0] @ v, x], -1)))
    assert torch.allclose(y, wanted, atol=1e-6)
    assert deep.d_out == plain.d_out == 4


def test_a_tick_notes_one_row_of_the_alignment():
    decoder = attention_decoder(SMALL, 3, 5, LSTM).eval()
    v, x = torch.randn(2, 6, 5), torch.randn(2, 3, 3)
    state = decoder.start(v, MASK)
    with torch.no_grad(), trace() as whole:
        decoder(x, state)
    with torch.no_grad(), trace() as ticks:
        for t in range(3):
            _, state = decoder(x[:, t : t + 1], state)
    assert len(whole["attention"]) == 1
    assert torch.allclose(torch.cat(ticks["attention"], 2), whole["attention"][0], atol=1e-6)
    assert set(whole["gates"][0]) == {"input", "forget", "candidate", "output"}


def test_what_no_tick_changes_is_fixed():
    decoder = attention_decoder(SMALL, 3, 5, GRU)
    fixed, after = decoder.start(torch.randn(2, 6, 5), MASK)
    assert isinstance(fixed, Fixed)
    assert len(after) == 2
    kept = decoder(torch.randn(2, 1, 3), (fixed, after))[1][0]
    assert all(a is b for a, b in zip(leaves(kept), leaves(fixed), strict=True))


def test_without_a_source_a_decoder_says_so():
    for decoder in (attention_decoder(SMALL, 3, 5, GRU), fixed_context_decoder(SMALL, 3, 5, GRU, "start")):
        with pytest.raises(UsageError, match="needs a source"):
            decoder(torch.randn(2, 1, 3))
    with pytest.raises(UsageError, match="takes a source"):
        SourcedSerial(nn.Linear(2, 2))
    with pytest.raises(UsageError, match="Each takes no source"):
        EncoderDecoder(Reader(None, Each(nn.Tanh())), Decoder(None, Each(nn.Linear(2, 2))))


def test_backwards_turns_each_row_in_its_own_length():
    x = torch.arange(6.0).repeat(2, 1)[..., None]
    y, mask = Backwards()(x, MASK)
    assert y[0, :, 0].tolist() == [5, 4, 3, 2, 1, 0]
    assert y[1, :3, 0].tolist() == [2, 1, 0]
    assert mask is MASK


def test_gradients_reach_the_encoder_and_its_table():
    table = nn.Embedding(9, 5)
    decoder = Decoder(nn.Linear(3, 3), attention_decoder(SMALL, 3, 5, GRU), nn.Linear(4, 2))
    model = EncoderDecoder(Reader(table, as_encoder(nn.Linear(5, 5))), decoder)
    state = model.condition(torch.randint(9, (2, 6)), MASK)
    y, _ = model.decoder(torch.randn(2, 7, 3), state)
    y.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
