"""Scores s(z_q, z_k): how well a query fits a key. All take q [..., T, m_q] and k [..., S, m_k] -> [..., T, S].

Leading axes (batch, heads) are treated alike; as in eq. (7.25) one function s serves all heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError, nearest
from unrolled.layers.cells import uniform


class Score(nn.Module):
    """A score function; `scale` is its factor where it is a plain inner product (fast kernels take those), else None.

    >>> Dot(3, 3)(torch.ones(2, 3), torch.ones(5, 3))[0].tolist()
    [3.0, 3.0, 3.0, 3.0, 3.0]
    """

    scale: float | None = None

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define forward(q, k) -> scores")


class Dot(Score):
    """s(q, k) = q . k, for m_q = m_k."""

    def __init__(self, m_q: int, m_k: int) -> None:
        super().__init__()
        if m_q != m_k:
            raise UsageError(f"an inner product needs queries and keys of one width, not {m_q} and {m_k}; take general")
        self.scale = 1.0

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        assert self.scale is not None
        return (q * self.scale) @ k.mT  # [..., T, S]


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

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return (q @ self.W) @ k.mT  # [..., T, S]


class Concatenation(Score):
    """s(q, k) = v^T tanh(W [q; k])   (Luong et al. 2015).

    The same function as `Additive` with W = [W_a U_a]; the weights are kept side by side. Memory T x S x d_score.
    """

    def __init__(self, m_q: int, m_k: int, d_score: int | None = None) -> None:
        super().__init__()
        d_score = max(m_q, m_k) if d_score is None else d_score
        self.W = uniform(m_q + m_k, d_score, m_q + m_k)
        self.v = uniform(d_score, d_score)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        T, S = q.shape[-2], k.shape[-2]
        pairs = torch.cat(
            [q.unsqueeze(-2).expand(*q.shape[:-1], S, -1), k.unsqueeze(-3).expand(*k.shape[:-2], T, S, -1)], dim=-1
        )  # [..., T, S, m_q + m_k]
        return torch.tanh(pairs @ self.W.mT) @ self.v  # [..., T, S]


class Additive(Score):
    """s(q, k) = v_a^T tanh(W_a q + U_a k)   (Bahdanau et al. 2015; eq. 4.5 of the lecture notes)."""

    def __init__(self, m_q: int, m_k: int, d_score: int | None = None) -> None:
        super().__init__()
        d_score = max(m_q, m_k) if d_score is None else d_score
        self.W_a = uniform(m_q + m_k, d_score, m_q)
        self.U_a = uniform(m_q + m_k, d_score, m_k)
        self.v_a = uniform(d_score, d_score)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        query, key = q @ self.W_a.mT, k @ self.U_a.mT  # [..., T, n], [..., S, n]
        return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ self.v_a  # [..., T, S]


SCORES: dict[str, Callable[[int, int], Score]] = {
    "dot": Dot, "scaled-dot": ScaledDot, "general": General, "concatenation": Concatenation, "additive": Additive,
}  # fmt: skip


def score_named(name: str, m_q: int, m_k: int) -> Score:
    """A new score function for queries and keys of these widths."""
    if name not in SCORES:
        raise UsageError(f"there is no score '{name}'; {nearest(name, SCORES)}")
    return SCORES[name](m_q, m_k)
