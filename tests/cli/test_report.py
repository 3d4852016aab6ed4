"""`unrolled report` and `unrolled runs` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import run_unrolled
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.directory import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = RunDirectory.create(tmp_path / "runs" / "gru")
    made.write_config(RunConfig(model="gru", source="poems.txt").model_dump(mode="json"))
    made.write_json("result.json", {"parameters": 1234, "test": {"nats": 1.25, "tokens": 10}, "baselines": {}})
    made.seal()
    return made.path


@pytest.mark.parametrize("command", ["report", "runs"])
def test_help_has_an_example(command: str) -> None:
    text = run_unrolled(command, "--help").stdout
    assert "Examples" in text
    assert f"unrolled {command} " in text


def test_report(run: Path, tmp_path: Path) -> None:
    assert run_unrolled("report", "runs/gru", cwd=tmp_path).stdout == "runs/gru/report.html\n"
    assert "1.2500" in (run / "report.html").read_text()
    assert run_unrolled("report", "runs/gru", "-o", "page.html", cwd=tmp_path).stdout == "page.html\n"
    assert (tmp_path / "page.html").exists()
    said = run_unrolled("report", tmp_path, code=3).stderr
    assert "neither a run directory nor a comparison" in said
    assert len(said.splitlines()) == 1


def test_runs(run: Path, tmp_path: Path) -> None:
    shown = run_unrolled("runs", cwd=tmp_path).stdout
    for word in ("runs/gru", "next-token", "1.2500 nats", "1.23k", "finished"):
        assert word in shown
    listed = json.loads(run_unrolled("runs", "runs", "--json", cwd=tmp_path).stdout)
    assert [(each["path"], each["model"], each["score"]) for each in listed] == [("runs/gru", "gru", 1.25)]
    assert "unrolled train" in run_unrolled("runs", cwd=run).stdout
    assert "not a folder" in run_unrolled("runs", "nowhere", code=2).stderr


def test_deleting_asks(run: Path, tmp_path: Path) -> None:
    run_unrolled("runs", "--delete", "runs/gru", cwd=tmp_path, stdin="n\n", code=1)
    run_unrolled("runs", "--delete", "runs/gru", cwd=tmp_path, stdin="", code=1)
    assert run.exists()
    assert "name the runs" in run_unrolled("runs", "--delete", code=2).stderr
    assert "neither a run" in run_unrolled("runs", "--delete", "--yes", "runs", cwd=tmp_path, code=2).stderr
    assert "Deleted runs/gru" in run_unrolled("runs", "--delete", "runs/gru", cwd=tmp_path, stdin="y\n").stdout
    assert not run.exists()
