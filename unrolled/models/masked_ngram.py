"""Masked n-gram, a baseline: counts of a token between its neighbours; fitted in closed form.

    p(w | l, r) = (n(l, w, r) + t(l, r) q(w)) / (n(l, r) + t(l, r)),     q(w) ~ p(w | l) p(w | r) / p(w)
    p(w | l) = (n(l, w) + t(l) p(w)) / (n(l) + t(l)),    p(w | r) alike      p(w) = (n(w) + 1) / (n + V)

l and r are the tokens before and after, n counts and t numbers of different tokens between (Witten & Bell 1991); q
takes l and r to be independent given w. With one side it is the bigram of that side, with none the unigram. A neighbour
that is hidden itself was never counted, so that it says nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.core.tokens import EMPTY

TABLES = ("left", "right", "both")
ROWS = 512  # distributions that are made at once


class Config(Base):
    context: Literal["both", "left", "right", "none"] = "both"
    """Neighbours that are looked at: both, the one before, the one after, or none."""


class MaskedNGram(Encoder):
    """Ids x [B, S], or [B, S, 2] with their segments -> log p of what stands at each position [B, S, d_out].

    `left`, `right` and `both` are sorted codes of contexts and tokens, c V + w, with their counts; the context of both
    sides is l V + r.
    """

    ones: Tensor  # [V] counts of tokens

    def __init__(self, config: Config, n_tokens: int, d_out: int) -> None:
        super().__init__()
        self.context, self.V, self.d_out = config.context, n_tokens, d_out
        self.register_buffer("ones", torch.zeros(n_tokens))
        for name in TABLES:
            self.register_buffer(f"{name}_codes", torch.empty(0, dtype=torch.long))
            self.register_buffer(f"{name}_counts", torch.empty(0))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        ids = without_padding(x[..., 0] if x.dim() == 3 else x, mask)  # [B, S]
        y = x.new_zeros((*ids.shape, self.d_out), dtype=self.ones.dtype)
        left, right = neighbours(ids, mask)
        for row in range(len(ids)):  # [S, V] at a time
            y[row, :, : self.V] = self._log_p(left[row], right[row])
        return without_padding(y, mask), mask

    def at(self, x: Tensor, places: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The same at places [B, K] alone: [B, K, d_out]."""
        ids = without_padding(x[..., 0] if x.dim() == 3 else x, mask)  # [B, S]
        left, right = (each.gather(1, places).flatten() for each in neighbours(ids, mask))  # [B K]
        y = x.new_zeros((len(left), self.d_out), dtype=self.ones.dtype)
        for begin in range(0, len(left), ROWS):
            some = slice(begin, begin + ROWS)
            y[some, : self.V] = self._log_p(left[some], right[some])
        return y.view(*places.shape, self.d_out), mask

    def _log_p(self, left: Tensor, right: Tensor) -> Tensor:
        """log p [n, V] between n tokens before and after."""
        p = ((self.ones + 1) / (self.ones.sum() + self.V)).expand(len(left), -1)  # [n, V]
        sides = {"left": left, "right": right}
        used = [name for name in sides if self.context in ("both", name)]
        if not used:
            return p.log()
        each = [self._smoothed(name, sides[name], p) for name in used]
        if len(each) == 1:
            return each[0].log()
        q = (each[0].log() + each[1].log() - p.log()).softmax(-1)
        return self._smoothed("both", left * self.V + right, q).log()

    def _smoothed(self, name: str, context: Tensor, below: Tensor) -> Tensor:
        """(n(c, w) + t(c) below(w)) / (n(c) + t(c)) of contexts [S], [S, V]; `below` where c was never counted."""
        codes, counts = self.get_buffer(f"{name}_codes"), self.get_buffer(f"{name}_counts")
        first = torch.searchsorted(codes, context * self.V)
        t = torch.searchsorted(codes, (context + 1) * self.V) - first  # [S] different tokens
        row = torch.repeat_interleave(torch.arange(len(t), device=t.device), t)
        entry = torch.arange(len(row), device=t.device) - (t.cumsum(0) - t - first)[row]
        n = torch.zeros_like(below).index_put((row, codes[entry] % self.V), counts[entry])  # [S, V]
        total = (n.sum(-1) + t)[:, None]
        return torch.where(total > 0, (n + t[:, None] * below) / total.clamp_min(1), below)

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """From ids and masks of all rows; the targets are the ids themselves, EMPTY where there is none."""
        codes: dict[str, list[Tensor]] = {name: [] for name in TABLES}
        ones = torch.zeros(self.V, dtype=torch.double)
        for x, mask, y in batches:
            ids, real = x[..., 0] if x.dim() == 3 else x, mask & (y != EMPTY)
            left, right = neighbours(ids, mask)
            w, a, b = ids[real], left[real], right[real]
            ones += torch.bincount(w, minlength=self.V)
            contexts = {"left": a, "right": b, "both": a * self.V + b}
            for name in TABLES:
                if self.context in ("both", name):
                    codes[name].append(contexts[name] * self.V + w)
        self.ones = ones.float()
        for name, found in codes.items():
            if found:
                unique, counts = torch.cat(found).unique(return_counts=True)
                self.register_buffer(f"{name}_codes", unique)
                self.register_buffer(f"{name}_counts", counts.float())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        """Tables come with the sizes that the data gave them."""
        for name in TABLES:
            codes, counts = (state_dict.get(f"{prefix}{name}_{what}") for what in ("codes", "counts"))
            if codes is None or counts is None:
                continue
            if codes.dim() != 1 or codes.shape != counts.shape or bool((codes.diff() <= 0).any()):
                others[-1].append(f"the table of {name} contexts is damaged")
                return
            self.register_buffer(f"{name}_codes", torch.empty(codes.shape, dtype=torch.long))
            self.register_buffer(f"{name}_counts", torch.empty(counts.shape))
        super()._load_from_state_dict(state_dict, prefix, *others)


def neighbours(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens before and after each [B, S], EMPTY at the ends.

    >>> left, right = neighbours(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool))
    >>> left.tolist(), right.tolist()
    ([[0, 5, 6]], [[6, 7, 0]])
    """
    real = ids.masked_fill(~mask, EMPTY)
    edge = real.new_full((len(ids), 1), EMPTY)
    return torch.cat([edge, real[:, :-1]], 1)[:, : ids.shape[1]], torch.cat([real[:, 1:], edge], 1)[:, : ids.shape[1]]


def make(config: Config, sizes: Sizes) -> MaskedNGram:
    return MaskedNGram(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="baseline: counts of a token between its neighbours; fitted in closed form",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Witten & Bell 1991",
    aliases=("two-sided-ngram", "gap-counts"),
    reads=("tokens",),
    outputs=("each",),
    owns_head=True,
    closed_form=("tokens",),
)
