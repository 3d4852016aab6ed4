"""CTC: a sequence shorter than the outputs and not aligned with them (Graves et al. 2006; objectives/ctc.py).

loss = - log sum over alignments pi of prod_s softmax(y_s)_{pi_s}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unrolled.core.emission import Trial, log_average
from unrolled.decode import ctc as decoding
from unrolled.decode.choose import log_probabilities
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import Candidate
from unrolled.objectives import ctc

NARROWEST = 8  # prefixes that a search follows at least


@dataclass(frozen=True)
class CTC:
    """One of `d_out` at each position, of which 0 is the blank. The mask is that of the outputs."""

    name: ClassVar[str] = "ctc"

    d_out: int

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return ctc.ctc_loss(y, _all(y) if mask is None else mask, target)

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Nats of each whole target: [B, 1]."""
        return ctc.sequence_losses(y, _all(y) if mask is None else mask, target).unsqueeze(1)

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> CTC:
        return self

    def log_probabilities(self, y: Tensor) -> Tensor:
        """The log-probability of each token and of the blank at each frame, in double precision."""
        return log_probabilities(y)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """The mean of the probabilities at each frame, not of those of whole alignments."""
        return log_average(ys.log_softmax(-1), weights)

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "d_out": self.d_out, "blank": 0})

    def decode(self, y: Tensor, mask: Tensor, options: Decoding) -> list[list[Candidate]]:
        """By the best path, or with a beam by a search over prefixes, which is as wide as what is asked of it."""
        if options.beam is None:
            return [[candidate] for candidate in decoding.best_paths(y, mask)]
        return decoding.prefix_search(y, mask, max(options.beam, options.n, NARROWEST), options.n)


def _all(y: Tensor) -> Tensor:
    return torch.ones(y.shape[:2], dtype=torch.bool, device=y.device)


TINY = Trial(CTC(4), torch.tensor([[1, 1, 3], [2, 0, 0]]), torch.tensor([[True] * 6, [True] * 3 + [False] * 3]))
