"""Sound sample by sample: as many ticks as are asked for, with how far it is."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.core.progress import advanced
from unrolled.decode.rollout import Candidate, best_of
from unrolled.decode.text import Begun
from unrolled.engine.stepper import stepped

USUAL = 1.0  # seconds that are written unless others are asked for
LONGEST = 10**8  # samples that are written at once
EVERY = 100  # ticks


def steps_of(decoding: Any, rate: int) -> int:
    """Samples that are asked for."""
    steps: int = decoding.max_tokens or max(1, round((dict(decoding).get("seconds") or USUAL) * rate))
    if steps > LONGEST:
        raise UsageError(
            f"{steps / rate:,.0f} seconds are {steps:,} samples: at most {LONGEST:,} are generated at once"
        )
    return steps


def written(begun: Begun, decoding: Any, steps: int, emission: Any) -> list[Candidate]:
    """n recordings of `steps` samples, the most probable first."""
    asked = decoding.settled(samples=True, max_tokens=steps)
    n, (start, step, state) = max(asked.n, asked.best_of or 1), begun
    counted, choose = Counted(stepped(step), steps), emission.chooser(asked)
    (found,) = best_of(n, counted, state, start, None, choose, (), steps, seed=asked.seed, of=emission)
    return found[: asked.n]


class Counted:
    """A step that says how many of so many ticks are done."""

    def __init__(self, step: Any, of: int) -> None:
        self.step, self.of, self.done = step, of, 0

    def __call__(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        self.done += 1
        if self.done % EVERY == 0 or self.done == self.of:
            advanced(self.done, self.of)
        found: tuple[Tensor, Any] = self.step(x, state)
        return found
