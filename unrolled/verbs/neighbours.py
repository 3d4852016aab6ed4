"""Neighbours: the words whose vectors are nearest to those of some words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.verb import Result, VerbSpec
from unrolled.verbs import _word_vectors

if TYPE_CHECKING:
    from unrolled.data.word_vectors import WordVectors


class Request(Config):
    top: int = Field(10, ge=1, le=1_000_000)
    """Number of neighbours."""


def found(vectors: WordVectors, words: list[str], request: Request) -> Iterator[Result]:
    for word in words:
        yield {"word": word, "neighbours": vectors.neighbours(word, request.top)}


def rows(result: Result) -> list[Result]:
    return [
        {"word": result["word"], "neighbour": each["word"], "cosine": each["cosine"]} for each in result["neighbours"]
    ]


def text(result: Result) -> str:
    return "\n".join(f"{row['word']}\t{row['neighbour']}\t{row['cosine']:.4f}" for row in rows(result))


call, of_file = _word_vectors.callers(found)
VERB = VerbSpec(
    summary="The words whose vectors are nearest to a word.",
    request=Request,
    call=call,
    takes="words",
    of_file=of_file,
    why_not=_word_vectors.why_not,
    rows=rows,
    writers={"text": text},
    aliases=("neighbors", "nearest", "most-similar"),
)
