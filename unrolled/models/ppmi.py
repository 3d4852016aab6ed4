"""PPMI: word vectors from counts, the best approximation of how much more often words meet than by chance.

    M_cw = max(0, log n(c, w) n / (n(c) n'(w))),   n'(w) = n(w)^a sum n / sum n^a,   a = 0.75        (positive PMI)
    M ~ V S U^T,   v_c = V_c sqrt(S),   u_w = U_w sqrt(S),   y_w = u_w . v + log p(w)

Levy, Goldberg & Dagan (2015), section 3. What word2vec is measured against: the same windows, counted.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from scipy import sparse

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.parts.context_words import ContextWords

ROUNDS, MORE = 4, 10  # of the approximation, and directions beyond those that are kept


class Config(config.Config):
    power: float = Field(0.75, ge=0, le=1)
    """Exponent a of the smoothed counts of words; 1: counts as they are."""


class Counted(ContextWords):
    """Vectors that are fitted in closed form."""

    def __init__(self, n_words: int, width: int, power: float) -> None:
        super().__init__(n_words, width)
        self.power = power
        for weight in self.parameters():
            weight.requires_grad_(False)

    def solve(self, batches: Known) -> None:
        """From contexts x [N, S] with their mask and the words y [N] in them."""
        V, D = self.embedding.weight.shape
        counts, seen = sparse.csr_array((V, V), dtype=np.float64), np.zeros(V)
        for x, mask, y in batches:
            words = y[:, None].expand(x.shape)[mask].numpy()
            pairs = x[mask].numpy(), words
            counts = counts + sparse.coo_array((np.ones(len(words)), pairs), (V, V)).tocsr()
            seen += np.bincount(y.numpy(), minlength=V)
        table = positive_pmi(counts, self.power)
        left, size, right = factors(table, min(D, V))
        for weight, side in ((self.embedding.weight, left), (self.head.weight, right)):
            weight.zero_()
            weight[:, : len(size)] = torch.from_numpy(side * np.sqrt(size)).to(weight)
        self.base.copy_(torch.from_numpy(np.log((seen + 1e-6) / (seen.sum() + 1e-6 * V))))


def positive_pmi(counts: sparse.csr_array, power: float) -> sparse.csr_array:
    """M, of the pairs that were seen."""
    found = counts.tocoo()
    row, column = counts.sum(1), counts.sum(0) ** power
    column = column * (counts.sum() / max(column.sum(), 1e-300))
    pmi = np.log(found.data * counts.sum() / (row[found.row] * column[found.col]))
    kept = pmi > 0
    return sparse.coo_array((pmi[kept], (found.row[kept], found.col[kept])), counts.shape).tocsr()


def factors(table: sparse.csr_array, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V [n, r], S [r], U [n, r] of the largest singular values, by random directions (Halko et al. 2011)."""
    random = np.random.default_rng(0)
    q = table @ random.normal(size=(table.shape[1], min(rank + MORE, table.shape[1])))
    for _ in range(ROUNDS):
        q = table @ (table.T @ np.linalg.qr(q)[0])
    q = np.linalg.qr(q)[0]  # [n, r + more]
    left, size, right = np.linalg.svd((table.T @ q).T, full_matrices=False)
    return (q @ left)[:, :rank], size[:rank], right[:rank].T


def make(config: Config, sizes: Sizes) -> Counted:
    return Counted(sizes.d_out, sizes.width, config.power)


MODEL = ModelSpec(
    summary="word vectors from counts: positive mutual information and singular values",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Levy, Goldberg & Dagan 2015",
    aliases=("pmi", "svd", "lsa", "counts"),
    reads=("tokens",),
    outputs=("context",),
    owns_head=True,
    closed_form=("context",),
    preset="quick",
)
