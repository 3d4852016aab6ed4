"""Tables with a step of a series in each row: known by their content, and never cut apart by a split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unrolled.data.look import look
from unrolled.data.reading import Reading
from unrolled.data.sources.labelled_guess import guess_answers
from unrolled.data.sources.labelled_table import open_columns, table_in


def opened(path: Path, text: str, **given: Any) -> Any:
    path.write_text(text)
    table = table_in(path)
    assert table is not None
    return open_columns(table, Reading(**given), "class")


def rows(people: int, sessions: int, length: int, state: Any = lambda p, s, t: f"s{(p + s) % 2}") -> list[list[Any]]:
    return [
        [f"P{p}", p * sessions + s, t / 2, 60 + 7 * p + t % 5, (t * 37 % 11) / 8, state(p, s, t)]
        for p in range(people)
        for s in range(sessions)
        for t in range(length)
    ]


def csv(names: str, rows: list[list[Any]]) -> str:
    return "\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_the_rows_of_one_person_are_a_series(tmp_path):
    some = [[row[0], *row[2:]] for row in rows(8, 1, 12)]
    source = opened(tmp_path / "long.csv", csv("person,seconds,hr,acc,state", some), target="state")
    assert (source.reading.id, source.reading.time, source.reading.layout) == ("person", "seconds", "long")
    assert [len(example.input) for example in source] == [12] * 8
    assert any("rows of one person are a series" in note for note in source.notes)


def test_the_series_of_one_person_are_a_group(tmp_path):
    source = opened(tmp_path / "long.csv", csv("person,run,seconds,hr,acc,state", rows(6, 3, 10)), target="state")
    assert (source.reading.id, source.reading.time, source.reading.group) == ("run", "seconds", "person")
    assert {example.group for example in source} == {f"P{p}" for p in range(6)}


def test_a_time_that_is_called_so_need_not_begin_anew(tmp_path):
    some = [[row[0], 1000 * k + row[2], *row[3:]] for k, row in enumerate(rows(8, 1, 12))]
    source = opened(tmp_path / "long.csv", csv("person,timestamp,hr,acc,state", some), target="state")
    assert (source.reading.id, source.reading.time) == ("person", "timestamp")


def test_rows_with_a_target_each_stay_together_in_a_split(tmp_path):
    some = [[row[0], *row[2:]] for row in rows(8, 1, 12, lambda p, s, t: f"s{t // 3 % 2}")]
    source = opened(tmp_path / "long.csv", csv("person,seconds,hr,acc,state", some), target="state")
    assert source.reading.group == "person"
    assert source.reading.id is None
    assert {example.group for example in source} == {f"P{p}" for p in range(8)}
    assert source.reading.column == "hr,acc" or list(source.reading.column) == ["hr", "acc"]


@pytest.mark.parametrize("case", ["mixed", "falls", "fractions", "alone", "named"])
def test_other_tables_are_read_as_before(tmp_path, case):
    some = [[row[0], *row[2:]] for row in rows(8, 1, 12)]
    if case == "mixed":  # ids that come again
        some = some[::2] + some[1::2]
    if case == "falls":
        some = some[::-1]
    if case == "fractions":
        some = [[int(row[0][1:]) + 0.5, *row[1:]] for row in some]
    if case == "alone":  # an id in each row
        some = [[f"P{k}", *row[1:]] for k, row in enumerate(some)]
    given = {"column": "hr,acc", "layout": "wide"} if case == "named" else {}
    text = csv("person,seconds,hr,acc,state", some)
    if case in ("mixed", "falls", "alone"):  # words that nothing tells the use of
        text = csv("person,seconds,hr,acc,state", [[row[0][1:], *row[1:]] for row in some])
    source = opened(tmp_path / "wide.csv", text, target="state", **given)
    assert source.reading.layout == "wide"
    assert source.reading.id is None


@pytest.mark.parametrize("length", [12, 120])  # the second shows three series in the rows by which columns are known
def test_what_each_series_has_one_of_is_its_target(tmp_path, length):
    some = [[100 + k // length, k % length, *row[3:]] for k, row in enumerate(rows(9, 1, length))]
    (tmp_path / "long.csv").write_text(csv("window,step,hr,acc,activity", some))
    assert guess_answers(look(tmp_path / "long.csv"), Reading()) == "class"
    source = opened(tmp_path / "long.csv", csv("window,step,hr,acc,activity", some))
    assert (source.reading.id, source.reading.target, source.reading.layout) == ("window", "activity", "long")
    assert [len(example.input) for example in source] == [length] * 9


def test_a_last_column_of_another_value_in_each_row_is_no_target(tmp_path):
    some = [
        [100 + k // 12, k % 12, row[3], (k * 31 % 97) / 8, (k * 37 % 101) / 8] for k, row in enumerate(rows(9, 1, 12))
    ]
    (tmp_path / "long.csv").write_text(csv("window,step,hr,acc,other", some))
    assert guess_answers(look(tmp_path / "long.csv"), Reading()) is None
