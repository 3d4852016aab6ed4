"""Analogy: a is to b as c is to which word?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.verb import Result, VerbSpec
from unrolled.verbs import _word_vectors

if TYPE_CHECKING:
    from unrolled.data.word_vectors import WordVectors


class Request(Config):
    top: int = Field(5, ge=1, le=1_000_000)
    """Number of words that are shown."""


def found(vectors: WordVectors, words: list[str], request: Request) -> Iterator[Result]:
    if len(words) != 3:
        raise UsageError(f"analogy takes three words a b c (a is to b as c is to ..), found {len(words)}")
    for each in vectors.analogy(words[0], words[1], words[2], request.top):
        yield {"a": words[0], "b": words[1], "c": words[2], "d": each["word"], "cosine": each["cosine"]}


def rows(result: Result) -> list[Result]:
    return [result]


def text(result: Result) -> str:
    return f"{result['d']}\t{result['cosine']:.4f}"


call, of_file = _word_vectors.callers(found)
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
