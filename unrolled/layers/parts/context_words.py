"""A word from the words around it: the mean of their vectors, and one vector of another table for every word.

    h = 1/|X| sum_{w in X} v_w,        y_w = u_w . h + b_w

The v are the word vectors (`embedding`), the u those of words as they are predicted (`head`). With negative sampling
u_w . h tends to log p(w | X) / (k q(w)), where k words are drawn from q for each real one (Levy & Goldberg 2014), so
that b_w = log k q(w) makes y log-probabilities but for a constant.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.core.batch import Batch
from unrolled.core.causal import Encoder
from unrolled.core.errors import UsageError
from unrolled.kernels.negative_sampling import descend
from unrolled.layers.parts.embedding import Table


class ContextWords(Encoder):
    """Words x [B, S] with their mask -> y [B, 1, V]. It starts as in word2vec: small vectors, and u = 0."""

    base: Tensor  # [V], b

    def __init__(self, n_words: int, width: int) -> None:
        super().__init__()
        self.embedding = Table(n_words, width)
        self.head = nn.Linear(width, n_words, bias=False)
        nn.init.uniform_(self.embedding.weight, -0.5 / width, 0.5 / width)
        nn.init.zeros_(self.head.weight)
        self.register_buffer("base", torch.zeros(n_words))
        self.d_out = n_words

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        y = self.head(self.mean(x, mask)) + self.base  # [B, V]
        return y[:, None], mask.new_ones(mask.shape[0], 1)

    def mean(self, x: Tensor, mask: Tensor) -> Tensor:
        """h [.., D] of words [.., S]; zeros where there is none."""
        if mask.shape != x.shape:
            raise UsageError(f"x has the shape {list(x.shape)}, its mask {list(mask.shape)}: expected the same")
        vectors = torch.where(mask[..., None], self.embedding(x), 0.0)  # [.., S, D]
        return vectors.sum(-2) / mask.sum(-1, keepdim=True).clamp_min(1)

    def among(self, x: Tensor, mask: Tensor, words: Tensor) -> Tensor:
        """y [N, I, J] of some words [N, J] alone, from each of the inputs x [N, I, S] of a position."""
        h, u = self.mean(x, mask), self.head.weight[words]  # [N, I, D], [N, J, D]
        return h @ u.mT + self.base[words][:, None]

    def serial_steps(self, length: int) -> int:
        return 2


class Word2Vec(ContextWords):
    """The same, which learns by negative sampling, position after position (kernels/negative_sampling.py)."""

    def __init__(self, n_words: int, width: int, workers: int = 1) -> None:
        super().__init__(n_words, width)
        self.workers = workers

    def learn(self, batch: Batch, rate: float) -> tuple[float, int]:
        """Move the vectors along x [N, I, S], where 0 is no word, and the targets [N, 1 + k], the real one first."""
        v, u = self.embedding.weight, self.head.weight
        if v.device.type != "cpu":
            raise UsageError(f"word2vec is trained on the CPU, and this model is on {v.device}: choose the device cpu")
        rates = rate if v.requires_grad else 0.0, rate if u.requires_grad else 0.0
        vectors, outputs = v.detach().numpy(), u.detach().numpy()
        return descend(vectors, outputs, batch.x.numpy(), batch.y.numpy(), rates, self.workers)
