"""Recurrent encoder-decoders: what the settings make."""

from __future__ import annotations

import pytest
import torch

from unrolled.core.spec import Sizes
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.layers.recurrent.recurrent import BidirectionalStack
from unrolled.models import seq2seq

SMALL = {"d_state": 4}


def made(**settings):
    torch.manual_seed(0)
    return body_of(seq2seq.MODEL, seq2seq.Config(**SMALL | settings), Sizes(3, 3, 3))


def test_the_encoder_reads_both_ways_where_it_is_attended_to():
    assert isinstance(made().encoder, BidirectionalStack)
    assert not isinstance(made(context="start").encoder, BidirectionalStack)
    assert not isinstance(made(bidirectional=False).encoder, BidirectionalStack)
    both = made(context="start", bidirectional=True)
    assert both.decoder.readout.d_out == 2 * both.encoder.d_out  # both ends, where each direction has read all


@pytest.mark.parametrize("cell", ["gru", "lstm", "elman"])
@pytest.mark.parametrize("context", ["start", "every-step", "attention"])
def test_every_cell_with_every_context(cell, context):
    model = made(cell=cell, context=context, n_layers=2)
    source, mask = torch.randn(2, 6, 3), torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    x = torch.randn(2, 7, 3)
    y, _ = model.decoder(x, model.condition(source, mask))
    assert y.shape == (2, 7, model.d_out)
    padded = torch.where(mask[..., None], source, torch.nan)
    assert torch.equal(model.decoder(x, model.condition(padded, mask))[0], y)
    y.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("context", ["start", "attention"])
def test_a_reversed_source_is_the_same_model_on_the_source_turned_around(context):
    ahead, back = made(context=context), made(context=context, reversed_source=True)
    names = {k.replace("encoder.layers.1.", "encoder."): k for k in back.state_dict()}
    back.load_state_dict({names[k]: v for k, v in ahead.state_dict().items()})
    source, mask, x = torch.randn(2, 6, 3), torch.tensor([[True] * 6, [True] * 4 + [False] * 2]), torch.randn(2, 5, 3)
    turned = source.clone()
    turned[0], turned[1, :4] = source[0].flip(0), source[1, :4].flip(0)
    y = ahead.decoder(x, ahead.condition(turned, mask))[0]
    assert torch.allclose(back.decoder(x, back.condition(source, mask))[0], y, atol=1e-6)
    if context == "attention":  # what is attended to stands in the order of the source
        there, _ = back.encode(source, mask)
        assert torch.allclose(there[0], ahead.encode(turned, mask)[0][0].flip(0), atol=1e-6)
