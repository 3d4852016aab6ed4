"""Scores s(z_q, z_k): how well a query fits a key. All take q [..., T, m_q] and k [..., S, m_k] -> [..., T, S].

Leading axes (batch, heads) are treated alike; as in eq. (7.25) one function s serves all heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError, nearest
from unrolled.layers.recurrent.cells import uniform


class Score(nn.Module):
    """A score function; `scale` is its factor where it is a plain inner product (fast kernels take those), else None.

    s(q, k) = meet(q, keys(k)): `keys` makes all that hangs on the keys alone, once for all the queries of a source.

    >>> Dot(3, 3)(torch.ones(2, 3), torch.ones(5, 3))[0].tolist()
    [3.0, 3.0, 3.0, 3.0, 3.0]
    """

    scale: float | None = None
    query_cost: int = 0  # multiply-adds of `meet` for a query alone
    pair_cost: int = 0  # and for each key that it meets

    def keys(self, k: Tensor) -> Tensor:
        """k [..., S, m_k] -> [..., S, n]."""
        return k

    def meet(self, q: Tensor, keys: Tensor) -> Tensor:
        """q [..., T, m_q] and what `keys` made -> [..., T, S]."""
        raise NotImplementedError(f"{type(self).__name__} must define meet(q, keys) -> scores")

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.meet(q, self.keys(k))


class Dot(Score):
    """s(q, k) = q . k, for m_q = m_k."""

    def __init__(self, m_q: int, m_k: int) -> None:
        super().__init__()
        if m_q != m_k:
            raise UsageError(
                f"an inner product needs queries and keys of equal width, found {m_q} and {m_k}; use the score general"
            )
        self.scale, self.pair_cost = 1.0, m_q

    def meet(self, q: Tensor, keys: Tensor) -> Tensor:
        assert self.scale is not None
        return (q * self.scale) @ keys.mT  # [..., T, S]


class ScaledDot(Dot):
    """s(q, k) = q . k / sqrt(max(m_q, m_k)), which keeps scores in a range where the softmax still has a slope."""

    def __init__(self, m_q: int, m_k: int) -> None:
        super().__init__(m_q, m_k)
        self.scale = max(m_q, m_k) ** -0.5


class General(Score):
    """s(q, k) = q^T W k   (Luong et al. 2015); queries and keys may have different widths."""

    def __init__(self, m_q: int, m_k: int) -> None:
        super().__init__()
        self.W = uniform(max(m_q, m_k), m_q, m_k)
        self.pair_cost = m_q

    def keys(self, k: Tensor) -> Tensor:
        return k @ self.W.mT  # [..., S, m_q]

    def meet(self, q: Tensor, keys: Tensor) -> Tensor:
        return q @ keys.mT  # [..., T, S]


class Concatenation(Score):
    """s(q, k) = v^T tanh(W [q; k])   (Luong et al. 2015).

    The same function as `Additive` with W = [W_a U_a]; the weights are kept side by side. Memory T x S x d_score.
    """

    def __init__(self, m_q: int, m_k: int, d_score: int | None = None) -> None:
        super().__init__()
        d_score = m_q if d_score is None else d_score  # as wide as the state that asks (Bahdanau et al. 2015, A.2.2)
        self.m_q = m_q
        self.W = uniform(m_q + m_k, d_score, m_q + m_k)
        self.v = uniform(d_score, d_score)
        self.query_cost, self.pair_cost = m_q * d_score, d_score

    def keys(self, k: Tensor) -> Tensor:
        return k @ self.W[:, self.m_q :].mT  # [..., S, n]

    def meet(self, q: Tensor, keys: Tensor) -> Tensor:
        query = q @ self.W[:, : self.m_q].mT  # [..., T, n]
        return torch.tanh(query.unsqueeze(-2) + keys.unsqueeze(-3)) @ self.v  # [..., T, S]


class Additive(Score):
    """s(q, k) = v_a^T tanh(W_a q + U_a k)   (Bahdanau et al. 2015; eq. 4.5 of the lecture notes)."""

    def __init__(self, m_q: int, m_k: int, d_score: int | None = None) -> None:
        super().__init__()
        d_score = m_q if d_score is None else d_score  # as wide as the state that asks (Bahdanau et al. 2015, A.2.2)
        self.W_a = uniform(m_q + m_k, d_score, m_q)
        self.U_a = uniform(m_q + m_k, d_score, m_k)
        self.v_a = uniform(d_score, d_score)
        self.query_cost, self.pair_cost = m_q * d_score, d_score

    def keys(self, k: Tensor) -> Tensor:
        return k @ self.U_a.mT  # [..., S, n]

    def meet(self, q: Tensor, keys: Tensor) -> Tensor:
        query = q @ self.W_a.mT  # [..., T, n]
        return torch.tanh(query.unsqueeze(-2) + keys.unsqueeze(-3)) @ self.v_a  # [..., T, S]


SCORES: dict[str, Callable[[int, int], Score]] = {
    "dot": Dot, "scaled-dot": ScaledDot, "general": General, "concatenation": Concatenation, "additive": Additive,
}  # fmt: skip


def score_named(name: str, m_q: int, m_k: int) -> Score:
    """A new score function for queries and keys of these widths."""
    if name not in SCORES:
        raise UsageError(f"there is no score '{name}'; {nearest(name, SCORES)}")
    return SCORES[name](m_q, m_k)
