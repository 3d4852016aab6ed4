"""Weights of several models that depend on how sure each of them is at a position.

    c_k = (max_v log p_k(v), H(p_k))                      of member k, H the entropy
    z   = (c - mean) / deviation, of all members, within -4 .. 4
    w_k = softmax_k(log w°_k + b_k + A_k (z, z^2))        w° the weights without this
    y   = mix(y_1 .. y_K; w_1 .. w_K)

An n-gram that has seen a context often is sure of what follows, and one that has not seen it is not, so that certainty
stands for its counts (docs/decisions/0033). A mixture of experts with so few features is a linear model; the features
are of outputs alone, so that it has no state and obeys whatever laws the members obey.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.layers.parts.ensemble import ByEmission

WIDEST = 4.0  # deviations; what is further from what was seen is taken as that far


def certainty(log_p: Tensor) -> Tensor:
    """The features [.., 2 K] of log-probabilities [K, .., V].

    >>> certainty(torch.tensor([[[0.5, 0.5]], [[1.0, 0.0]]]).log())
    tensor([[-0.6931,  0.6931,  0.0000,  0.0000]])
    """
    entropy = torch.special.entr(log_p.exp()).sum(-1)  # [K, ..]
    pairs = torch.stack([log_p.amax(-1), entropy], dim=-1)  # [K, .., 2]
    return pairs.movedim(0, -2).flatten(-2)  # [.., 2 K]


class Gate(nn.Module):
    """Outputs ys [K, .., D'] and weights [K] -> the mixture [.., D'] with weights of each position."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, n: int, mix: ByEmission) -> None:
        super().__init__()
        self.mix = mix
        self.A, self.b = nn.Parameter(torch.zeros(n, 4 * n)), nn.Parameter(torch.zeros(n))
        self.register_buffer("mean", torch.zeros(2 * n))
        self.register_buffer("deviation", torch.ones(2 * n))

    def log_weights(self, c: Tensor, weights: Tensor) -> Tensor:
        """log w [.., K] from certainties c [.., 2 K]."""
        z = ((c - self.mean) / self.deviation).clamp(-WIDEST, WIDEST)
        features = torch.cat([z, z.square()], dim=-1)  # [.., 4 K]
        return (features @ self.A.T + self.b + weights.to(c).log()).log_softmax(-1)

    def forward(self, ys: Tensor, weights: Tensor) -> Tensor:
        c = certainty(self.mix.log_probabilities(ys)).to(self.A.dtype)  # [.., 2 K]
        return self.mix(ys, self.log_weights(c, weights).exp().movedim(-1, 0))
