"""Score: how probable a run finds each example of some data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unrolled.core.config import Record
from unrolled.core.verb import Result, Scores, Served, VerbSpec, require_obeyed, started

if TYPE_CHECKING:
    from unrolled.core.task import Given


class Request(Record):
    condition: str | None = None
    """The class of all examples, if the data has no column for it."""


def why_not(served: Served) -> str | None:
    able = isinstance(served.task, Scores)
    return None if able else f"models of the task '{served.name}' do not assign probabilities to their inputs"


def check(served: Served, request: Request) -> None:
    require_obeyed(served, "score", request)


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    assert isinstance(served.task, Scores)
    return served.task.score(served.model, started(inputs, request.condition))


def rows(result: Result) -> list[Result]:
    """One row, or of a series one for each of its times."""
    if "times" not in result:
        return [result]
    names = [name for name, value in result.items() if isinstance(value, list) and name != "times"]
    return [{"time": t, **{name: result[name][k] for name in names}} for k, t in enumerate(result["times"])]


def text(result: Result) -> str:
    if "times" in result:
        return "\n".join("\t".join(str(cell) for cell in row.values()) for row in rows(result))
    return f"{result['logp']:.4f}\t{result['tokens']}\t{result['text']}"


VERB = VerbSpec(
    summary="Log-probability of each example, in order.",
    request=Request,
    call=call,
    why_not=why_not,
    check=check,
    rows=rows,
    writers={"text": text},
)
