"""Analogy: a is to b as c is to which word?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.verb import Result, Served, VerbSpec
from unrolled.verbs import _word_vectors

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.data.word_vectors import WordVectors


class Request(Config):
    top: int = Field(5, ge=1, le=1_000_000)
    """Number of words that are shown."""


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    return found(_word_vectors.of_run(served), inputs, request)


def of_file(path: str, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    return found(_word_vectors.of_file(path), inputs, request)


def found(vectors: WordVectors, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    words = _word_vectors.words_of(inputs)
    if len(words) != 3:
        raise UsageError(f"analogy takes three words a b c (a is to b as c is to ..), found {len(words)}")
    for each in vectors.analogy(words[0], words[1], words[2], request.top):
        yield {"a": words[0], "b": words[1], "c": words[2], "d": each["word"], "cosine": each["cosine"]}


def rows(result: Result) -> list[Result]:
    return [result]


def text(result: Result) -> str:
    return f"{result['d']}\t{result['cosine']:.4f}"


VERB = VerbSpec(
    summary="a is to b as c is to which word, by the vectors of the words.",
    request=Request,
    call=call,
    takes="words",
    of_file=of_file,
    why_not=_word_vectors.why_not,
    rows=rows,
    writers={"text": text},
)
