"""The feed-forward network of a transformer block: one hidden layer, applied to every position alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

Activation = Literal["gelu", "relu", "gelu-tanh", "swiglu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu, "gelu": F.gelu, "gelu-tanh": partial(F.gelu, approximate="tanh"),
}  # fmt: skip


class FeedForward(nn.Module):
    """u = W_2 S(W_1 x + b_1) + b_2; S is relu in the book, gelu in GPT."""

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        u: Tensor = self.W_2(self.activation(self.W_1(x)))
        return u

    def serial_steps(self, length: int) -> int:
        return 1


class GatedFeedForward(nn.Module):
    """u = W_2 (silu(W_1 x) * W_3 x): SwiGLU (Shazeer 2020), without biases, as in Llama."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.W_1, self.W_3 = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_model, d_ff, bias=False)
        self.W_2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        u: Tensor = self.W_2(F.silu(self.W_1(x)) * self.W_3(x))
        return u

    def serial_steps(self, length: int) -> int:
        return 1


def feed_forward_named(activation: Activation, d_model: int, d_ff: int) -> FeedForward | GatedFeedForward:
    """The network with one of the activations."""
    return GatedFeedForward(d_model, d_ff) if activation == "swiglu" else FeedForward(d_model, d_ff, activation)
