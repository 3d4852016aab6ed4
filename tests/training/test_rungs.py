"""Rungs: a run that pauses, and continues with more time or is ended there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import unrolled
from unrolled.runs.storage.checkpoint import Checkpoints
from unrolled.runs.storage.directory import RunDirectory
from unrolled.training import api, finishing, fit, loop, rungs

TEXT = ["the cat sat on the mat", "a dog ate my homework", "no cat has nine lives", "the dog sat on a log"] * 12
SMALL: dict[str, Any] = {"batch_size": 4, "d_state": 8, "evaluate_every": 20, "threads": 1, "warmup": 5, "plain": True}


@pytest.fixture
def paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that pauses after 0.6 s, of a clock by which a step takes 0.01 s and nothing else takes any time."""
    now, step = [1000.0], loop.Loop._step

    def timed(self: loop.Loop) -> float:
        now[0] += 0.01
        return step(self)

    for module in (loop, api, fit, finishing):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(loop.Loop, "_step", timed)
    with pytest.raises(rungs.Paused), rungs.until(0.6):
        unrolled.train(
            TEXT, "next-token", "gru", out=tmp_path / "run", time=60.0, settings={"ends.d_embedding": 8}, **SMALL
        )
    return tmp_path / "run"


def horizon(path: Path) -> int | None:
    found = Checkpoints(path / "checkpoints").latest()
    assert found is not None
    return found.facts["plan"]["horizon"]  # type: ignore[no-any-return]


def test_a_run_pauses_at_its_rung(paused: Path) -> None:
    at = rungs.reached(paused)
    assert at is not None
    assert at.seconds == pytest.approx(0.6, abs=0.011)
    assert at.steps in (60, 61)
    assert at.criterion == "nats"
    total, count = (sum(unit[i] for unit in at.units) for i in (0, 1))
    assert total / count == pytest.approx(at.score)  # nats are their mean
    assert horizon(paused) is None  # how long it will be is open
    lines = [json.loads(line) for line in (paused / "metrics.jsonl").read_text().splitlines()]
    rates = [line["rate"] for line in lines if line.get("split") == "valid" and line["step"] > 5]
    assert len(rates) > 1
    assert len(set(rates)) == 1  # flat
    assert not (paused / "result.json").exists()


def test_it_continues_and_cools_down(paused: Path) -> None:
    before = rungs.reached(paused)
    assert before is not None
    rungs.extend(paused, before.seconds + 2.0, "came to the end")
    rungs.extend(paused, 500.0)  # what was the last time stays
    run = unrolled.train(TEXT, resume=paused)
    assert run.result["steps"] > before.steps
    assert run.result["valid"]["nats"] <= before.score + 1e-3
    assert run.result["horizon"] == pytest.approx(run.result["steps"], abs=9)
    lines = [json.loads(line) for line in (paused / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["rate"] < lines[1]["rate"]
    assert run.result["recipe"] == ["came to the end"]


def test_one_that_is_ended_keeps_what_it_has(paused: Path, tmp_path: Path) -> None:
    before = rungs.reached(paused)
    assert before is not None
    rungs.end(paused, "stopped after 0.6 s")
    rungs.end(paused, "stopped after 0.6 s")  # again, after a kill
    run = unrolled.train(TEXT, resume=paused)
    assert run.result["steps"] == before.steps
    assert run.result["recipe"] == ["stopped after 0.6 s"]
    assert "stopped after 0.6 s" in (paused / "README.md").read_text()
    again = unrolled.train(TEXT, recipe=paused / "recipe.toml", out=tmp_path / "again")
    last = {name: value for name, value in _last(again.path).items() if name.startswith("model.")}
    assert all(torch.equal(value, _last(paused)[name]) for name, value in last.items())


def _last(path: Path) -> dict[str, torch.Tensor]:
    found = Checkpoints(path / "checkpoints").latest()
    assert found is not None
    return found.tensors


@pytest.mark.parametrize(
    ("schedule", "can"), [("trapezoid", True), ("constant", True), ("plateau", True), ("cosine", False)]
)
def test_only_a_rate_that_is_flat_at_first_can_wait(schedule: str, can: bool) -> None:
    config = api.configure("next-token", "gru", TEXT, {"schedule": schedule})
    assert rungs.can_wait(config) is can


def test_what_was_used_at_a_rung_stays_used(paused: Path) -> None:
    """Also where the checkpoint is from before: rates were raced, and of them the winner's time is in it."""
    before = rungs.reached(paused)
    assert before is not None
    values = json.loads((paused / "rung.json").read_text())
    RunDirectory.open(paused).write_json("rung.json", {**values, "seconds": 30.0})
    rungs.end(paused, "stopped")
    assert unrolled.train(TEXT, resume=paused).result["steps"] == before.steps


def test_a_rung_of_another_kind_is_none(paused: Path) -> None:
    before = (paused / "rung.json").read_text()
    for odd in ("[]", "{}", '{"seconds": -1, "steps": 1, "criterion": "nats", "score": 1}', "{"):
        (paused / "rung.json").write_text(odd)
        assert rungs.reached(paused) is None
    (paused / "rung.json").write_text(before)
    assert rungs.reached(paused) is not None


def test_a_plain_run_has_no_rung(tmp_path: Path) -> None:
    assert rungs.current() is None
    assert rungs.reached(tmp_path) is None
    run = unrolled.train(TEXT, "next-token", "gru", out=tmp_path / "run", steps=5, **SMALL)
    assert rungs.reached(run.path) is None


def test_a_rung_of_steps_changes_nothing(tmp_path: Path) -> None:
    """The schedule is that of the whole run, so that it is the same digit by digit."""

    def train(name: str) -> unrolled.Run:
        return unrolled.train(
            TEXT, "next-token", "gru", out=tmp_path / name, steps=60, settings={"ends.d_embedding": 8}, **SMALL
        )

    whole = train("whole")
    with pytest.raises(rungs.Paused), rungs.until(steps=40):
        train("rung")
    at = rungs.reached(tmp_path / "rung")
    assert at is not None and at.steps == 40 and horizon(tmp_path / "rung") == 60
    with rungs.until(steps=60):  # no rung: that is all
        found = unrolled.train(TEXT, resume=tmp_path / "rung")
    assert (found.result["valid"], found.result["test"]) == (whole.result["valid"], whole.result["test"])
    assert at.score > found.result["valid"]["nats"]
