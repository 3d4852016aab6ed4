"""Composition: layers made of layers. State is derived here, never written by hand."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.state import State


class Each(Causal):
    """A module that treats every position alone (norm, feed-forward, dropout, embedding) as a causal layer."""

    receptive_field = 1

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return self.module(x), ()

    def serial_steps(self, length: int) -> int:
        """Dropout and the like are no step of their own."""
        return int(any(True for _ in self.module.parameters()))


def _causal(layer: nn.Module) -> Causal:
    return layer if isinstance(layer, Causal) else Each(layer)


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
        lengths = [layer.max_length for layer in self if layer.max_length is not None]
        self.max_length = min(lengths, default=None)
        fields = [layer.receptive_field for layer in self]
        self.receptive_field = None if None in fields else 1 + sum(f - 1 for f in fields if f is not None)

    def __iter__(self):  # type: ignore[no-untyped-def]  # nn.ModuleList's own iterator, of Causal layers
        return iter(self.layers)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        layers = self._modules["layers"]._modules.values()  # type: ignore[union-attr]  # self.layers costs a tick more
        before = (None,) * len(layers) if state is None else state
        after = []
        for layer, s in zip(layers, before, strict=True):
            x, s = layer(x, s)
            after.append(s)
        return x, tuple(after)


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
