"""Word vectors of a run or of a file, for the verbs that look at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unrolled.core.verb import HasVectors, Served

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.data.word_vectors import WordVectors


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


def words_of(inputs: Sequence[Given]) -> list[str]:
    return [str(given.value) for given in inputs]
