"""CONTRIBUTING.md says where things are: its files, names, rooms and the order of imports are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.test_architecture import ORDER
from unrolled.core import discover
from unrolled.core.discover import Room

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(name: str) -> list[list[str]]:
    """The rows of the table of a section, as cells."""
    part = TEXT.split(f"## {name}\n", 1)[1].split("\n## ", 1)[0]
    return [row.strip("| ").split(" | ") for row in part.splitlines() if row.startswith("| ")][1:]


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) < 60


def test_the_five_places_are_there() -> None:
    rows = section("Five places to know")
    assert len(rows) == 5
    for _, place in rows:
        words = re.findall(r"`([^`]+)`", place)
        files = [word for word in words if "/" in word]
        trees = [ast.parse((ROOT / file).read_text(encoding="utf-8")) for file in files]
        defined = {
            each.name for tree in trees for each in tree.body if isinstance(each, ast.ClassDef | ast.FunctionDef)
        }
        assert files
        assert set(words) - set(files) <= defined, place


def test_the_rooms_are_those_of_the_code() -> None:
    told = {
        re.findall(r"`([^`]+)/`", file)[0]: re.findall(r"`([^`]+)`", needs)
        for _, file, needs in section("One file each")
    }
    rooms = [each for each in vars(discover).values() if isinstance(each, Room)]
    wanted = {room.package.replace(".", "/"): list(room.needs) for room in rooms}
    assert told == wanted | {"unrolled/cli": ["command"]}


def test_the_order_of_imports_is_the_one_that_is_tested() -> None:
    there = [sorted(room for room in rooms if list((ROOT / "unrolled").glob(f"{room}*"))) for rooms in ORDER]
    line = next(each for each in TEXT.splitlines() if each.startswith("`core < "))
    assert [sorted(rooms.split(", ")) for rooms in line.strip("`.").split(" < ")] == there
