"""Encoded examples as columns: one mechanism for texts, series, pairs, rolls and bags, in memory or as views of files.

| name | where | what it is |
|---|---|---|
| input, source, target, given | fields | sequences of any lengths after each other |
| target, source | columns | one value an example: its class, its numbers |
| rows, ends, kinds, references | columns | its number in the data, whether it was cut, its sort, how it is judged |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Column = NDArray[Any] | Sequence[str]

INPUT = "input"
GIVEN = "given"  # a source as it was handed over
ROWS = "rows"  # the number of an example in its data
ENDS = "ends"  # False where a sequence was cut because it was too long, so that no <stop> follows; absent: all end
KINDS = "kinds"  # what sort of held-out example each is, where figures tell such apart
REFERENCES = "references"  # the texts that written ones are judged by
SHORT = 64  # steps in the mean, up to which sequences are taken all at once rather than one by one


def offsets_of(lengths: Iterable[int]) -> Whole:
    """Where sequences of these lengths begin when they stand after each other, and where the last one ends."""
    found = np.fromiter(lengths, np.int64)
    offsets = np.zeros(len(found) + 1, np.int64)
    np.cumsum(found, out=offsets[1:])
    return offsets


@dataclass(frozen=True)
class Ragged:
    """Sequences of any lengths after each other; of two levels, bags of sequences.

    >>> field = ragged([np.array([7, 8]), np.array([9])])
    >>> field.values.tolist(), field[0].tolist(), field.take(np.array([1, 0])).values.tolist()
    ([7, 8, 9], [7, 8], [9, 7, 8])
    """

    values: NDArray[Any]
    """[N] ids, [N, n] ids side by side, or [N, D] numbers"""
    offsets: tuple[Whole, ...]
    """[n+1]: sequence i is values[offsets[i] : offsets[i+1]]; bags: of instances, then of values"""

    def __len__(self) -> int:
        return len(self.offsets[0]) - 1

    def __getitem__(self, i: int) -> NDArray[Any]:
        """One sequence; of a bag all its sequences after each other."""
        span = self.offsets[0][i : i + 2]
        for deeper in self.offsets[1:]:
            span = deeper[span]
        return self.values[span[0] : span[1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))

    def instances(self, i: int) -> Iterator[NDArray[Any]]:
        """The sequences of a bag."""
        return (self.inside[j] for j in range(*self.offsets[0][i : i + 2].tolist()))

    @property
    def lengths(self) -> Whole:
        """[n] steps of each sequence, or instances of each bag."""
        return np.diff(self.offsets[0])

    def lengths_at(self, rows: Whole) -> Whole:
        """The lengths of some, whatever the number of all."""
        return self.offsets[0][rows + 1] - self.offsets[0][rows]

    @property
    def inside(self) -> Ragged:
        """Of bags, the instances of all of them."""
        return Ragged(self.values, self.offsets[1:])

    def take(self, chosen: Whole) -> Ragged:
        """Some sequences or bags, copied, in the order given."""
        lengths = self.lengths_at(chosen)
        outer = offsets_of(lengths)
        if len(self.offsets) == 1 and lengths.sum() > SHORT * max(len(chosen), 1):
            spans = [self.offsets[0][i : i + 2] for i in chosen]
            return Ragged(np.concatenate([*(self.values[a:b] for a, b in spans), self.values[:0]]), (outer,))
        numbers = np.repeat(self.offsets[0][chosen] - outer[:-1], lengths) + np.arange(outer[-1])  # of what is taken
        if len(self.offsets) == 1:
            return Ragged(self.values[numbers], (outer,))
        inside = self.inside.take(numbers)
        return Ragged(inside.values, (outer, *inside.offsets))

    def thinned(self, rows: Whole, chosen: Sequence[Whole]) -> Ragged:
        """Some bags with some of their instances, those that are chosen in each."""
        numbers = np.concatenate([first + own for first, own in zip(self.offsets[0][rows], chosen)])
        inside = self.inside.take(numbers)
        return Ragged(inside.values, (offsets_of(map(len, chosen)), *inside.offsets))

    def first(self, n: int) -> Ragged:
        """The first n sequences, as a view."""
        kept, end = [], n
        for offsets in self.offsets:
            kept.append(offsets[: end + 1])
            end = int(offsets[end])
        return Ragged(self.values[:end], tuple(kept))


def ragged(sequences: Sequence[NDArray[Any]], empty: NDArray[Any] | None = None) -> Ragged:
    """Sequences as a field; where there is none, one of the type of `empty`."""
    joined = np.empty(0, np.int32) if empty is None else empty
    if len(sequences):
        joined = sequences[0] if len(sequences) == 1 else np.concatenate(sequences)
    return Ragged(joined, (offsets_of(map(len, sequences)),))


@dataclass(frozen=True)
class Examples:
    """One split of the data (train, valid or test)."""

    fields: Mapping[str, Ragged]
    columns: Mapping[str, Column] = field(default_factory=dict)
    """[n, ...] or a list: one of each example"""
    is_stream: bool = False
    """one long example, whose state is carried and which can be cut anywhere"""
    counts: Mapping[str, int] = field(default_factory=dict)
    """characters, bytes and unknown tokens of all, where these are counted"""

    @property
    def n_examples(self) -> int:
        return len(next(iter(self.fields.values())))

    def values(self, name: str) -> NDArray[Any]:
        """All values of a field after each other, or a column."""
        return self.fields[name].values if name in self.fields else np.asarray(self.columns[name])

    def at(self, name: str, i: int) -> Any:
        """What an example has in a field or a column."""
        return self.fields[name][i] if name in self.fields else self.columns[name][i]

    def lengths(self, name: str) -> Whole:
        return self.fields[name].lengths

    @property
    def rows(self) -> Whole:
        """[n]: the number of each example in its data."""
        return np.asarray(self.columns[ROWS])

    @property
    def ends(self) -> NDArray[np.bool_]:
        """[n]: False where a sequence was cut, so that no <stop> follows."""
        return np.asarray(self.columns.get(ENDS, np.ones(self.n_examples, bool)))

    def take(self, chosen: Whole) -> Examples:
        """Some examples, copied, in the order given."""
        fields = {name: each.take(chosen) for name, each in self.fields.items()}
        columns = {name: _chosen(each, chosen) for name, each in self.columns.items()}
        return replace(self, fields=fields, columns=columns)

    def spread(self, n: int) -> Examples:
        """At most n examples, evenly spread."""
        return self if n >= self.n_examples else self.take(np.arange(n) * self.n_examples // n)

    def share(self, fraction: float) -> Examples:
        """The beginning of a stream, or as many examples, evenly spread, as `fraction` says."""
        if fraction >= 1:
            return self
        if self.is_stream:
            ((name, stream),) = self.fields.items()
            n = min(max(2, round(fraction * len(stream.values))), len(stream.values))
            return replace(self, fields={name: Ragged(stream.values[:n], (offsets_of([n]),))})
        return self.spread(max(1, round(fraction * self.n_examples)))

    def first(self, n: int) -> Examples:
        """At most the first n examples, as views."""
        fields = {name: each.first(min(n, self.n_examples)) for name, each in self.fields.items()}
        return replace(self, fields=fields, columns={name: each[:n] for name, each in self.columns.items()})


def lengths_of(lengths: Sequence[Whole]) -> dict[str, float]:
    """The shortest, mean and longest of the lengths of all splits, as facts tell them."""
    found = np.concatenate(lengths)
    return {"min": int(found.min()), "mean": round(float(found.mean()), 2), "max": int(found.max())}


PIECE = 1 << 22  # values that are looked at together, where there may be more than fit into memory


def count_of(token: int, tokens: NDArray[Any]) -> int:
    """How often a token stands among others.

    >>> count_of(3, np.array([3, 1, 3]))
    2
    """
    return sum(int((tokens[at : at + PIECE] == token).sum()) for at in range(0, len(tokens), PIECE))


def frequencies(tokens: NDArray[Any], size: int) -> NDArray[np.float32]:
    """The share [size] of each token among all."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(tokens), PIECE):
        counts += np.bincount(tokens[start : start + PIECE], minlength=size)
    return (counts / counts.sum()).astype(np.float32)


def _chosen(column: Column, chosen: Whole) -> Column:
    return column[chosen] if isinstance(column, np.ndarray) else [column[i] for i in chosen]
