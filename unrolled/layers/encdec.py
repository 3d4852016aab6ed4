"""Sequence in, sequence out: the source, encoded once, becomes the decoder's initial state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.compose import Serial, as_encoder
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.layers.conditioning import Sourced


class Halves(NamedTuple):
    """What a model file of KIND conditional makes: two bodies, without the layers that stand before and behind them.

    The encoder maps [B, S, d_source] and its mask to [B, S', D]. The decoder is a causal layer [B, T, d_in] -> [B, T,
    d_out] with an attribute d_out and a method `start(encoded [B, S', D], mask [B, S']) -> State` (`Sourced`).
    """

    encoder: Encoder
    decoder: Causal


class EncoderDecoder(Conditional):
    """p(target | source): source -> source_entry -> encoder, once; what it gives starts the decoder.

    The decoder is a `Serial` in which one layer or more take the source (`Sourced`, under the name "source"), such as
    embedding, body, head. The source is tokens [B, S] or vectors [B, S, D], its mask [B, S] True = real; None: all.
    """

    def __init__(self, source_entry: nn.Module, encoder: Encoder, decoder: Serial) -> None:
        super().__init__()
        self.source_entry = as_encoder(source_entry)
        self.encoder = encoder
        self.decoder: Serial = decoder
        self.starting = [isinstance(layer, Sourced) and layer.source == "source" for layer in decoder]
        if not any(self.starting):
            raise UsageError("no layer of this decoder takes a source: one must have start(encoded, mask) -> state")

    def encode(self, source: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The encoded source [B, S', D] and its mask [B, S']."""
        if mask is None:
            mask = torch.ones(source.shape[:2], dtype=torch.bool, device=source.device)
        encoded: tuple[Tensor, Tensor] = self.encoder(*self.source_entry(source, mask))
        return encoded

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        encoded, mask = self.encode(source, mask)
        pairs = zip(self.decoder, self.starting, strict=True)
        return tuple(layer.start(encoded, mask) if starts else None for layer, starts in pairs)
