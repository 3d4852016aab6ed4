"""Word vectors of a run or of a file, for the verbs that look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.core.verb import HasVectors, Result, Served

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.data.word_vectors import WordVectors

Call = Callable[..., Iterator[Result]]


def why_not(served: Served) -> str | None:
    if isinstance(served.task, HasVectors):
        return None
    return (
        f"models of the task '{served.name}' are no word vectors (`unrolled vectors` writes those of an embedding to a "
        "file, which can be asked)"
    )


def of_run(served: Served) -> WordVectors:
    assert isinstance(served.task, HasVectors)
    found: WordVectors = served.task.word_vectors(served.model)
    return found


def of_file(path: str) -> WordVectors:
    from unrolled.data.word_vectors import WordVectors

    return WordVectors.read(path)


def callers(found: Callable[[WordVectors, list[str], Any], Iterator[Result]]) -> tuple[Call, Call]:
    """`call` and `of_file` of a verb that finds something of vectors and words: of a run, and of a file."""

    def call(served: Served, inputs: Sequence[Given], request: Any) -> Iterator[Result]:
        return found(of_run(served), words_of(inputs), request)

    def of_path(path: str, inputs: Sequence[Given], request: Any) -> Iterator[Result]:
        return found(of_file(path), words_of(inputs), request)

    return call, of_path


def words_of(inputs: Sequence[Given]) -> list[str]:
    return [str(given.value) for given in inputs]
