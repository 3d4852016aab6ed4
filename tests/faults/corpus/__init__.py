"""Bad and odd files: what is refused with a sentence, and what is read rightly."""

from __future__ import annotations

from tests.faults.corpus import (
    arrays,
    brought,
    fasta,
    forecasts,
    forms,
    images,
    large,
    later,
    paths,
    pens,
    series,
    sounds,
    tables,
    text,
    vectors,
    words,
)
from tests.faults.corpus.case import Case

CASES: list[Case] = [
    case
    for group in (
        large,
        brought,
        text,
        fasta,
        tables,
        forms,
        arrays,
        series,
        forecasts,
        sounds,
        images,
        pens,
        words,
        vectors,
        paths,
        later,
    )
    for case in group.CASES
]
