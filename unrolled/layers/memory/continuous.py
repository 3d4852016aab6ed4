"""The continuous memory: states and patterns of any numbers; an update is attention to the stored patterns.

    E(xi) = -lse(beta, X xi) + 1/2 xi^T xi + 1/beta log N + 1/2 M^2        lse(beta, z) = 1/beta log sum_n exp(beta z_n)
    xi <- X^T softmax(beta X xi)                                           M = max_n |x_n|                  (7.6)-(7.7)

The update never raises E. Where the patterns are separated, Delta_n = x_n^T x_n - max_{m != n} x_n^T x_m, one update is
enough: its error falls as exp(-beta Delta). A state that stands still is close to a single pattern, to the average of
some similar ones (metastable), or to the average of all.

Ramsauer et al. (2020). In their notes the patterns are the columns of X; here they are its rows [N, D].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.layers.attention.attention import fast
from unrolled.layers.memory.memory import Memory, blocks

SINGLE, METASTABLE, GLOBAL = "single pattern", "metastable average", "global average"
MOST_WEIGHT = 0.9  # the patterns that carry so much of the weight are those that a state is an average of
SURE = 1e-3  # weight of all other patterns, at half of the separation, under the beta that is proposed


class Continuous(Memory):
    """Real-valued patterns; beta None: proposed from their separation when they are stored."""

    tolerance = 1e-5

    def __init__(self, d: int, beta: float | None = None) -> None:
        if beta is not None and not (0 < beta < math.inf):
            raise UsageError(f"invalid value beta = {beta:g}: expected a number > 0")
        super().__init__(d)
        self.given = beta
        self.register_buffer("beta", torch.tensor(1.0 if beta is None else beta))
        self.beta: Tensor

    def store(self, patterns: Tensor, values: Tensor | None = None) -> None:
        super().store(patterns, values)
        if self.given is None:
            self.beta = self.patterns.new_tensor(propose_beta(self.patterns))

    def chosen(self) -> dict[str, float]:
        return {} if self.given is not None else {"beta": round(float(self.beta), 4)}

    def update(self, xi: Tensor) -> Tensor:
        return self._average(xi, self.patterns)

    def read(self, xi: Tensor) -> Tensor:
        return self._average(xi, self.values) if self.values.shape[1] else xi

    def _average(self, xi: Tensor, of: Tensor) -> Tensor:
        """sum_n p_n v_n in memory linear in states and patterns."""
        q, k, v = (rows[None, None] for rows in (xi, self.patterns, of))  # [1, 1, n, D]
        return fast(q, k, v, float(self.beta))[0, 0]

    def weights(self, xi: Tensor) -> Tensor:
        """p = softmax(beta X xi) [B, N]."""
        return torch.softmax(self.beta * xi @ self.patterns.T, 1)

    def energy(self, xi: Tensor) -> Tensor:
        X, found = self.patterns, []
        M2, N = X.square().sum(1).max(), len(X)
        for some in blocks(xi, N):
            lse = (self.beta * some @ X.T).logsumexp(1) / self.beta
            found.append(-lse + 0.5 * some.square().sum(1) + math.log(N) / self.beta + 0.5 * M2)
        return torch.cat(found)

    def kinds(self, xi: Tensor) -> list[str]:
        """What each state is close to: one pattern, the average of some, or that of all."""
        N, found = len(self.patterns), []
        for some in blocks(xi, N):
            p = self.weights(some).sort(1, descending=True).values.cumsum(1)  # [b, N]
            n = (p < MOST_WEIGHT).sum(1) + 1  # [b] patterns with most of the weight
            found += [SINGLE if k == 1 else GLOBAL if 2 * k > N else METASTABLE for k in n.tolist()]
        return found


def separation(X: Tensor) -> Tensor:
    """Delta_n = x_n^T x_n - max_{m != n} x_n^T x_m of patterns X [N, D]: [N].

    >>> separation(torch.eye(3)).tolist()
    [1.0, 1.0, 1.0]
    """
    found = []
    for some in blocks(torch.arange(len(X), device=X.device), len(X)):
        products = X[some] @ X.T  # [b, N]
        own = products.gather(1, some[:, None])[:, 0]
        products.scatter_(1, some[:, None], -torch.inf)
        found.append(own - products.amax(1) if len(X) > 1 else own)
    return torch.cat(found)


def propose_beta(X: Tensor) -> float:
    """A beta under which most patterns are distinguished, also by queries that have lost half of the separation.

    (N - 1) exp(-beta Delta / 2) = SURE, Delta the separation that 99 % of the separated patterns exceed.
    """
    delta = separation(X)
    apart = delta[delta > 0]
    if len(apart) == 0:
        scale = float(X.square().sum(1).mean())
        return 1.0 / max(scale, torch.finfo(X.dtype).tiny)
    low = float(apart.sort().values[len(apart) // 100])
    return 2 * math.log(max(len(X) - 1, 1) / SURE) / low
