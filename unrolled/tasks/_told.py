"""What tasks remember of their data, as it stands in the data.json of a run: of the right types, within limits."""

from __future__ import annotations

from pydantic import Field

from unrolled.core.config import Record
from unrolled.data.reading import Answers, Kind, Reading
from unrolled.tasks._number_condition import NumberCondition

LONGEST = 1_000_000  # tokens of a target: what is written for a source is a multiple of it at most


class OfText(Record):
    """Of next-token."""

    labels: list[str] | None
    is_stream: bool
    column: str | None = None
    numbers: NumberCondition | None = None


class OfPairs(Record):
    """Of tasks that write a target."""

    longest_target: int = Field(ge=0, le=LONGEST)
    kinds: list[str]
    usual_score: str | None = None


class OfExamples(Record):
    """Of tasks with a given answer."""

    kind: Kind
    answers: Answers
    reading: Reading
    bags: bool = False


class OfClasses(Record):
    """Of classify, beside the above."""

    temperature: float = Field(1.0, gt=0, le=1e6)


class OfWords(Record):
    """Of word-vectors."""

    column: str | None = None
