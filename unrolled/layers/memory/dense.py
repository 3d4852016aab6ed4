"""The dense memory: an interaction F that grows faster than the square, so that far more patterns fit.

    E(xi) = -sum_n F(x_n^T xi)                                                                              (7.4)
    xi_l <- sgn( E(bit l = -1) - E(bit l = +1) )                              a tie keeps the bit

The lecture notes have the same update as

    xi_l <- sgn( E(xi^(l-)) - E(xi^(l+)) ) xi_l        xi^(l+) = xi, xi^(l-) with bit l turned                 (7.5)

Both are one rule: where bit l is +1 the two differences are the same number, where it is -1 the first has the other
sign, and so has the factor xi_l. (Without the factor, (7.5) would say whether the bit stays, not what it becomes.)

With m_n = x_n^T xi, turning bit l changes m_n by -2 s, s = x_nl xi_l = +-1, so that for all bits at once

    E(xi^(l-)) - E(xi^(l+)) = c + xi_l sum_n x_nl g_n
    g = (F(m+2) - F(m-2)) / 2        c = sum_n F(m) - (F(m+2) + F(m-2)) / 2

which is one matrix product. F(z) = z^a: Krotov & Hopfield (2016), about d^(a-1) patterns; F(z) = exp(z): Demircigil et
al. (2017), about 2^(d/2).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.layers.memory.memory import Order, SpinMemory, Updates, blocks


class Dense(SpinMemory):
    """Spins whose energy is a sum over the stored patterns; `degree` None: the exponential interaction."""

    def __init__(
        self,
        d: int,
        degree: int | None = 3,
        updates: Updates = "asynchronous",
        order: Order = "random",
        seed: int = 0,
    ) -> None:
        if degree is not None and degree < 2:
            raise UsageError(f"invalid value degree = {degree}: expected an integer >= 2")
        super().__init__(d, updates, order, seed)
        self.degree = degree

    def update(self, xi: Tensor) -> Tensor:
        return torch.cat([super(Dense, self).update(some) for some in blocks(xi, len(self.patterns))])

    def _together(self, xi: Tensor) -> Tensor:
        m = (xi @ self.patterns.T).double()  # [B, N]
        c, g, zero = self._slopes(m)
        stays = c[:, None] + xi * (g @ self.patterns.double())  # [B, D]
        return torch.where(stays < -zero[:, None], -xi, xi)

    def _in_turn(self, xi: Tensor, order: list[int]) -> Tensor:
        state, X = xi.clone(), self.patterns.double()
        m = state.double() @ X.T  # [B, N]
        for l in order:  # noqa: E741  # the letter of the notes
            c, g, zero = self._slopes(m)
            turned = c + state[:, l] * (g @ X[:, l]) < -zero  # [B]
            m -= 2.0 * (turned * state[:, l])[:, None] * X[:, l]
            state[:, l] = torch.where(turned, -state[:, l], state[:, l])
        return state

    def _slopes(self, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """c [B] and g [B, N], divided by one positive number per row, which changes no sign; and [B] below which their
        sum is 0 but for rounding, so that a tie is one."""
        rounding = 8 * torch.finfo(m.dtype).eps
        if self.degree is None:
            F = torch.softmax(m, 1)  # exp(m) over its sum
            up, down = math.exp(2.0), math.exp(-2.0)
            total = F.sum(1)
            return total * (1 - (up + down) / 2), F * (up - down) / 2, rounding * (up + down) * total
        a, d = self.degree, self.d
        here, above, below = (m / d) ** a, ((m + 2) / d) ** a, ((m - 2) / d) ** a
        zero = rounding * (here.abs() + above.abs() + below.abs()).sum(1)
        return (here - (above + below) / 2).sum(1), (above - below) / 2, zero

    def energy(self, xi: Tensor) -> Tensor:
        """(7.4); of the exponential interaction -ln(-E), which orders states alike and is finite for every d."""
        found = []
        for some in blocks(xi, len(self.patterns)):
            m = (some @ self.patterns.T).double()  # [b, N]
            found.append(-m.logsumexp(1) if self.degree is None else -(m**self.degree).sum(1))
        return torch.cat(found)
