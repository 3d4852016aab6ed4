"""Similarity: the cosine between the vectors of two words, or of each pair of several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.verb import Result, VerbSpec
from unrolled.verbs import _word_vectors

if TYPE_CHECKING:
    from unrolled.data.word_vectors import WordVectors


class Request(Config):
    """There is nothing to choose."""


def found(vectors: WordVectors, words: list[str], request: Request) -> Iterator[Result]:  # noqa: ARG001
    if len(words) < 2:
        raise UsageError(f"similarity takes two words or more, found {len(words)}")
    for a, b in combinations(words, 2):
        yield {"a": a, "b": b, "cosine": vectors.similarity(a, b)}


def rows(result: Result) -> list[Result]:
    return [result]


def text(result: Result) -> str:
    return f"{result['a']}\t{result['b']}\t{result['cosine']:.4f}"


call, of_file = _word_vectors.callers(found)
VERB = VerbSpec(
    summary="The cosine between the vectors of two words, or of each pair of several.",
    request=Request,
    call=call,
    takes="words",
    of_file=of_file,
    why_not=_word_vectors.why_not,
    rows=rows,
    writers={"text": text},
    aliases=("cosine",),
)
