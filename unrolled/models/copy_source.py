"""Copy: the target is taken to be the source: what every translation has to beat.

    p(y_t | source) = (1 - e) [y_t is written like s_t] + e u(y_t)          after the end of the source <stop>

u is how often a token is a target, e the share of targets that are not so explained; both are counted.
"""

from __future__ import annotations

import torch

from unrolled.core import config
from unrolled.layers.word_by_word import Pairs, WordByWord, Worded

KIND = "conditional"
INPUT = "tokens"
OWNS_HEAD = True
CLOSED_FORM = ("tokens",)
REFERENCE = "doing nothing"


class Config(config.Config):
    pass


TINY = Config()


class Copy(WordByWord):
    def solve(self, data: Pairs) -> None:
        same = torch.from_numpy(data.same)[:, None]  # [V_s, 1]
        self.fill(same, torch.ones(same.shape), data)


def make(config: Config, d_in: int, d_out: int, d_source: int) -> Worded:
    return Worded(Copy(d_source, d_out, kept=1))
