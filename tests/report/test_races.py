"""What a report shows of a race, and of an ensemble's members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unrolled.report.group import Group, groups_of
from unrolled.report.members import member_table
from unrolled.report.page import write_report
from unrolled.report.read import read_any
from unrolled.report.rungs import rung_table, words
from unrolled.report.scores import columns_of, lines_of
from unrolled.runs.storage.directory import RunDirectory

WHY = "stopped after 9 s at rung 1 of the race: nats 2.5 on validation data, behind gru with 1.5"
RACE: list[dict[str, Any]] = [
    {"time": 20.0, "until": 9.0, "runs": ["gru-0", "tcn-0"], "scores": {"gru": 1.5, "tcn": 2.5},
     "stopped": {"tcn": WHY}, "judged": True},
    {"time": 31.0, "until": None, "runs": ["gru-0"], "scores": {}, "stopped": {}, "judged": False},
]  # fmt: skip
MEMBERS = [
    {"run": "gru-0", "weight": 0.75, "alone": 1.5, "without": 1.9, "with": 1.4, "cost": 0.8},
    {"run": "tcn-0", "weight": 0.25, "alone": 1.9, "without": 1.5, "with": 1.4, "cost": 0.2},
]


def group_of(make: Any, race: Any = RACE) -> Group:
    rows = [
        make.row("gru", 1.5, rung=2, stopped=None, seconds_given=31.0, runs=[]),
        make.row("tcn", 2.5, rung=1, stopped=WHY, seconds_given=9.0, runs=[]),
    ]
    (group,) = groups_of([read_any(make.comparison("raced", rows, match="race", race=race))])
    return group


def test_the_scores_at_each_rung_and_who_was_stopped(make: Any) -> None:
    group = group_of(make)
    table = rung_table(group)
    assert table is not None
    assert table.columns == ["model", "up to 9 s each", "stopped"]
    assert table.rows == [["gru", "1.5000", ""], ["tcn", "2.5000", WHY]]
    columns = columns_of(group)
    given = [column.title for column in columns].index("given")
    lines = {line.label: line for line in lines_of(group, columns)}
    assert lines["tcn"].cells[given] == "9 s"
    assert lines["gru"].cells[given] == "31 s"
    assert lines["tcn"].remark == WHY


def test_the_page_of_a_race(make: Any) -> None:
    group_of(make)
    page = write_report([make.folder / "raced"]).read_text(encoding="utf-8")
    assert "2 runs up to 9 s each, tcn stopped; then 1 run 31 s each in all" in page
    assert WHY in page
    assert "the worse half is stopped" in page


@pytest.mark.parametrize("odd", [None, 7, "x", [1], [{"scores": 1, "stopped": 2, "until": "x", "runs": 3}], [{}]])
def test_a_race_of_another_kind_is_none(make: Any, odd: Any) -> None:
    group = group_of(make, odd)
    assert rung_table(group) is None
    assert isinstance(words(group.table), str)


def with_members(make: Any, members: Any) -> Group:
    path = make.run("ensemble", "gru", 1.4)
    result = read_any(path).result  # type: ignore[union-attr]
    RunDirectory.open(Path(path)).write_json("result.json", {**result, "members": members})
    (group,) = groups_of([read_any(path)])
    return group


def test_what_each_member_brings(make: Any) -> None:
    table = member_table(with_members(make, MEMBERS))
    assert table is not None
    assert table.rows == [
        ["gru-0", "75%", "1.5000", "1.9000", "1.4000", "80%"],
        ["tcn-0", "25%", "1.9000", "1.5000", "1.4000", "20%"],
    ]


@pytest.mark.parametrize("odd", [None, 7, [], "x"])
def test_members_of_another_kind_are_none(make: Any, odd: Any) -> None:
    assert member_table(with_members(make, odd)) is None
