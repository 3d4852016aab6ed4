"""Examples as columns: some of them, with all that belongs to each."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.batch import SOURCE, TARGET
from unrolled.data.examples import ENDS, KINDS, REFERENCES, ROWS, Examples, Ragged, offsets_of, ragged

BAGS = Ragged(np.arange(1, 8), (np.array([0, 2, 2, 3]), np.array([0, 3, 4, 7])))  # [[1 2 3] [4]] [] [[5 6 7]]


def ten() -> Examples:
    columns = {
        ROWS: np.arange(10) + 100, ENDS: np.arange(10) % 2 == 0, KINDS: ["a", "b"] * 5,
        REFERENCES: [str(-i) for i in range(10)],
    }  # fmt: skip
    fields = {SOURCE: ragged([np.array([i]) for i in range(10)]), TARGET: ragged([np.full(i, i) for i in range(10)])}
    return Examples(fields, columns)


@pytest.mark.parametrize("chosen", [[2, 0, 2], [9], []])
def test_some_examples_with_all_that_belongs_to_them(chosen: list[int]) -> None:
    some = ten().take(np.array(chosen, np.int64))
    assert some.n_examples == len(chosen)
    assert some.values(SOURCE).tolist() == chosen
    assert [values.tolist() for values in some.fields[TARGET]] == [[i] * i for i in chosen]
    assert some.rows.tolist() == [i + 100 for i in chosen]
    assert some.ends.tolist() == [i % 2 == 0 for i in chosen]
    assert some.columns[KINDS] == ["ab"[i % 2] for i in chosen]
    assert some.columns[REFERENCES] == [str(-i) for i in chosen]
    assert some.values(TARGET).dtype == ten().values(TARGET).dtype


def test_a_share_is_spread_evenly() -> None:
    assert ten().spread(3).values(SOURCE).tolist() == [0, 3, 6]
    assert ten().share(0.5).values(SOURCE).tolist() == [0, 2, 4, 6, 8]
    assert ten().share(0.001).n_examples == 1
    whole = ten()
    assert whole.share(1.0) is whole and whole.spread(10) is whole


def test_the_first_examples_are_views() -> None:
    whole = ten()
    first = whole.first(4)
    assert first.n_examples == 4 and first.values(TARGET).tolist() == [1, 2, 2, 3, 3, 3]
    assert np.shares_memory(first.values(TARGET), whole.values(TARGET))
    assert first.columns[KINDS] == ["a", "b", "a", "b"] and len(first.rows) == 4
    assert whole.first(99).n_examples == 10


def test_of_a_stream_the_beginning() -> None:
    stream = Examples({TARGET: ragged([np.arange(100)])}, is_stream=True)
    some = stream.share(0.25)
    assert some.values(TARGET).tolist() == list(range(25)) and some.n_examples == 1
    assert len(stream.share(0.001).values(TARGET)) == 2


def test_examples_without_marks_end() -> None:
    assert Examples({TARGET: ragged([np.arange(2)] * 3)}).ends.all()


def test_bags_keep_their_instances() -> None:
    some = BAGS.take(np.array([2, 1, 0]))
    assert some.values.tolist() == [5, 6, 7, 1, 2, 3, 4]
    assert [each.tolist() for each in some.offsets] == [[0, 1, 1, 3], [0, 3, 6, 7]]
    assert [each.tolist() for each in some] == [[5, 6, 7], [], [1, 2, 3, 4]]
    assert some.lengths.tolist() == [1, 0, 2] and some.inside.lengths.tolist() == [3, 3, 1]
    first = BAGS.first(2)
    assert len(first) == 2 and first.values.tolist() == [1, 2, 3, 4] and len(first.inside) == 2


def test_offsets() -> None:
    assert offsets_of([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert offsets_of([]).tolist() == [0]
    empty = ragged([])
    assert len(empty) == 0 and empty.values.dtype == np.int32
