"""A source that starts a decoder."""

from __future__ import annotations

from torch import Tensor

from unrolled.core.causal import Causal, Conditional
from unrolled.core.state import State


class Started(Conditional):
    """A class starts any causal token model (C0): it is a token of its own, read before the first one.

    The decoder's vocabulary is n_tokens + n_classes; class k enters as token n_tokens + k, and the state it leaves
    behind is the decoder's initial state. So it serves every causal model, whatever its state is made of.
    """

    def __init__(self, decoder: Causal, n_tokens: int) -> None:
        super().__init__()
        self.decoder = decoder
        self.n_tokens = n_tokens

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        return self.decoder((source + self.n_tokens)[:, None])[1]
