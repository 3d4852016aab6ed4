"""Copy, a baseline: the source itself is the prediction.

    p(y_t | source) = (1 - e) [y_t is written like s_t] + e u(y_t)          after the end of the source <stop>

u is how often a token is a target, e the share of targets that are not so explained; both are counted.
"""

from __future__ import annotations

import torch

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.lexicon import Pairs, WordByWord, Worded


class Config(config.Config):
    pass


class Copy(WordByWord):
    def solve(self, data: Pairs) -> None:
        same = torch.from_numpy(data.same)[:, None]  # [V_s, 1]
        self.fill(same, torch.ones(same.shape), data)


def make(config: Config, sizes: Sizes) -> Worded:
    return Worded(Copy(sizes.d_source, sizes.d_out, kept=1))


MODEL = ModelSpec(
    summary="baseline: the source itself is the prediction",
    kind="conditional",
    config=Config,
    tiny=Config(),
    make=make,
    reference="doing nothing",
    reads=("tokens",),
    reads_source=("tokens",),
    outputs=("next",),
    owns_head=True,
    closed_form=("tokens",),
)
