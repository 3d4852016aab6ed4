"""The energy along recall: every update of a memory takes it down, until the state stands still."""

from __future__ import annotations

from typing import Any

from unrolled.core import config
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.memories import queried, why_no_memory
from unrolled.pictures import recalled as pictures
from unrolled.pictures.answer import Answer
from unrolled.runs.run import Run


class Config(config.Config):
    """It has no settings."""


def ask(run: Run, value: Any, config: Config) -> Answer:  # noqa: ARG001
    memory, found = queried(run, value)
    energy = [float(e) for e in found.energy[:, 0]]
    steps, ended = int(found.steps[0]), found.how[0]
    stored = memory.energy(memory.patterns[memory.nearest(found.state)])[0]
    reading = (
        f"From {energy[0]:.4g} to {energy[-1]:.4g} in {steps} update{'s' if steps != 1 else ''} ({ended}); the stored "
        f"pattern that is nearest to the end has {float(stored):.4g}. The lower, the more stable."
    )
    numbers = {
        "updates": steps,
        "ended": ended,
        "first": energy[0],
        "last": energy[-1],
        "nearest_stored": float(stored),
    }
    return Answer(
        reading=reading,
        numbers=numbers,
        arrays={"energy": found.energy[:, 0]},
        pictures=[pictures.energies([energy], "given")],
    )


QUESTION = QuestionSpec(
    summary="How the energy of a memory falls while a query is completed.",
    config=Config,
    ask=ask,
    applies=why_no_memory,
)
