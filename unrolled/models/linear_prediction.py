"""Linear prediction, a baseline for sound: each sample from the last ones, with one normal error; in closed form.

    x_t = sum_k a_k x_{t-k} + e_t,     e_t ~ N(0, s^2)           k = 1 .. order, x = 0 before the start
    p(c) = (1 - eps) [Phi((r_c - m_t) / s) - Phi((l_c - m_t) / s)] + eps / L

a is the least-squares solution (the covariance method; Makhoul 1975), s^2 the mean square of the errors. Level c of
the sample gets the mass between its edges l_c and r_c, in the amplitude that they stand for; eps = 0.001 keeps levels
possible that a normal error never reaches. Where the task asks for a mixture of logistics, x are the places of the
levels and the error is one logistic of the same variance: s sqrt(3) / pi.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.batch import TARGET
from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.core.tokens import SPECIALS
from unrolled.data.codecs.samples import Samples, expand
from unrolled.data.examples import Examples

EPS = 1e-3
PIECE = 1 << 16  # samples that are summed over at once
RIDGE = 1e-9  # of the mean square
OFF = 20.0  # logits below 0 of components that have no weight


class Config(config.Config):
    order: int = Field(32, ge=1, le=1000)
    """How many of the last samples are looked at."""


class LinearPrediction(Causal):
    """The state is the last `order` samples [B, order]."""

    weights: Tensor  # [order], the first of the oldest sample
    deviation: Tensor  # [] s
    edges: Tensor  # [L - 1] in amplitude, between neighbouring levels
    heard: Tensor  # [V] amplitude of each token

    def __init__(self, order: int, d_in: int, d_out: int) -> None:
        super().__init__()
        self.order, self.d_out, self.receptive_field = order, d_out, order
        self.numbers = d_in == 1
        if self.numbers:
            self.d_in = 1
        levels = 2 if self.numbers else d_out - len(SPECIALS)
        codec = Samples(8)
        between = (2 * np.arange(levels - 1) + 1) / (levels - 1) - 1
        known = codec.decode(np.arange(codec.size)) if levels == codec.levels else np.zeros(max(d_in, 1))
        self.register_buffer("weights", torch.zeros(order))
        self.register_buffer("deviation", torch.ones(()))
        self.register_buffer("edges", torch.from_numpy(expand(between)).float(), persistent=False)
        self.register_buffer("heard", torch.from_numpy(known).float(), persistent=False)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        amplitude = x[..., 0] if self.numbers else self.heard[x.clamp(max=len(self.heard) - 1)]  # [B, T]
        past = amplitude.new_zeros(len(x), self.order) if state is None else state
        whole = torch.cat([past, amplitude], dim=1)  # [B, order + T]
        m = whole.unfold(1, self.order, 1)[:, 1:] @ self.weights.to(whole)  # [B, T]
        return (self._logistic(m) if self.numbers else self._masses(m)), whole[:, -self.order :].clone()

    def _masses(self, m: Tensor) -> Tensor:
        """log p of all tokens [B, T, V]."""
        at = (self.edges - m.unsqueeze(-1)) / self.deviation  # [B, T, L - 1]
        below = torch.special.ndtr(torch.cat([at.new_full((*m.shape, 1), -math.inf), at], dim=-1).double())
        above = torch.special.ndtr(-torch.cat([at, at.new_full((*m.shape, 1), math.inf)], dim=-1).double())
        p = (1 - below - above).clamp(min=0)
        log_p = ((1 - EPS) * p / p.sum(-1, keepdim=True) + EPS / p.shape[-1]).log().to(m.dtype)
        return torch.cat([log_p.new_full((*m.shape, len(SPECIALS)), -math.inf), log_p], dim=-1).clamp(min=-1e4)

    def _logistic(self, m: Tensor) -> Tensor:
        """Logits, mu and log s of a mixture, of which one component has all the weight: [B, T, 3 K]."""
        K = self.d_out // 3
        y = m.new_zeros(*m.shape, 3, K)
        y[..., 0, 1:] = -OFF
        y[..., 1, :] = m.unsqueeze(-1)
        y[..., 2, :] = torch.log(self.deviation.to(m) * math.sqrt(3) / math.pi)
        return y.flatten(-2)

    def solve(self, data: Examples, ahead: int = 1) -> None:
        """Least squares over all samples, in pieces."""
        n, cross = 0, np.zeros((self.order + 1, self.order + 1))
        for row in self._windows(data, ahead):
            cross += row.T @ row
            n += len(row)
        if n == 0:
            raise DataError("there is nothing to fit: the training data has no samples")
        A, b = cross[:-1, :-1], cross[:-1, -1]
        A = A + np.eye(self.order) * (RIDGE * np.trace(A) / self.order + 1e-12)
        a = np.linalg.solve(A, b)
        error = max((cross[-1, -1] - 2 * a @ b + a @ cross[:-1, :-1] @ a) / n, 1e-12)
        self.weights.copy_(torch.from_numpy(a))
        self.deviation.fill_(math.sqrt(error))

    def _windows(self, data: Examples, ahead: int) -> Iterator[NDArray[np.float64]]:
        """Rows [.., order + 1] of the last samples and the one that follows."""
        codec = Samples(16 if data.values(TARGET).dtype == np.int32 else 8)
        for ids in data.fields[TARGET]:
            for at in range(0, len(ids), PIECE):
                low = max(0, at - self.order - ahead + 1)
                some = ids[low : at + PIECE]
                x = (codec.places(some) if self.numbers else codec.decode(some)).astype(np.float64)
                x = np.concatenate([np.zeros(self.order + ahead - 1 - (at - low)), x])
                rows = np.lib.stride_tricks.sliding_window_view(x, self.order + ahead)
                yield rows[:, [*range(self.order), self.order + ahead - 1]]


def make(config: Config, sizes: Sizes) -> LinearPrediction:
    return LinearPrediction(config.order, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="baseline for sound: each sample linearly from the last ones, with a normal error; fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(order=3),
    make=make,
    reference="Makhoul 1975",
    aliases=("lpc",),
    reads=("tokens", "numbers"),
    outputs=("next",),
    owns_head=True,
    closed_form=("samples",),
)
