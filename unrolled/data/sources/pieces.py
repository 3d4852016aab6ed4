"""Long series cut into windows side by side, which know the series that they are from: a split keeps them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unrolled.data.labelled import Labelled, LabelledSource


def windows_of(example: Labelled, window: int | None) -> Iterator[Labelled]:
    """A series with an answer at each step as pieces of `window` steps, the last one perhaps shorter; without a window
    the whole."""
    if window is None:
        yield example
        return
    for start in range(0, len(example.input), window):
        yield example._replace(
            input=example.input[start : start + window],
            answer=example.answer[start : start + window],
            place=f"{example.place}, step {start + 1}",
            series=example.place,
        )


def in_windows(source: LabelledSource, window: int | None) -> LabelledSource:
    """The same source with its series cut."""
    return replace(source, read=lambda: (piece for example in source for piece in windows_of(example, window)))
