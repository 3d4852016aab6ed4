"""NaN and infinity: found in the same step; skip the batch, then roll back with a smaller rate, then give up."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from unrolled.core.errors import Diverged
from unrolled.core.front import option

SKIPS = 3  # batches in a row that may be skipped before rolling back
ROLLBACKS = 3  # times the rate may be cut
CUT = 0.3  # what is left of the rate after a roll-back

Verdict = Literal["fine", "skip", "roll back"]


@dataclass
class Guard:
    """Watches loss and gradient norm; its memory is part of a checkpoint."""

    skipped: int = 0
    rollbacks: int = 0
    scale: float = 1.0

    def judge(self, step: int, loss: float, norm: float) -> Verdict:
        if math.isfinite(loss) and math.isfinite(norm):
            self.skipped = 0
            return "fine"
        self.skipped += 1
        if self.skipped <= SKIPS:
            return "skip"
        self.skipped = 0
        self.rollbacks += 1
        self.scale *= CUT
        if self.rollbacks > ROLLBACKS:
            what = "loss" if not math.isfinite(loss) else "gradient"
            raise Diverged(
                f"training diverged: the {what} was not finite in {SKIPS + 1} batches in a row (the last is "
                f"batch {step}), even after the learning rate was reduced {ROLLBACKS} times; lower it with "
                f"{option('lr')} or clip gradients with {option('clip')}"
            )
        return "roll back"

    def state(self) -> dict[str, Any]:
        return asdict(self)
