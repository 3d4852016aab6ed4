"""Predict: what a run was trained for, for each example of some data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unrolled.core.verb import Result, Served, VerbSpec, require_obeyed, started
from unrolled.decode.config import Decoding

if TYPE_CHECKING:
    from unrolled.core.task import Given


class Request(Decoding):
    condition: str | None = None
    """The class of all examples, if the data has no column for it."""


def why_not(served: Served) -> str | None:
    able = served.task.PREDICTS
    return None if able else f"models of the task '{served.name}' generate, they make no predictions"


def check(served: Served, request: Request) -> None:
    require_obeyed(served, "predict", request)


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    return served.task.predict(served.model, started(inputs, request.condition), request)


def text(result: Result) -> str:
    """What was written, on one line."""
    return " ".join(str(result["prediction"]).splitlines())


VERB = VerbSpec(
    summary="Make a prediction for each example, in order.",
    request=Request,
    call=call,
    why_not=why_not,
    check=check,
    writers={"text": text},
)
