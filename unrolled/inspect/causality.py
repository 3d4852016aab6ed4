"""The dependence of outputs on inputs, as a matrix.

    s_{t,s} = |d y_t / d x_s|        causal: s_{t,s} = 0 for all s > t

A row is an output, a column an input. By gradient where the model has them, otherwise by changing each input in turn
(see inspect/tools/dependence.py). Of a model that answers once for the whole input, the outputs are what its readout
reads.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.inspection import QuestionSpec
from unrolled.inspect.tools.dependence import dependence
from unrolled.inspect.tools.looking import glance, look_at, reads_whole
from unrolled.inspect.tools.memories import why_memory
from unrolled.inspect.tools.opened import answers_by_position, by_position
from unrolled.pictures.answer import Answer
from unrolled.pictures.kinds import Heatmap
from unrolled.runs.run import Run


class Config(config.Config):
    length: int = Field(32, ge=2, le=512)
    """Maximum number of input positions to read."""
    directions: int = Field(8, ge=1)
    """Number of output directions in which the derivative is measured; the output width gives exact norms."""


ONCE = "it makes one prediction for the whole input and has no outputs at positions"


def applies(run: Run) -> str | None:
    return why_memory(run) or (None if answers_by_position(run.model, glance(run).x) else ONCE)


def beyond(strength: Tensor) -> Tensor:
    """The part above the diagonal, which a causal model leaves at zero: [T, T]."""
    return strength.triu(diagonal=1)


def ask(run: Run, value: Any, config: Config) -> Answer:
    look = look_at(run, value, config.length)
    batch, names, left_out = look.batch.to("cpu"), look.names, look.left_out
    T = len(names)
    found = dependence(by_position(run.model), batch, range(T), config.directions)
    above = beyond(found.strength)
    causal = not bool((above > 0).any())
    numbers: dict[str, Any] = {
        "positions": T, "causal": causal, "by": found.by, "looked_at": found.directions,
        "largest_ahead": float(above.max()), "largest": float(found.strength.max()),
        "reached_share": float((found.strength > 0).double().mean()),
    }  # fmt: skip
    picture = Heatmap(
        title="Dependence of outputs on inputs",
        alt=f"A {T} by {T} matrix with outputs in rows and inputs in columns; it is "
        f"{'' if causal else 'not '}lower triangular.",
        values=[[v if v > 0 else None for v in row] for row in found.strength.tolist()],
        rows=names, columns=names,
        x_label="input x_s", y_label="output y_t", scale="log",
    )  # fmt: skip
    reading = _reading(numbers, above, reads_whole(run)) + left_out
    return Answer(reading, numbers, {"strength": found.strength}, [picture])


def _reading(numbers: dict[str, Any], above: Tensor, whole: bool) -> str:
    T = numbers["positions"]
    how = f"Measured by {numbers['by']} ({numbers['looked_at']}) over {T} positions."
    if numbers["causal"]:
        verdict = "The matrix is lower triangular: no output depends on an input that comes after it."
        verdict += " So this body can be run live, tick by tick." if whole else ""
    elif whole:
        verdict = (
            "The matrix is not lower triangular, because this model reads the input in both directions before it "
            "predicts."
        )
    else:
        t, s = divmod(int(torch.argmax(above)), T)
        verdict = (
            f"The matrix is not lower triangular: output {t} depends on input {s}, which comes after it "
            f"({numbers['largest_ahead']:.3g})."
        )
    return f"{verdict} {how} A row shows the inputs that one output depends on; empty cells are exactly zero."


QUESTION = QuestionSpec(
    summary="Which inputs does each output depend on: is the dependence matrix lower triangular?",
    config=Config,
    ask=ask,
    applies=applies,
)
