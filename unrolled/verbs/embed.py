"""Embed: the vectors that a run makes of its inputs, for other programs to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.verb import Result, Served, VerbSpec

if TYPE_CHECKING:
    from unrolled.core.task import Given


class Request(Config):
    pool: Literal["mean", "max", "first", "last", "none"] = "mean"
    """How the vectors of all positions are made one: mean, maximum, the first (<class> of BERT) or the last; none: a
    vector for each position."""
    layer: int = Field(-1, ge=-1)
    """The layer whose outputs are taken: 0 what the first layer reads, 1 its output, ..; -1: the output of all."""


def why_not(served: Served) -> str | None:
    from unrolled.verbs._vectors import why_none

    return why_none(served.task, served.model)


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    from unrolled.verbs._vectors import vectors_of

    for given, (values, names) in zip(inputs, vectors_of(served.task, served.model, inputs, request.layer)):
        told = {"text": given.value} if isinstance(given.value, str) else {}
        if request.pool == "none":
            yield {**told, "tokens": names, "vectors": values.tolist()}
            continue
        pooled = {"mean": values.mean(0), "max": values.amax(0), "first": values[0], "last": values[-1]}
        yield {**told, "vector": pooled[request.pool].tolist()}


VERB = VerbSpec(
    summary="Make vectors of the inputs, one each or one for each position, for other programs.",
    request=Request,
    call=call,
    why_not=why_not,
    aliases=("features", "encode"),
)
