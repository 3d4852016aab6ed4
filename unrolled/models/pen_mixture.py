"""Pen mixture: the next move of a pen from the move before it, or from nothing; fitted by expectation maximisation.

    order 0    p(v) = sum_k w_k N(v; m_k, S_k),                          p(state) = its frequency
    order 1    p(u, v | s) = sum_k w_k N((u, v); m_k, S_k),   u the move before and s what the pen did after it
               p(v | u, s) = sum_k w_k(u) N(v; m_v + S_vu S_uu^-1 (u - m_u), S_vv - S_vu S_uu^-1 S_uv)
               w_k(u) ~ w_k N(u; m_u, S_uu),                  p(state | u, s) = sum_k w_k(u) e_k

s is one of start, down and lift, with a mixture for each; e_k are the frequencies of the states under w_k(u).
What a model with memory must beat: it has as many components as the mixture that the model predicts.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from unrolled.core import config
from unrolled.core.batch import TARGET
from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.data.examples import Examples
from unrolled.emissions.pen import LEAST, STATES, WIDTH, Pen
from unrolled.layers.counting.gaussian_mixture import Components, fit_mixture, responsibilities

GROUPS = 3  # start, down, lift
POINTS = 50_000  # of a group that a mixture is fitted to, at most
FLOOR = math.exp(2 * LEAST)  # of a variance: that of the emission


class Config(config.Config):
    order: Literal[0, 1] = 1
    """How many moves before are used."""


class PenMixture(Causal):
    """x [B, T, 5] -> y [B, T, 6 K + 3]. There is nothing to carry."""

    receptive_field = 1

    d_in: int

    log_w: Tensor  # [3, K]
    before: Tensor  # [3, K, 2] m_u
    after: Tensor  # [3, K, 2] m_v
    narrow: Tensor  # [3, K, 2, 2] the inverse of the Cholesky factor of S_uu
    slope: Tensor  # [3, K, 2, 2] S_vu S_uu^-1
    left: Tensor  # [3, K, 2, 2] the covariance of v that u leaves
    log_e: Tensor  # [3, K, 3]

    def __init__(self, order: int, d_in: int, d_out: int) -> None:
        super().__init__()
        K = max((d_out - len(STATES)) // 6, 1)
        self.pen = Pen(K)
        self.order, self.d_in, self.d_out = order, d_in, d_out
        eye = torch.eye(2).expand(GROUPS, K, 2, 2)
        shapes = {"log_w": (K,), "before": (K, 2), "after": (K, 2), "log_e": (K, len(STATES))}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(GROUPS, *shape))
        self.register_buffer("narrow", eye.clone())
        self.register_buffer("slope", torch.zeros(GROUPS, K, 2, 2))
        self.register_buffer("left", eye.clone())

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        x = F.pad(x, (0, WIDTH - self.d_in))
        s = group_of(x[..., 2:])  # [B, T]
        off = x[..., None, :2] - self.before.to(x)[s]  # [B, T, K, 2]
        z = (self.narrow.to(x)[s] @ off.unsqueeze(-1)).squeeze(-1)
        mu = self.after.to(x)[s] + (self.slope.to(x)[s] @ off.unsqueeze(-1)).squeeze(-1)
        log_w = self.log_w.to(x)[s]  # [B, T, K]
        if self.order == 1:
            log_w = log_w - z.square().sum(-1) / 2 + self.narrow.to(x)[s].diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_w = log_w.log_softmax(-1)
        log_e = torch.logsumexp(log_w.unsqueeze(-1) + self.log_e.to(x)[s].log_softmax(-1), dim=-2)  # [B, T, 3]
        return F.pad(self.pen.outputs(log_w, mu, self.left.to(x)[s], log_e), (0, self.d_out - self.pen.d_out)), ()

    def solve(self, data: Examples, ahead: int = 1) -> None:
        """Fit each group; one without points is fitted to all."""
        if self.pen.d_out != self.d_out or self.d_in != WIDTH:
            raise DataError(
                f"pen-mixture predicts the moves of a pen, not {self.d_out} outputs from {self.d_in} inputs"
            )
        random = np.random.default_rng(0)
        before, now = pairs(data)
        if self.order == 0:
            before = np.zeros_like(before)
        groups = group_of(torch.from_numpy(before[:, 2:])).numpy()
        for s in range(GROUPS if self.order == 1 else 1):
            chosen = np.flatnonzero(groups == s) if (groups == s).any() else np.arange(len(now))
            if len(chosen) > POINTS:
                chosen = np.sort(random.choice(chosen, POINTS, replace=False))
            self._fit(s, before[chosen], now[chosen], random)
        if self.order == 0:  # whatever the pen did
            for buffer in self.buffers():
                buffer.copy_(buffer[:1].clone().expand_as(buffer))

    def _fit(self, s: int, before: NDArray[np.float64], now: NDArray[np.float64], random: np.random.Generator) -> None:
        found = fit_mixture(np.hstack([before[:, :2], now[:, :2]]), self.pen.n_mixtures, FLOOR, random)
        m, S = found.means, found.covariances
        S_uu, S_vu, S_vv = S[:, :2, :2], S[:, 2:, :2], S[:, 2:, 2:]
        slope = S_vu @ np.linalg.inv(S_uu)
        r, _ = responsibilities(Components(found.weights, m[:, :2], S_uu).log_joint(before[:, :2]))  # w_k(u) [N, K]
        counts = r.T @ now[:, 2:] + 0.5 / self.pen.n_mixtures  # [K, 3]
        told = {
            "log_w": np.log(found.weights), "before": m[:, :2], "after": m[:, 2:], "slope": slope,
            "narrow": np.linalg.inv(np.linalg.cholesky(S_uu)), "left": S_vv - slope @ S_vu.transpose(0, 2, 1),
            "log_e": np.log(counts / counts.sum(axis=1, keepdims=True)),
        }  # fmt: skip
        for name, value in told.items():
            self.get_buffer(name)[s] = torch.from_numpy(value).to(self.log_w)


def group_of(states: Tensor) -> Tensor:
    """0 at the start, where there is no state yet, 1 where the pen is down, 2 where it is lifted: [..] of [.., 3].

    >>> group_of(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])).tolist()
    [0, 1, 2, 2]
    """
    down, up = states[..., 0] > 0.5, (states[..., 1:] > 0.5).any(-1)
    return torch.where(down, 1, torch.where(up, 2, 0))


def pairs(data: Examples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every move [N, 5] and the one before it, of zeros at the start of a drawing."""
    field = data.fields[TARGET]
    now = np.asarray(field.values, np.float64)
    before = np.concatenate([np.zeros((1, WIDTH)), now[:-1]])
    before[field.offsets[0][:-1]] = 0
    return before, now


def make(config: Config, sizes: Sizes) -> PenMixture:
    return PenMixture(config.order, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="a mixture of moves given the move before; fitted by expectation maximisation",
    kind="causal",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Dempster, Laird & Rubin 1977",
    reads=("numbers",),
    outputs=("next",),
    owns_head=True,
    closed_form=("pen",),
)
