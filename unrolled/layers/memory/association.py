"""The Hopfield layer: a continuous memory with learned maps around it, which at one update is attention.

    Q = R W_Q,   K = Y W_K,   V = K W_V                                                                (7.8)-(7.10)
    Q <- softmax(beta Q K^T) K        updates - 1 times
    Z  = softmax(beta Q K^T) V        at beta = 1 / sqrt(d_k) and one update: scaled dot-product attention   (7.11)

R are the states, Y the stored patterns. Three uses:

    Association     both are given: two sets of vectors are brought together
    HopfieldPooling R is learned: a sequence or a bag becomes one vector (layers/readouts/hopfield.py)
    Lookup          Y is learned: every vector is looked up among patterns that training finds

beta is 1 / sqrt(d_k), given, or learned. Ramsauer et al. (2020).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError
from unrolled.core.trace import note, tracing
from unrolled.layers.attention.attention import fast

LEARNED = "learned"


class Hopfield(nn.Module):
    """Retrieval with learned maps: states [B, S, d_state], stored [B, N, d_stored] and their mask -> [B, S, d_out]."""

    def __init__(
        self,
        d_state: int,
        d_stored: int,
        d_key: int,
        d_out: int,
        updates: int = 1,
        beta: float | str | None = None,
    ) -> None:
        super().__init__()
        if updates < 1:
            raise UsageError(f"invalid value updates = {updates}: expected an integer >= 1")
        if isinstance(beta, str) and beta != LEARNED:
            raise UsageError(f"invalid value beta = '{beta}': expected a number > 0 or '{LEARNED}'")
        if isinstance(beta, int | float) and not (0 < beta < math.inf):
            raise UsageError(f"invalid value beta = {beta:g}: expected a number > 0")
        self.d_out, self.updates = d_out, updates
        self.W_q = nn.Linear(d_state, d_key, bias=False)
        self.W_k = nn.Linear(d_stored, d_key, bias=False)
        self.W_v = nn.Linear(d_key, d_out, bias=False)
        start = math.log(d_key**-0.5 if beta is None or isinstance(beta, str) else beta)
        self.log_beta: Tensor
        if beta == LEARNED:
            self.log_beta = nn.Parameter(torch.tensor(start))
        else:
            self.register_buffer("log_beta", torch.tensor(start))

    def forward(self, states: Tensor, stored: Tensor, mask: Tensor | None = None) -> Tensor:
        """mask [B, N] True at stored patterns that are real; a row without one gives zeros."""
        beta = self.log_beta.exp()
        q, k = beta * self.W_q(states), self.W_k(stored)  # [B, S, m], [B, N, m]
        admitted = nobody = None
        if mask is not None:
            nobody = ~mask.any(1)[:, None, None]  # [B, 1, 1]
            admitted = mask[:, None] | nobody  # [B, 1, N]
        for _ in range(self.updates - 1):
            q = beta * fast(q, k, k, 1.0, admitted)
        if tracing():
            s = q @ k.mT if admitted is None else (q @ k.mT).masked_fill(~admitted, -torch.inf)
            note("attention", s.softmax(-1).unsqueeze(1))  # [B, 1, S, N]
        z = fast(q, k, self.W_v(k), 1.0, admitted)  # [B, S, d_out]
        return z if nobody is None else z.masked_fill(nobody, 0.0)


class Lookup(nn.Module):
    """Every vector of x [B, T, D] looked up among `n_patterns` learned patterns: [B, T, d_out]. It knows no time."""

    def __init__(
        self, d_in: int, n_patterns: int, d_out: int | None = None, updates: int = 1, beta: float | str | None = None
    ) -> None:
        super().__init__()
        self.d_out = d_in if d_out is None else d_out
        self.patterns = nn.Parameter(torch.randn(n_patterns, d_in))
        self.memory = Hopfield(d_in, d_in, d_in, self.d_out, updates, beta)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(1, -1, x.shape[-1])  # [1, B T, D]
        z: Tensor = self.memory(flat, self.patterns[None])
        return z.view(*x.shape[:-1], self.d_out)


class Association(nn.Module):
    """Every state looks up what it is associated with in a second set; what it finds is added to it."""

    def __init__(
        self, d_state: int, d_stored: int, d_key: int | None = None, updates: int = 1, beta: float | str | None = None
    ) -> None:
        super().__init__()
        self.d_out = d_state
        self.memory = Hopfield(d_state, d_stored, d_key or d_state, d_state, updates, beta)

    def forward(self, states: Tensor, stored: Tensor, mask: Tensor | None = None) -> Tensor:
        found: Tensor = self.memory(states, stored, mask)
        return states + found
