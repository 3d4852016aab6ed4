"""Sequence in, sequence out: the source, encoded once, becomes the decoder's initial state."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, Encoder, serial_depth
from unrolled.core.compose import Serial, as_encoder, require_right_padding, without_padding
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.layers.memory.memory import Memory
from unrolled.layers.memory.recaller import Recaller
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.conditioning import Sourced
from unrolled.layers.recurrent.recurrent import reverse


class Halves(NamedTuple):
    """What a model of the kind conditional makes: two bodies, without the layers that stand before and behind them.

    The encoder, which may be a causal layer, maps [B, S, d_source] and its mask to [B, S', D]. The decoder is a causal
    layer [B, T, d_in] -> [B, T, d_out] with an attribute d_out and a method `start(encoded [B, S', D], mask [B, S']) ->
    State` (`Sourced`).
    """

    encoder: Encoder | Causal
    decoder: Causal


class SourcedSerial(Serial):
    """Layers one after the other, of which some take the encoded source (`Sourced`, under the name "source")."""

    source: str | None = "source"

    def __init__(self, *layers: nn.Module, d_out: int | None = None) -> None:
        super().__init__(*layers)
        self.d_out = int(self.layers[-1].d_out) if d_out is None else d_out  # type: ignore[arg-type]
        self.starting = [isinstance(layer, Sourced) and layer.source == "source" for layer in self]
        if not any(self.starting):
            raise UsageError("no layer of this decoder takes a source: one must define start(encoded, mask) -> state")

    def start(self, source: Tensor, mask: Tensor) -> State:
        pairs = zip(self, self.starting, strict=True)
        return tuple(layer.start(source, mask) if starts else None for layer, starts in pairs)


class Backwards(Encoder):
    """Each row in reverse order, within its own real length."""

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        require_right_padding(mask, "a reversed source")
        return reverse(without_padding(x, mask), mask), mask

    def serial_steps(self, length: int) -> int:
        return 0


class EncoderDecoder(Conditional):
    """p(target | source): the source is read once; what the encoder gives starts the decoder.

    The source is tokens [B, S] or vectors [B, S, D], its mask [B, S] True = real; None: all. A head that the decoder
    has `Borrowed` is a part of the whole, so that the parts are encoder, decoder, head.
    """

    def __init__(self, encoder: Encoder, decoder: Causal, head: nn.Module | None = None) -> None:
        super().__init__()
        body = _body(decoder)
        if not isinstance(body, Sourced) or body.source != "source":
            raise UsageError(f"{type(body).__name__} takes no source: it must define start(encoded, mask) -> state")
        self.encoder = encoder
        self.decoder = decoder
        self.d_out = decoder.d_out
        self.max_source = encoder.max_length
        self.head = head

    def encode(self, source: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The encoded source [B, S', D] and its mask [B, S']."""
        if mask is None:
            mask = torch.ones(source.shape[:2], dtype=torch.bool, device=source.device)
        encoded: tuple[Tensor, Tensor] = self.encoder(source, mask)
        return encoded

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        body: Any = _body(self.decoder)
        return body.start(*self.encode(source, mask))

    def serial_steps(self, length: int) -> int:
        """The source, as long as the target, is read before the target is written."""
        return serial_depth(self.encoder, length) + serial_depth(self.decoder, length)


def _body(decoder: Causal) -> Causal:
    """What takes the source: the state of a `Decoder` is its body's."""
    return decoder.body if isinstance(decoder, Decoder) else decoder


def body_of(spec: ModelSpec, config: Config, sizes: Sizes) -> nn.Module:
    """What a declared model makes; both halves of one with a source joined, a memory as the layer that recalls."""
    body: Any = spec.make(config, sizes)
    if isinstance(body, Memory):
        return Recaller(body)
    if isinstance(body, Halves):
        return EncoderDecoder(as_encoder(body.encoder), body.decoder)
    whole: nn.Module = body
    return whole
