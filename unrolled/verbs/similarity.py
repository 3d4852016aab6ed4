"""Similarity: the cosine between the vectors of two words, or of each pair of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.verb import Result, Served, VerbSpec
from unrolled.verbs import _word_vectors

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.data.word_vectors import WordVectors


class Request(Config):
    """There is nothing to choose."""


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:  # noqa: ARG001
    return found(_word_vectors.of_run(served), inputs)


def of_file(path: str, inputs: Sequence[Given], request: Request) -> Iterator[Result]:  # noqa: ARG001
    return found(_word_vectors.of_file(path), inputs)


def found(vectors: WordVectors, inputs: Sequence[Given]) -> Iterator[Result]:
    words = _word_vectors.words_of(inputs)
    if len(words) < 2:
        raise UsageError(f"similarity takes two words or more, found {len(words)}")
    for a, b in combinations(words, 2):
        yield {"a": a, "b": b, "cosine": vectors.similarity(a, b)}


def rows(result: Result) -> list[Result]:
    return [result]


def text(result: Result) -> str:
    return f"{result['a']}\t{result['b']}\t{result['cosine']:.4f}"


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
