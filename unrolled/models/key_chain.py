"""Key chain: an independent two-state Markov chain for each bit of a frame; fitted in closed form.

    p(v_{t+1,k} = 1 | v_{t,k} = i) = (n_k(i, 1) + 1/2) / (n_k(i, 0) + n_k(i, 1) + 1)          i = 0, 1

With order 0 nothing is looked at and p is the frequency of the bit. The logits are affine in the frame, so they are
defined for any vector. One half is added to each count (Krichevsky & Trofimov 1981).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from unrolled.core import config
from unrolled.core.batch import TARGET
from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.data.examples import Examples


class Config(config.Config):
    order: Literal[0, 1] = 1
    """Whether the previous value of the bit is used."""


class KeyChain(Causal):
    """y_t = a + slope * x_t, bit by bit: x [B, T, D] -> logits [B, T, D']. There is nothing to carry."""

    d_in: int

    receptive_field = 1

    logit: Tensor  # [D'] a, of a bit that was off
    slope: Tensor  # [D'] what it being on adds

    def __init__(self, order: int, d_in: int, d_out: int) -> None:
        super().__init__()
        self.order, self.d_in, self.d_out = order, d_in, d_out
        self.register_buffer("logit", torch.zeros(d_out))
        self.register_buffer("slope", torch.zeros(d_out))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        n = min(self.d_in, self.d_out)
        y = self.logit.to(x).expand(*x.shape[:2], self.d_out).clone()  # [B, T, D']
        y[..., :n] += self.slope[:n] * x[..., :n]
        return y, ()

    def solve(self, data: Examples, ahead: int = 1) -> None:
        """Count every bit against itself `ahead` frames before."""
        if self.d_in != self.d_out:
            raise DataError(f"key-chain predicts as many bits as it reads: {self.d_in}, not {self.d_out}")
        counts = np.zeros((2, 2, self.d_out))  # [before, now, D]
        for frames in data.fields[TARGET]:
            now = np.asarray(frames[ahead - 1 :], bool)  # [n, D]
            start = np.zeros((min(1, len(now)), self.d_out), bool)
            before = np.concatenate([start, frames[: max(len(frames) - ahead, 0)]]).astype(bool)  # [n, D]
            for i, was in enumerate((~before, before)):
                counts[i] += (was & ~now).sum(axis=0), (was & now).sum(axis=0)
        if counts.sum() == 0:
            raise DataError(
                f"there is nothing to count: no sequence has more than {ahead} frames; give longer sequences"
            )
        if self.order == 0:
            counts[:] = counts.sum(axis=0)
        logits = torch.from_numpy(np.log((counts[:, 1] + 0.5) / (counts[:, 0] + 0.5)))  # [2, D]
        self.logit.copy_(logits[0])
        self.slope.copy_(logits[1] - logits[0])


def make(config: Config, sizes: Sizes) -> KeyChain:
    return KeyChain(config.order, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="an independent two-state Markov chain for each bit of a frame; fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Krichevsky & Trofimov 1981",
    reads=("numbers",),
    outputs=("next",),
    owns_head=True,
    closed_form=("bits",),
)
