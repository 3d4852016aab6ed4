"""Which stored patterns a query is like, before and after recall, as cosines: 1 where they are equal up to length."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field

from unrolled.core import config
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.memories import queried, why_no_memory
from unrolled.layers.memory.continuous import Continuous
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Bars
from unrolled.runs.run import Run


class Config(config.Config):
    n: int = Field(10, ge=1, le=100)
    """Number of stored patterns to show, the most similar first."""


def ask(run: Run, value: Any, config: Config) -> Answer:
    memory, found = queried(run, value)
    assert found.path is not None
    before, after = memory.overlap(found.path[0])[0], memory.overlap(found.state)[0]  # [N]
    best = torch.topk(after, min(config.n, len(after))).indices.tolist()
    rows = [{"pattern": n + 1, "before": float(before[n]), "after": float(after[n])} for n in best]
    kind = f" It is close to a {memory.kinds(found.state)[0]}." if isinstance(memory, Continuous) else ""
    reading = (
        f"At the end the state is most like stored pattern {best[0] + 1} of {len(after)} "
        f"(overlap {float(after[best[0]]):.3f}, before {float(before[best[0]]):.3f}).{kind}"
    )
    bars = Bars(
        title="Overlap after recall", alt="Cosine between the final state and the most similar stored patterns.",
        names=[f"pattern {n + 1}" for n in best], values=[float(after[n]) for n in best], x_label="overlap",
    )  # fmt: skip
    return Answer(
        reading=reading, numbers={"overlaps": rows}, arrays={"before": before, "after": after}, pictures=[bars]
    )


QUESTION = QuestionSpec(
    summary="Which stored patterns a query is like, before and after recall.",
    config=Config,
    ask=ask,
    applies=why_no_memory,
)
