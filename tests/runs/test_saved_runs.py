"""Runs that were saved once and are kept (tests/fixtures): every release opens them and gives the same outputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.fixtures.make import COMPARISONS, RUNS, differences, outputs, plain, restored
from unrolled.core import discover
from unrolled.report.listing import list_all
from unrolled.report.page import write_report
from unrolled.runs.storage.directory import RunDirectory

NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
FOLDS = sorted(path.name for path in COMPARISONS.iterdir() if path.is_dir())
LARGEST = 60_000  # bytes of a directory


def config(name: str) -> dict[str, Any]:
    return dict(json.loads((RUNS / name / "config.json").read_text(encoding="utf-8")))


def check_outputs(path: Path, kept: Path) -> None:
    saved = json.loads(kept.read_text(encoding="utf-8"))
    found = plain(outputs(unrolled.load(path), restored(saved["inputs"])))
    assert found.keys() == saved["expected"].keys() != set()
    assert differences(saved["expected"], found) == []


def test_every_task_has_a_saved_run() -> None:
    missing = sorted(set(discover.tasks.names()) - {config(name)["task"] for name in NAMES})
    lines = "add a line to CASES in tests/fixtures/make.py"
    assert not missing, f"no saved run of {', '.join(missing)}: {lines} and run `python -m tests.fixtures.make NAME`"


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_run_does_all_that_it_did(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    shutil.copytree(RUNS / name, place)
    RunDirectory.open(place).verify()
    check_outputs(place, RUNS / f"{name}.json")
    (entry,) = list_all([place])
    assert (entry.state, entry.task, entry.model) == ("finished", config(name)["task"], config(name)["model"])
    assert entry.score is not None and entry.bytes < LARGEST
    assert name in write_report([place]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FOLDS)
def test_a_saved_comparison_does_all_that_it_did(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    shutil.copytree(COMPARISONS / name, place)
    check_outputs(place, COMPARISONS / f"{name}.json")
    found = unrolled.Comparison(place)
    assert found.best.config.members == 2
    for row in found.rows:
        for folder in row["runs"]:
            RunDirectory.open(place / folder).verify()
            assert found.run(folder).config.model == row["model"]
    (entry,) = list_all([place])
    assert (entry.kind, entry.state) == ("comparison", "finished") and entry.bytes < 2 * LARGEST
    assert found.rows[0]["label"] in write_report([place]).read_text(encoding="utf-8")
