"""metrics.jsonl, plan.json and table.json: one changed digit is met, and a kill between two saves is no damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from unrolled.comparison.config import CompareConfig
from unrolled.comparison.files import PLAN, read_plan, write_plan, write_table
from unrolled.comparison.plan import Plan
from unrolled.core.errors import DataError
from unrolled.runs.selection import read_table
from unrolled.runs.storage import atomic, formats, manifest, metrics
from unrolled.runs.storage.directory import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory.create(tmp_path / "run")
    made.write_json("config.json", {})
    for step in range(4):
        made.append_metrics({"step": step, "loss": 1.25 + step})
    return made


def place(run: RunDirectory) -> Path:
    return run.path / "metrics.jsonl"


def test_a_changed_digit_is_met(run: RunDirectory) -> None:
    assert len(run.read_metrics()) == 4
    whole = place(run).read_bytes()
    for at, byte in enumerate(whole):
        if chr(byte).isdigit():
            place(run).write_bytes(whole[:at] + bytes([48 + (byte - 47) % 10]) + whole[at + 1 :])
            for use in (run.read_metrics, lambda: run.append_metrics({"step": 9}), lambda: run.cut_metrics(1)):
                with pytest.raises(DataError, match=r"metrics\.jsonl.* damaged"):
                    use()
    place(run).write_bytes(whole[: whole.index(b"\n") + 1])
    with pytest.raises(DataError, match="damaged"):
        run.read_metrics()
    place(run).unlink()
    with pytest.raises(DataError, match="damaged"):
        run.read_metrics()


def test_lines_after_the_seal_are_read_because_a_kill_can_leave_them(run: RunDirectory) -> None:
    metrics.append(place(run), {"step": 4, "loss": 9.5})  # as when the kill comes before the manifest is written
    assert [line["step"] for line in run.read_metrics()] == [0, 1, 2, 3, 4]
    with place(run).open("ab") as file:
        file.write(b'{"step": 5, "lo')
    assert [line["step"] for line in run.read_metrics()] == [0, 1, 2, 3, 4]
    run.append_metrics({"step": 5})
    assert [line["step"] for line in run.read_metrics()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("moment", ["announced", "replaced"])
def test_a_kill_while_lines_are_cut_off(run: RunDirectory, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    commit = atomic.Draft.commit

    def killed(self: Any) -> None:
        if self.target.name == "metrics.jsonl":
            if moment == "replaced":
                commit(self)
            raise Killed
        commit(self)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(atomic.Draft, "commit", killed)
        run.cut_metrics(1)
    expected = [0, 1] if moment == "replaced" else [0, 1, 2, 3]
    assert [line["step"] for line in run.read_metrics()] == expected
    run.verify()
    run.cut_metrics(1)
    run.append_metrics({"step": 2})
    assert [line["step"] for line in run.read_metrics()] == [0, 1, 2]
    assert not manifest.read_manifest(run.path).pending


def test_runs_of_before_have_no_such_seal(run: RunDirectory) -> None:
    seals = manifest.read_manifest(run.path)
    seals.prefixes.clear()
    (run.path / manifest.NAME).write_text(seals.to_text())
    place(run).write_text('{"step": 1}\n')
    assert run.read_metrics() == [{"step": 1}]


TABLE: dict[str, Any] = {"rows": [{"label": "gru", "score": 1.25}], "seeds": [0]}


def test_a_changed_digit_of_a_table_or_a_plan_is_met(tmp_path: Path) -> None:
    write_table(tmp_path, TABLE)
    assert read_table(tmp_path) == TABLE
    plan = Plan(data="builtin:digits", task="classify", guessed=None, asked=CompareConfig(), settings={"lr": 0.125},
                jobs=[], at_once=1, threads=1)  # fmt: skip
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == plan
    for name, read in (("table.json", read_table), (PLAN, read_plan)):
        whole = (tmp_path / name).read_text()
        for at, letter in enumerate(whole):
            if letter.isdigit():
                (tmp_path / name).write_text(whole[:at] + str((int(letter) + 1) % 10) + whole[at + 1 :])
                with pytest.raises(DataError, match="damaged"):
                    read(tmp_path)


def test_a_table_without_its_sha256_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text(json.dumps(formats.numbered(TABLE)))
    with pytest.raises(DataError, match="sha256 differs or is missing"):
        read_table(tmp_path)
    os.truncate(tmp_path / "table.json", 20)
    with pytest.raises(DataError, match="not JSON"):
        read_table(tmp_path)
