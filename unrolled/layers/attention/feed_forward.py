"""The feed-forward network of a transformer block: one hidden layer, applied to every position alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """u = W_2 S(W_1 x + b_1) + b_2; S is relu in the book, gelu in GPT."""

    def __init__(self, d_model: int, d_ff: int, activation: Literal["relu", "gelu"] = "relu") -> None:
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        u: Tensor = self.W_2(self.activation(self.W_1(x)))
        return u

    def serial_steps(self, length: int) -> int:
        return 1
