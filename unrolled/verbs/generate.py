"""Generate: let a run write, from a prompt or from nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from unrolled.core.verb import Generates, Result, Served, VerbSpec, require_obeyed, started
from unrolled.decode.config import Decoding

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.decode.text import Begun


class Request(Decoding):
    condition: str | None = None
    """The class to generate for, if the run was trained with a condition; of sound names and values: digit=7."""
    text: str | None = None
    """The text to write by hand, if the run was trained with texts (handwriting)."""
    bias: float = Field(0.0, ge=0, le=20)
    """Handwriting: 0 samples from the model as it is, larger values write more regularly."""
    seconds: float | None = Field(None, gt=0, le=3600)
    """Seconds of sound to generate. [default: 1]"""


def why_not(served: Served) -> str | None:
    able = isinstance(served.task, Generates)
    return (
        None if able else f"models of the task '{served.name}' make predictions for inputs, they do not continue them"
    )


def check(served: Served, request: Request) -> None:
    require_obeyed(served, "generate", request)


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    assert isinstance(served.task, Generates)
    (prompt,) = started(inputs, request.condition)
    yield from served.task.generate(served.model, prompt, request)


def ahead(served: Served, begun: Begun, request: Request) -> Iterator[Result]:
    assert isinstance(served.task, Generates)
    yield from served.task.go_on(begun, request)


VERB = VerbSpec(
    summary="Generate with a saved run: text, printed token by token, a piano roll and a MIDI file, drawings, sound.",
    request=Request,
    call=call,
    takes="prompt",
    why_not=why_not,
    ahead=ahead,
    check=check,
)
