"""Bags of random sequences, half of which have a motif implanted in a few of theirs, like immune repertoires.

    each sequence   10 to 20 letters of the 20 amino acids, by their frequencies in proteins
    motif           LDRSAGT; of its seven letters, two in the middle are drawn anew each time it is implanted
    positive bag    the share `witness` of its sequences, at least one, have it at a random place; a negative bag none

The class of a bag says whether it has been done, nothing which sequence has the motif. After the implanted signals of
Widrich et al. (2020), where a bag is the immune repertoire of a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
SHARES = (8.3, 1.4, 5.5, 6.7, 3.9, 7.1, 2.3, 5.9, 5.8, 9.7, 2.4, 4.1, 4.7, 3.9, 5.5, 6.6, 5.3, 6.9, 1.1, 2.9)
MOTIF, FREE = "LDRSAGT", (2, 4)
SHORTEST, LONGEST = 10, 20
MOST = 10**8  # sequences of all bags


class Settings(Config):
    """How many bags of how many sequences, and how many of these have the motif."""

    examples: int = Field(400, ge=2, le=MOST)
    """Number of bags."""
    instances: int = Field(1000, ge=1, le=MOST)
    """Sequences of each bag."""
    witness: float = Field(0.01, gt=0, le=1)
    """Share of the sequences of a positive bag that have the motif."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed."""

    @model_validator(mode="after")
    def within_bounds(self) -> Self:
        if self.examples * self.instances > MOST:
            raise ValueError(f"examples times instances must be at most {MOST:,}")
        return self


def read(settings: Settings) -> Iterator[Made]:
    p = np.array(SHARES) / sum(SHARES)
    letters = np.frombuffer(LETTERS.encode(), np.uint8)
    cumulative = np.cumsum(p)[:-1]
    for i in range(settings.examples):
        random = np.random.Generator(np.random.PCG64([settings.seed, i]))
        n = settings.instances
        lengths = random.integers(SHORTEST, LONGEST + 1, n)
        ids = np.searchsorted(cumulative, random.random((n, LONGEST)))  # [n, 20]
        if i % 2:
            chosen = random.permutation(n)[: max(1, round(settings.witness * n))]
            first = (random.random(len(chosen)) * (lengths[chosen] - len(MOTIF) + 1)).astype(int)
            for k, letter in enumerate(MOTIF):
                if k not in FREE:
                    ids[chosen, first + k] = LETTERS.index(letter)
        text = letters[ids].tobytes().decode()
        bag = [text[LONGEST * j : LONGEST * j + length] for j, length in enumerate(lengths.tolist())]
        yield Made(bag, "motif" if i % 2 else "none", f"bag {i}")


BUILTIN = BuiltinSpec(
    summary="bags of random protein sequences, in half of which 1 % have a motif (witness=0.01), for classify",
    licence="generated",
    size="400 bags of 1,000 sequences",
    holds="bags",
    columns={"bag": "bag", "text": "sequence", "target": "class"},
    answers="class",
    use="classify",
    settings=Settings,
    read=read,
)
