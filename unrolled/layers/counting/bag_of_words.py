"""Bags of tokens: a sequence as one vector of counts, the order gone.

    counts:  z_i = count(w_i)
    tf-idf:  z_i = count(w_i) (log((1 + n) / (1 + n_i)) + 1), then z / |z|       n examples, n_i of them with w_i

Spärck Jones (1972), in the smoothed form of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Encoder
from unrolled.core.errors import UsageError


class Bag(Encoder):
    """Tokens x [B, S] with mask [B, S] -> counts or tf-idf [B, 1, V], and a mask of ones [B, 1]."""

    idf: Tensor  # [V]

    def __init__(self, n_tokens: int, features: str = "counts") -> None:
        super().__init__()
        if features not in ("counts", "tf-idf"):
            raise UsageError(f"invalid value features = '{features}': expected counts or tf-idf")
        self.features = features
        self.register_buffer("idf", torch.ones(n_tokens))
        self.d_out = n_tokens

    def count_documents(self, documents: Iterable[NDArray[Any]]) -> None:
        """Learn n_i from the ids of every document."""
        n, seen = 0, np.zeros(len(self.idf))
        for ids in documents:
            n += 1
            seen[np.unique(ids)] += 1
        self.idf.copy_(torch.from_numpy(np.log((1 + n) / (1 + seen)) + 1))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        none = self.idf.new_zeros(x.shape[0], len(self.idf))
        z = none.scatter_add(1, x.masked_fill(~mask, 0), mask.to(none.dtype))  # [B, V]
        if self.features == "tf-idf":
            z = torch.nn.functional.normalize(z * self.idf, dim=1)
        return z.unsqueeze(1), mask.new_ones(mask.shape[0], 1)
