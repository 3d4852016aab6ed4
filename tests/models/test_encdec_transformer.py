"""The transformer encoder-decoder against torch's layers, the book's counts, and its quick tick."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core import state as tree
from unrolled.core.spec import Ports, Sizes, SourcePorts
from unrolled.core.trace import trace
from unrolled.engine.stepper import stepped
from unrolled.layers.attention.attention import CausalSelfAttention, CrossAttention, MultiHead
from unrolled.layers.attention.blocks import DecoderBlock
from unrolled.layers.attention.feed_forward import FeedForward
from unrolled.layers.parts.encoder_decoder import body_of
from unrolled.models import encdec_transformer as file
from unrolled.runs.build import build, count_parameters
from unrolled.runs.config import Ends, RunConfig

BOOK = file.Config(d_model=512, n_layers=6, n_heads=8, d_ff=2048, activation="relu", norm="post")


def block(norm="post", d=8, heads=2, bias=False):
    attention = CausalSelfAttention(MultiHead(d, heads, bias=bias))
    return DecoderBlock(attention, CrossAttention(MultiHead(d, heads, bias=bias)), FeedForward(d, 12), norm)


def test_parameters_as_the_book_counts_them():
    """4,199,936 for a decoder block; 6 + 6 blocks and V p + p for the last layer, embeddings left out: 63,046,144."""
    with torch.device("meta"):
        halves = file.make(BOOK, Sizes(512, 512, 512))
        head = nn.Linear(512, 37_000, bias=False)
    decoder_block = next(layer for layer in halves.decoder if isinstance(layer, DecoderBlock))
    assert count_parameters(decoder_block) == 4_199_936
    assert count_parameters(halves.encoder) == 6 * 3_150_336
    book = count_parameters(halves.encoder) + count_parameters(halves.decoder) + count_parameters(head) + 512
    assert book == 63_046_144


def test_parameters_of_the_whole_model():
    """As above with a bias of V, which a head has: 63,082,632; and one table for source, target and head."""
    ends, ports = (
        Ends(d_embedding=512, shared=True, tied=True),
        Ports(37_000, 37_000, source=SourcePorts(37_000, None, True)),
    )
    config = RunConfig(model="encdec-transformer", model_settings=BOOK.model_dump(), ends=ends, device="meta")
    with torch.device("meta"):
        tied = build(config, ports, ("conditional",))
    assert count_parameters(tied) == 63_082_632


def carry_attention(ours: MultiHead, theirs: nn.MultiheadAttention) -> None:
    D = ours.d_in
    ours.W_q.weight.data, ours.W_kv.weight.data = theirs.in_proj_weight.data[:D], theirs.in_proj_weight.data[D:]
    ours.W_q.bias.data, ours.W_kv.bias.data = theirs.in_proj_bias.data[:D], theirs.in_proj_bias.data[D:]
    ours.W_c.weight.data, ours.W_c.bias.data = theirs.out_proj.weight.data, theirs.out_proj.bias.data


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_block_is_torchs_decoder_layer(norm):
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    for p in theirs.parameters():
        p.data.add_(0.1 * torch.randn_like(p))
    ours = block(norm, bias=True)
    carry_attention(ours.attention.heads, theirs.self_attn)
    carry_attention(ours.cross.heads, theirs.multihead_attn)
    for name, other in (("W_1", theirs.linear1), ("W_2", theirs.linear2)):
        getattr(ours.feed_forward, name).load_state_dict(other.state_dict())
    for i in (1, 2, 3):
        getattr(ours, f"norm_{i}").load_state_dict(getattr(theirs, f"norm{i}").state_dict())
    x, source = torch.randn(2, 5, 8), torch.randn(2, 6, 8)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    future = nn.Transformer.generate_square_subsequent_mask(5)
    wanted = theirs(x, source, tgt_mask=future, memory_key_padding_mask=~mask)
    y, _ = ours(x, ours.start(source, mask))
    assert torch.allclose(y, wanted, atol=1e-5)


def ticks(layer, x, state):
    ys = []
    for t in range(x.shape[1]):
        y, state = layer(x[:, t : t + 1], state)
        ys.append(y)
    return torch.cat(ys, 1), state


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("settings", [{}, {"norm": "post"}, {"position": "rotary", "activation": "relu"}])
def test_ticks_are_the_blocks_own_equation(rows, settings):
    torch.manual_seed(0)
    model = body_of(file.MODEL, file.MODEL.tiny.updated(settings), Sizes(5, 5, 5)).eval()
    source, x = torch.randn(rows, 6, 5), torch.randn(rows, 40, 5)
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])[:rows]
    with torch.no_grad():
        whole, _ = model.decoder(x, model.condition(source, mask))
        for step in (model.decoder, stepped(model.decoder)):
            y, state = ticks(step, x, model.condition(source, mask))
            assert torch.allclose(y, whole, atol=1e-5)
            beams = tree.repeat(state, 2)
            twice, _ = ticks(step, x[:, :2].repeat_interleave(2, 0), tree.clone(beams))
            alone, _ = ticks(step, x[:, :2], state)
            assert torch.allclose(twice[::2], alone, atol=1e-5)
            assert torch.allclose(twice[1::2], alone, atol=1e-5)


def test_rows_at_unlike_positions():
    torch.manual_seed(0)
    model = body_of(file.MODEL, file.MODEL.tiny, Sizes(5, 5, 5)).eval()
    source, x = torch.randn(2, 6, 5), torch.randn(2, 5, 5)
    with torch.no_grad():
        _, early = model.decoder(x[:, :2], model.condition(source, None))
        _, late = model.decoder(x[:, :4], model.condition(source, None))
        mixed = tuple(
            _joined(a, b) for a, b in zip(tree.take(early, torch.tensor([0])), tree.take(late, torch.tensor([1])))
        )
        y, _ = model.decoder(torch.stack([x[0, 2:3], x[1, 4:5]]), mixed)
        wanted, _ = model.decoder(x, model.condition(source, None))
    assert torch.allclose(y[0, 0], wanted[0, 2], atol=1e-5)
    assert torch.allclose(y[1, 0], wanted[1, 4], atol=1e-5)


def _joined(a, b):
    """Two states of one row each as one of two rows; keys and values are padded to the longer."""
    if isinstance(a, torch.Tensor):
        if a.dim() == 4 and a.shape[2] < b.shape[2]:
            a = nn.functional.pad(a, (0, 0, 0, b.shape[2] - a.shape[2]))
        return torch.cat([a, b])
    if isinstance(a, tree.Fixed):
        return tree.Fixed(_joined(a.tree, b.tree))
    parts = [_joined(p, q) for p, q in zip(a, b, strict=True)]
    return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)


def test_every_block_notes_where_it_looks():
    model = body_of(file.MODEL, file.MODEL.tiny, Sizes(5, 5, 5)).eval()
    with torch.no_grad(), trace() as seen:
        model.decoder(torch.randn(1, 4, 5), model.condition(torch.randn(1, 6, 5), None))
    of_encoder, of_decoder = seen["attention"][:2], seen["attention"][2:]
    assert [a.shape[2:] for a in of_encoder] == [(6, 6), (6, 6)]
    assert [a.shape[2:] for a in of_decoder] == [(4, 4), (4, 6), (4, 4), (4, 6)]
    assert all(torch.allclose(a.sum(-1), torch.ones(a.shape[:-1])) for a in seen["attention"])
