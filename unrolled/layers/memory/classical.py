"""The classical memory: spins that feel each other, with the patterns as valleys of an energy.

    E(xi) = -1/2 xi^T W xi + U^T xi
    xi_i <- sgn( sum_j W_ij xi_j - U_i )        a tie keeps the bit                                    (7.1)-(7.3)

Three ways to store patterns x^s, all with W_ii = 0:

    Hebb             W = sum_s x^s x^sT
    pseudo-inverse   W = X^T (X X^T)^+ X                  every independent pattern is a fixed point
    Storkey          W += (x x^T - x h^T - h x^T) / d     h_ij = sum_{k != i, j} W_ik x_k, one pattern after the other

Asynchronous updates (one bit after the other) never raise E, because W is symmetric with a zero diagonal. Synchronous
ones may end in a cycle of two states. The lecture notes print (7.2) with 0 where states are -1 and +1; -1 is meant.

Hopfield (1982); Personnaz, Guyon & Dreyfus (1985); Storkey (1997).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unrolled.layers.memory.memory import Order, SpinMemory, Updates

Rule = Literal["hebb", "pseudo-inverse", "storkey"]
NOTHING = 1e-10  # a coupling of the pseudo-inverse up to here is rounding: from d patterns on, all but the diagonal is


class Classical(SpinMemory):
    """Spins with symmetric couplings W [D, D]."""

    def __init__(
        self,
        d: int,
        rule: Rule = "hebb",
        updates: Updates = "asynchronous",
        order: Order = "random",
        threshold: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(d, updates, order, seed)
        self.rule = rule
        self.register_buffer("W", torch.zeros(d, d))
        self.register_buffer("U", torch.full((d,), threshold))
        self.W: Tensor
        self.U: Tensor

    def store(self, patterns: Tensor, values: Tensor | None = None) -> None:
        super().store(patterns, values)
        X = self.patterns  # [N, D]
        if self.rule == "hebb":
            W = X.T @ X
        elif self.rule == "pseudo-inverse":
            W = torch.linalg.pinv(X.double()) @ X.double()
            W = torch.where(W.abs() > NOTHING, W, 0.0).to(X)
        else:
            W = _storkey(X)
        self.W = W.fill_diagonal_(0)  # [D, D]

    def _together(self, xi: Tensor) -> Tensor:
        return _turned(xi @ self.W - self.U, xi, self._rounding())

    def _in_turn(self, xi: Tensor, order: list[int]) -> Tensor:
        state, field, zero = xi.clone(), xi @ self.W - self.U, self._rounding()  # [B, D], [B, D], []
        for i in order:
            after = _turned(field[:, i], state[:, i], zero)  # [B]
            rows = torch.nonzero(after != state[:, i])[:, 0]  # those whose bit turns
            if len(rows):
                field[rows] += 2 * after[rows, None] * self.W[i]
                state[:, i] = after
        return state

    def _rounding(self) -> Tensor:
        """[] up to which a field is 0 but for rounding; of Hebb's rule fields are whole numbers, and far above it."""
        return 2 * torch.finfo(self.W.dtype).eps * self.W.abs().sum(1).max()

    def energy(self, xi: Tensor) -> Tensor:
        return -0.5 * ((xi @ self.W) * xi).sum(1) + xi @ self.U


def _turned(field: Tensor, xi: Tensor, zero: Tensor) -> Tensor:
    """sgn(field); where that is 0 the bit stays."""
    return torch.where(field.abs() <= zero, xi, field.sign())


def _storkey(X: Tensor) -> Tensor:
    d = X.shape[1]
    W = X.new_zeros(d, d)
    for x in X:
        h = W @ x  # [D]; W has a zero diagonal
        local = h[:, None] - W * x  # [D, D] h_ij = sum_{k != i, j} W_ik x_k
        W = W + (x[:, None] * x - x[:, None] * local.T - local * x) / d
        W.fill_diagonal_(0)
    return W
