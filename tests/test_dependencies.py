"""What is installed: direct dependencies have both bounds, and the lock file pins everything by hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: [*map(Requirement, needs)] for name, needs in PROJECT["optional-dependencies"].items()}
DEV = EXTRAS.pop("dev")
DIRECT = [*map(Requirement, PROJECT["dependencies"]), *DEV]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", LOCK, re.MULTILINE))


@pytest.mark.parametrize("need", DIRECT, ids=lambda need: need.name)
def test_a_direct_dependency_has_both_bounds_and_is_locked(need: Requirement) -> None:
    assert {one.operator for one in need.specifier} == {">=", "<"}
    pins = {"torch": "2.13.0"} | PINS
    assert need.specifier.contains(pins[need.name])


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_has_both_bounds_and_is_installed_only_where_tests_need_it(name: str) -> None:
    """What tests need of an extra is among what development installs, with the same bounds."""
    for need in EXTRAS[name]:
        assert {one.operator for one in need.specifier} == {">=", "<"}
        assert need in DEV or need.name not in PINS
    assert PINS.keys() >= {need.name for need in EXTRAS["onnx"] + EXTRAS["serve"]}


def test_the_lock_has_a_hash_for_every_version_and_no_torch() -> None:
    entries = re.split(r"\n(?=[a-z])", LOCK.strip())
    assert len(entries) == len(PINS) > 60
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert not any("://" in entry for entry in entries)
    assert "torch" not in PINS  # another range, or a second build, pulls gigabytes


def test_what_torch_needs_is_one_version_in_both_files() -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    assert lines[0] == "torch==2.13.0"
    assert all(PINS[name] == version for name, version in (line.split("==") for line in lines[1:]))
