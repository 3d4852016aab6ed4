"""Naive Bayes on n-gram counts, the classical baseline for texts; fitted in closed form.

    log p(c | x) = log p(c) + sum_g count(g) log p(g | c) + const        p(g | c) = (n_{g,c} + a) / (n_c + a G)

Multinomial naive Bayes (McCallum & Nigam 1998) on all runs g of 1 to N tokens, of which pairs help most (Wang & Manning
2012), solved by counting; an n-gram is counted once a text when `once`. What is not set, a and `once`, is what errs
least on validation data (on a part of the training data with folds).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core.config import Config as Base
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.counting.ngram_features import OfGrams
from unrolled.layers.counting.regularised import Examples, least, left_out, misses

MANY = float(1 << 24)  # more often no n-gram is in a text
SMOOTHINGS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)


class Config(Base):
    longest: int | None = Field(None, ge=1, le=8)
    """N: length of the longest n-gram; none: 4 for vocabularies of less than 1,000 tokens, such as characters,
    otherwise 2, such as for words."""
    n_features: int = Field(200_000, ge=1)
    """Maximum number of n-grams, the most frequent ones; fewer if there are many classes."""
    smoothing: float | None = Field(None, gt=0)
    """a: additive smoothing of the counts; none: chosen on validation data, from 3 to 0.003."""
    once: bool | None = None
    """Whether an n-gram counts once per text, however often it occurs; none: chosen on validation data."""


class NaiveBayes(OfGrams):
    """Tokens x [B, T] with mask [B, T] -> log p(c, x) [B, 1, C] but for what is the same for all classes."""

    TABLES = ("keys", "given")
    given: Tensor  # [G, C] log p(g | c)
    prior: Tensor  # [C] log p(c)
    most: Tensor  # [] how often an n-gram counts at most

    def __init__(self, config: Config, n_tokens: int, d_out: int) -> None:
        super().__init__(n_tokens, d_out, config.longest, config.n_features)
        self.config = config
        self.register_buffer("given", torch.zeros(0, d_out))
        self.register_buffer("prior", torch.zeros(d_out))
        self.register_buffer("most", torch.tensor(MANY if config.once is False else 1.0))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        used, z = self.counts(x, mask, self.prior)  # [U], [B, U]
        y = torch.minimum(z, self.most) @ self.given[used] + self.prior  # [B, C]
        return y.unsqueeze(1), mask.new_ones(mask.shape[0], 1)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        state_dict.setdefault(f"{prefix}most", self.most)  # older runs say it in their settings
        super()._load_from_state_dict(state_dict, prefix, *others)

    def solve(self, batches: Known, held_out: Known = ()) -> dict[str, Any]:
        """From tokens, mask and classes [B] of all examples; says which settings were chosen."""
        z, keys, y = self.count(batches)  # [n, G], [G], [n]
        if y.is_floating_point():
            raise DataError("naive-bayes predicts one class, but these targets are sets of classes or numbers")
        known, held = Examples(z, y.numpy()), list(held_out)
        options = self._options()
        if len(options) > 1:
            others = [(known, Examples(*_numpy(self.count_in(held, keys))))] if held else [
                (known.take(~rows), known.take(rows)) for rows in left_out(len(y))
            ]  # fmt: skip
            totals = sum(np.array([self._miss(*pair, *option) for option in options]) for pair in others)
            options = [options[least(np.asarray(totals))]]
        [(once, smoothing)] = options
        given, prior = self._counted_given(known, once, smoothing)
        self.keep({"keys": torch.from_numpy(keys), "given": torch.from_numpy(given)})
        self.prior.copy_(torch.from_numpy(prior))
        self.most.fill_(1.0 if once else MANY)
        asked = {"smoothing": self.config.smoothing, "once": self.config.once}
        found = {"smoothing": smoothing, "once": once}
        return {name: value for name, value in found.items() if asked[name] is None}

    def _options(self) -> list[tuple[bool, float]]:
        once, a = self.config.once, self.config.smoothing
        return [(each, value) for each in ((True, False) if once is None else (once,))
                for value in (SMOOTHINGS if a is None else (a,))]  # fmt: skip

    def _counted_given(self, known: Examples, once: bool, a: float) -> tuple[Any, Any]:
        """log p(g | c) [G, C] and log p(c) [C]."""
        hot = np.eye(self.d_out)[known.y]  # [n, C]
        counts = _limited(known.z, once).T @ hot + a  # [G, C]
        classes = hot.sum(0) + a
        return np.log(counts / counts.sum(0)), np.log(classes / classes.sum())

    def _miss(self, known: Examples, others: Examples, once: bool, a: float) -> Any:
        given, prior = self._counted_given(known, once, a)
        return misses(_limited(others.z, once) @ given + prior, others.y)


def _limited(z: Any, once: bool) -> Any:
    return z.sign() if once else z


def _numpy(pair: tuple[Any, Tensor]) -> tuple[Any, Any]:
    return pair[0], pair[1].numpy()


def make(config: Config, sizes: Sizes) -> NaiveBayes:
    return NaiveBayes(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="naive Bayes on n-gram counts, the classical baseline for texts; fitted in closed form",
    kind="encoder",
    config=Config,
    tiny=Config(longest=2, n_features=50),
    make=make,
    reference="McCallum & Nigam 1998; Wang & Manning 2012",
    aliases=("nb", "bayes", "multinomial-nb"),
    reads=("tokens",),
    outputs=("whole",),
    owns_head=True,
    bags="also",
    closed_form=("class",),
)
