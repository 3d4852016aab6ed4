"""The page about the Python API names all that is public, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unrolled
from tests.fixtures.make import COMPARISONS, RUNS

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = {part.splitlines()[0].strip("`"): part for part in TEXT.split("\n## ")[1:]}


def first_columns(section: str, column: int = 1) -> list[str]:
    """The names in a column of the tables of a section."""
    cells = [line.split("|")[column] for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [name for cell in cells for name in re.findall(r"`([\w.]+)", cell)]


def test_every_public_module_has_a_section() -> None:
    assert [name for name in SECTIONS if name.startswith("unrolled.")] != []
    assert {name.removeprefix("unrolled.") for name in SECTIONS if "." in name} == set(unrolled._modules)


def test_functions_and_classes_are_all_there() -> None:
    named = {name.removeprefix("unrolled.") for name in first_columns("Functions and classes") if "unrolled." in name}
    assert named == set(unrolled.__all__) - set(unrolled._modules)


@pytest.mark.parametrize("module", unrolled._modules)
def test_the_names_of_a_module_are_all_there(module: str) -> None:
    section = f"unrolled.{module}"
    columns = first_columns(section, 2) if module == "nn" else first_columns(section)
    if module == "results":  # types of parts of results stand beside them
        columns += [name for name in first_columns(section, 2) if name[0].isupper()]
    assert sorted(columns) == sorted(getattr(unrolled, module).__all__)


def test_exit_codes_are_right() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\d+) \|", SECTIONS["unrolled.errors"], re.MULTILINE)
    assert {name: int(code) for name, code in told} == {
        name: getattr(unrolled.errors, name).exit_code for name in unrolled.errors.__all__
    }


def test_attributes_and_methods_are_there() -> None:
    run = unrolled.load(RUNS / "next-token")
    owners = {"run": run, "session": run.session(), "comparison": unrolled.Comparison(COMPARISONS / "folds")}
    named = [name.split(".") for name in first_columns("Functions and classes") if name.split(".")[0] in owners]
    assert len(named) > 20
    assert [name for owner, name in named if not hasattr(owners[owner], name)] == []
