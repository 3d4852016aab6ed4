"""Whatever stands in the place of an input, every verb and every question of a run answers it or refuses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from tests.serve.traffic import RUNS
from tests.thorough import only
from unrolled.core import discover
from unrolled.core.opening import closed
from unrolled.runs.run import Run, load
from unrolled.serve.refused import refusal_of

ODD: list[Any] = [
    None, True, 0, -1, 1.5, 2**62, "", "a", "the cat", "\u0000", "é" * 50, "data:image/png;base64,AAAA",
    [], [[]], [[[]]], {}, [0], [True], [None], [""], ["a"], ["a", "b"], ["a", 1], [["a"]], [["a", "b"], ["c"]],
    [1, 2, 3], [0.5] * 9, [1e300], [[1.0, 2.0]], [[1e300, 2]], [[None]], [[1], [1, 2]], [[1.0] * 5], [[[1.0]]],
    [[[0, 0], [1, 1]]], [{}], [{"text": "a"}], {"text": "a"}, {"a": []}, {"series": 1}, {"samples": "a"},
    {"samples": [0.1, 0.2], "condition": "a"}, {"strokes": [[[0, 0]]], "text": 5}, {"source": 1, "target": []},
    {"source": "a", "target": "a"},
]  # fmt: skip
NAMES = sorted(place.name for place in RUNS.iterdir() if place.is_dir())


def asked(run: Run, value: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """All that can be asked of a run about an input."""
    for verb in discover.verbs.names():
        inputs: Any = value if discover.verb(verb).takes == "prompt" else [value]
        if run.why_not(verb) is None:
            yield verb, lambda verb=verb, inputs=inputs: [*islice(run.each(verb, inputs, {}, None), 2)]  # type: ignore[misc]
    for question in discover.questions.names():
        if run.unanswered(question) is None:
            yield question, lambda question=question: run.inspect(question, value, {})  # type: ignore[misc]


@pytest.mark.parametrize("name", only(("classify", "next-frame"), NAMES))
def test_an_odd_input_is_answered_or_refused(name: str) -> None:
    run, failed = load(RUNS / name), []
    for value in ODD:
        for what, ask in asked(run, value):
            try:
                with closed():
                    ask()
            except Exception as error:
                if refusal_of(error) is None:
                    failed.append(f"{what} of {str(value)[:60]}: {type(error).__name__}: {str(error)[:100]}")
    assert failed == []
