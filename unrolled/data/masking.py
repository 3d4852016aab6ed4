"""Rows of text with tokens hidden, and with a second segment that follows the first or does not.

    <class> a_1 .. a_n <separator> b_1 .. b_m <separator>          segments 0 .. 0 1 .. 1
    <class> a_1 .. a_n <separator>                                 where there is no second one

Of the tokens of the data a share (0.15) is predicted; of these 80 % are shown as <mask>, 10 % as a token drawn from all
and 10 % as they are (Devlin et al. 2019). A row is cut where a sentence ends, or where it has one sentence at a token;
with probability 1/2 its second part is replaced by that of a row of another document.

What is drawn is a function of (seed, epoch, row), so that a run resumes from the number of a step; of a row alone where
models are measured, so that all meet the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import TARGET, Batch
from unrolled.core.tokens import CLASS, EMPTY, MASK, SEPARATOR
from unrolled.data.codecs.text import Codec
from unrolled.data.collate import Form
from unrolled.data.documents import CUTS, DOCUMENT
from unrolled.data.examples import INPUT, Examples, Whole
from unrolled.data.sampler import Pooled, pooled

NEXT = (
    "next"  # a target: 0 where the second segment follows the first, 1 where it does not, NO_NEXT where there is none
)
NO_NEXT = -1
SHARES = (0.8, 0.9)  # cumulated: of <mask>, and of tokens drawn from all
MEASURED = 2**31  # in the place of a seed, where models are measured


class Row(NamedTuple):
    """One row to read [n], the segments [n], where it was changed or is asked for [k], and what stood there [k]."""

    ids: Whole
    segments: Whole
    places: Whole
    hidden: Whole
    follows: int


@dataclass(frozen=True)
class Masking:
    """How rows are made: `whole_words` hides all tokens of a word, `pairs` gives rows a second segment."""

    codec: Codec
    share: float = 0.15
    whole_words: bool = False
    pairs: bool = True
    shares: tuple[float, float] = SHARES

    def row(self, section: Examples, number: int, random: np.random.Generator) -> Row:
        """A row of a section as it is drawn."""
        first, second, follows = self._segments(section, number, random)
        ids, segments, real = self.framed([first] if second is None else [first, second])
        places = np.sort(self._chosen(ids, np.flatnonzero(real), random))
        hidden, size, specials = ids[places], self.codec.size, len(self.codec.specials)
        gap = self.codec.special(MASK) or EMPTY
        u, (a, b) = random.random(len(places)), self.shares
        others = random.integers(specials, max(size, specials + 1), len(places)).clip(max=size - 1)
        ids[places] = np.where(u < a, gap, np.where(u < b, others, hidden))
        return Row(ids, segments, places, hidden, follows)

    def framed(self, parts: Sequence[Whole]) -> tuple[Whole, Whole, NDArray[np.bool_]]:
        """Segments between special tokens, the number of the segment of each, and where tokens of the data are."""
        first, last = self.codec.special(CLASS), self.codec.special(SEPARATOR)
        pieces = [np.array([first])] + [np.concatenate([part, [last]]) for part in parts]
        ids = np.concatenate(pieces).astype(np.int64)
        lengths = [len(parts[0]) + 2, *(len(part) + 1 for part in parts[1:])]
        real = np.concatenate([[False], *([True] * len(part) + [False] for part in parts)]).astype(bool)
        return ids, np.repeat(np.arange(len(parts)), lengths), real

    def _segments(
        self, section: Examples, number: int, random: np.random.Generator
    ) -> tuple[Whole, Whole | None, int]:  # fmt: skip
        ids = section.fields[INPUT][number]
        if not self.pairs or len(ids) < 2:
            return ids, None, NO_NEXT
        cut = self._cut(section, number, random)
        if random.random() < 0.5:
            return ids[:cut], ids[cut:], 0
        documents = np.asarray(section.columns[DOCUMENT])  # rows of a document follow one another
        low, high = (int(np.searchsorted(documents, documents[number], side)) for side in ("left", "right"))
        other = int(random.integers(len(documents) - (high - low)))
        other += high - low if other >= low else 0
        second = section.fields[INPUT][other]
        start = self._cut(section, other, random) if len(second) > 1 else 0
        return ids[:cut], second[start : start + max(len(ids) - cut, 1)], 1

    def _cut(self, section: Examples, number: int, random: np.random.Generator) -> int:
        """Where a row is cut in two: at a sentence, or where it has one, about its middle."""
        cuts, n = section.fields[CUTS][number], section.fields[INPUT].lengths_at(np.array([number]))[0]
        if len(cuts):
            return int(cuts[random.integers(len(cuts))])
        return int(np.clip(round(n * random.uniform(0.25, 0.75)), 1, n - 1))

    def _chosen(self, ids: Whole, real: Whole, random: np.random.Generator) -> Whole:
        """Places that are asked for, of those that hold tokens of the data: at least one."""
        wanted = max(1, round(self.share * len(real)))
        if not self.whole_words:
            return real[random.permutation(len(real))[:wanted]]
        word = np.cumsum(~continues(ids, self.codec))[real]  # the number of the word of each
        order = random.permutation(np.unique(word))
        taken = np.concatenate([np.flatnonzero(word == each) for each in order[:wanted]])
        size = np.cumsum([int((word == each).sum()) for each in order[:wanted]])
        return real[taken[: int(size[np.searchsorted(size, wanted).clip(max=len(size) - 1)])]]

    def batch(self, section: Examples, rows: Whole, *key: int) -> Batch:
        """These rows, each drawn by the key and its own number."""
        numbers = section.rows[rows]  # in the split, however much of it is used
        made = [
            self.row(section, int(row), np.random.default_rng((*key, int(number))))
            for row, number in zip(rows, numbers)
        ]
        return batch_of(made, rows)


def continues(ids: Whole, codec: Codec) -> NDArray[np.bool_]:
    """Whether each token [n] continues the word that the token before it is part of."""
    table = codec.spelling()
    spelt = [table[token].decode("utf-8", "replace") for token in ids.tolist()]
    return np.array([
        bool(before) and bool(here) and before[-1].isalnum() and here[0].isalnum()
        for before, here in zip(["", *spelt], spelt)
    ], bool)  # fmt: skip


def batch_of(made: Sequence[Row], rows: Whole) -> Batch:
    """Rows as one batch: outputs are asked for at the first position of each and where something was hidden."""
    width, n = max(len(row.ids) for row in made), 1 + max(len(row.places) for row in made)
    x = np.full((len(made), width, 2), EMPTY, np.int64)  # [B, S, 2]
    mask, at = np.zeros((len(made), width), bool), np.zeros((len(made), n), np.int64)
    y = np.full((len(made), n), EMPTY, np.int64)  # [B, K]
    for i, row in enumerate(made):
        x[i, : len(row.ids), 0], x[i, : len(row.ids), 1] = row.ids, row.segments
        mask[i, : len(row.ids)] = True
        at[i, 1 : 1 + len(row.places)], y[i, 1 : 1 + len(row.places)] = row.places, row.hidden
    asked = np.arange(n) < np.array([[1 + len(row.places)] for row in made])
    asked[:, 0] = False
    follows = torch.tensor([row.follows for row in made])
    return Batch(
        torch.from_numpy(x), torch.from_numpy(mask), {TARGET: torch.from_numpy(y), NEXT: follows},
        {TARGET: torch.from_numpy(asked)}, rows=torch.from_numpy(np.array(rows, np.int64)), at=torch.from_numpy(at),
    )  # fmt: skip


class MaskedRows(Pooled):
    """Training batches, drawn anew in every epoch."""

    def __init__(self, examples: Examples, batch_size: int, masking: Masking, seed: int = 0) -> None:
        self.masking = masking
        super().__init__(examples, batch_size, Form(INPUT), seed)

    def _collated(self, rows: Whole, epoch: int) -> Batch:
        return self.masking.batch(self.examples, rows, self.seed, epoch)


def measured_batches(section: Examples, rows: Whole, batch_size: int, masking: Masking) -> Iterator[Batch]:
    """Some rows of a section once for metrics, those of about equal length together."""
    order = pooled(rows, section.fields[INPUT].lengths, batch_size)
    for start in range(0, len(order), batch_size):
        yield masking.batch(section, order[start : start + batch_size], MEASURED)
