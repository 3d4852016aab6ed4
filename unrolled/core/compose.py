"""Composition: layers made of layers. State is derived here, never written by hand.

Causal layers first, then encoders: these take x [B, S, D] (or tokens [B, S]) and mask [B, S], True = real, and keep the
law of padding, by which what stands there, NaN included, changes neither a value nor a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Encoder, serial_depth
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.core.trace import note


class Each(Causal):
    """A module that treats every position alone (norm, feed-forward, dropout, embedding) as a causal layer."""

    receptive_field = 1

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        if isinstance(module, nn.Linear):
            self.d_in = module.in_features

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return self.module(x), ()

    def serial_steps(self, length: int) -> int:
        """Dropout and the like are no step of their own."""
        return int(any(True for _ in self.module.parameters()))


def _causal(layer: nn.Module) -> Causal:
    return layer if isinstance(layer, Causal) else Each(layer)


def least(limits: Iterable[int | None]) -> int | None:
    """The least of some limits, of which None is none."""
    return min((limit for limit in limits if limit is not None), default=None)


class Serial(Causal):
    """Layers one after the other; the state is the tuple of theirs. A plain module joins as `Each`.

    >>> import torch
    >>> y, state = Serial(nn.Linear(3, 4), nn.Tanh())(torch.zeros(2, 5, 3))
    >>> tuple(y.shape), state
    ((2, 5, 4), ((), ()))
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_causal(layer) for layer in layers)
        self.state_grows = any(layer.state_grows for layer in self)
        self.max_length = least(layer.max_length for layer in self)
        fields = [layer.receptive_field for layer in self]
        self.receptive_field = None if None in fields else 1 + sum(f - 1 for f in fields if f is not None)

    def __iter__(self):  # type: ignore[no-untyped-def]  # nn.ModuleList's own iterator, of Causal layers
        return iter(self.layers)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        before = (None,) * len(self.layers) if state is None else state
        after = []
        note("layer", x)
        for layer, s in zip(self.layers, before, strict=True):
            x, s = layer(x, s)
            note("layer", x)
            after.append(s)
        return x, tuple(after)

    def _received(self, state: State, rows: int) -> State:
        """Each layer looks at its own."""
        return state


class Residual(Causal):
    """y = x + layer(x)."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = _causal(layer)
        self.receptive_field = self.layer.receptive_field
        self.state_grows = self.layer.state_grows
        self.max_length = self.layer.max_length

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = self.layer(x, state)
        return x + y, state


# ---- encoders


def without_padding(x: Tensor, mask: Tensor) -> Tensor:
    """x [B, S, ...] with zeros where the mask [B, S] is False."""
    return x.masked_fill(~mask.view(*mask.shape, *[1] * (x.dim() - 2)), 0)


def pick(y: Tensor, places: Tensor) -> Tensor:
    """y [B, T, D] at places [B, K] of each row: [B, K, D]. Evenly spaced places that all rows share are a slice.

    >>> import torch
    >>> pick(torch.arange(6.0).view(1, 3, 2), torch.tensor([[2, 0]])).tolist()
    [[[4.0, 5.0], [0.0, 1.0]]]
    """
    if places.device.type == "cpu" and places.numel() and bool((places == places[:1]).all()):
        first, last, K = int(places[0, 0]), int(places[0, -1]), places.shape[1]
        apart = (last - first) // max(K - 1, 1)
        if apart and places[0].tolist() == list(range(first, last + (1 if apart > 0 else -1), apart)):
            return y[:, first : last + 1 : apart] if apart > 0 else y[:, last : first + 1 : -apart].flip(1)
    return y.gather(1, places[..., None].expand(-1, -1, y.shape[2]))


def require_right_padding(mask: Tensor, who: str) -> None:
    """Every row of a mask is True for its real steps and False behind them; a graph that is exported cannot tell."""
    if not torch.compiler.is_exporting() and (mask[:, 1:] & ~mask[:, :-1]).any():
        raise UsageError(f"{who} needs right padding: a mask that is True at real steps and False after them")


class AsEncoder(Encoder):
    """A causal layer where an encoder is accepted: it reads each row from its start, outputs at padding are zero.

    `self.causal` is the layer itself: what was trained here can be run live, `y, state = encoder.causal(x, state)`.

    >>> import torch
    >>> y, mask = AsEncoder(Each(nn.Linear(3, 4)))(torch.zeros(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))
    >>> tuple(y.shape), tuple(mask.shape)
    ((2, 5, 4), (2, 5))
    """

    def __init__(self, causal: Causal) -> None:
        super().__init__()
        self.causal = causal
        self.receptive_field = causal.receptive_field
        self.max_length = causal.max_length
        self.d_out = causal.d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        require_right_padding(mask, "a causal layer")
        y, _ = self.causal(without_padding(x, mask))
        return without_padding(y, mask), mask

    def serial_steps(self, length: int) -> int:
        return serial_depth(self.causal, length)


def as_encoder(layer: nn.Module) -> Encoder:
    """An encoder as it is, a causal layer in `AsEncoder`, any other module applied to every position alone."""
    if isinstance(layer, Encoder):
        return layer
    return AsEncoder(layer if isinstance(layer, Causal) else Each(layer))


class SerialEncoder(Encoder):
    """Encoders one after the other; causal layers and plain modules (embedding, norm, head) join by `as_encoder`.

    >>> import torch
    >>> tagger = SerialEncoder(nn.Embedding(9, 4), nn.Linear(4, 3))
    >>> y, mask = tagger(torch.zeros(2, 5, dtype=torch.long), torch.ones(2, 5, dtype=torch.bool))
    >>> tuple(y.shape)
    (2, 5, 3)
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        encoders = [as_encoder(layer) for layer in layers]
        self.layers = nn.ModuleList(encoders)
        self.d_out = encoders[-1].d_out if encoders else 0
        self.max_length = least(encoder.max_length for encoder in encoders)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        for layer in self.layers:
            x, mask = layer(x, mask)
        return x, mask
