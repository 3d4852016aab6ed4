"""Target of the nearest neighbour: the text of the most similar training source.

    z = each source brought to `length` steps             n(x) = argmin_n |z - z^n|
    p(y_t | x) = (1 - e) [y_t = r_t] + e u(y_t)           r: the target of n(x), or the most frequent one of all

Cover & Hart (1967). u is how often a token is a target, e the share of targets that are not so explained where each
training example is answered by its nearest other one, at most one half. Where only the most frequent target is kept, no
source counts: what every other model has to beat.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.lexicon import Seen
from unrolled.layers.counting.neighbours import nearest, resampled
from unrolled.layers.counting.retrieval import Recalled, Recalling, targets_of

BEFORE = 64  # examples that an unsolved model has
TRIED = 1000  # training examples, evenly spread, whose own neighbours are looked for


class Config(config.Config):
    kept: Literal["examples", "frequent"] = "examples"
    """Keep training examples with their targets, or only the most frequent target."""
    length: int = Field(16, ge=1)
    """Length that sources are resampled to."""
    examples: int = Field(4000, ge=2)
    """Maximum number of training examples that are kept, evenly spread."""


class Nearest(Recalled):
    TABLES: ClassVar[tuple[str, ...]] = ("targets", "sources")
    sources: Tensor  # [n, L, D]

    def __init__(self, config: Config, d_out: int, d_source: int) -> None:
        super().__init__(d_out)
        self.config, self.d_source = config, d_source
        random = torch.Generator().manual_seed(0)  # before it is solved it is as if it had seen noise
        self.register_buffer("sources", torch.randn(BEFORE, config.length, d_source, generator=random))
        k = np.arange(BEFORE)
        self.targets = torch.from_numpy(np.stack([k % d_out, k // d_out % d_out], axis=1))  # [n, 2]

    def fault(self, tables: dict[str, Tensor]) -> str:
        n, L = len(tables["targets"]), self.config.length
        fits = tables["sources"].shape == (n, L, self.d_source)
        return super().fault(tables) if fits else "the sizes of its tables do not match"

    def choose(self, source: Tensor, mask: Tensor) -> Tensor:
        return nearest(resampled(source, mask, self.config.length), self.sources)

    def solve(self, data: Seen) -> None:
        n = len(data.target_offsets) - 1
        if self.config.kept == "frequent":
            self._solve_frequent(data, np.arange(n))
            return
        kept = np.arange(min(n, self.config.examples)) * n // min(n, self.config.examples)
        z = torch.cat([self._brought(data, int(i)) for i in kept])  # [k, L, D]
        some = np.arange(min(len(kept), TRIED)) * len(kept) // min(len(kept), TRIED)
        own = torch.from_numpy(some)
        said = nearest(z[own], z, own=own) if len(kept) > 1 else own
        self.keep({"sources": z})
        self.recall(targets_of(data, kept), data, kept[some], said)

    def _solve_frequent(self, data: Seen, everyone: NDArray[np.int64]) -> None:
        targets = [target.tobytes() for target in targets_of(data, everyone)]
        first = targets.index(Counter(targets).most_common(1)[0][0])
        self.keep({"sources": self._brought(data, first)})
        self.recall(targets_of(data, everyone[first : first + 1]), data, everyone, torch.zeros(len(everyone)))

    def _brought(self, data: Seen, i: int) -> Tensor:
        source = data.source[data.source_offsets[i] : data.source_offsets[i + 1]].astype(np.float32)  # [S, D]
        mask = torch.ones(1, len(source), dtype=torch.bool)
        return resampled(torch.from_numpy(source)[None], mask, self.config.length)


def make(config: Config, sizes: Sizes) -> Recalling:
    return Recalling(Nearest(config, sizes.d_out, sizes.d_source))


MODEL = ModelSpec(
    summary="nearest neighbour: the target text of the most similar training source",
    kind="conditional",
    config=Config,
    tiny=Config(length=3, examples=4),
    make=make,
    reference="Cover & Hart 1967",
    reads=("tokens",),
    reads_source=("numbers",),
    outputs=("next",),
    owns_head=True,
    closed_form=("tokens",),
)
