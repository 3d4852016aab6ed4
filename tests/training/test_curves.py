"""TensorBoard has the loss of every step, once, also after a stop, a crash and a roll back."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.runs.test_tensorboard import read
from unrolled.runs.run import Run
from unrolled.tasks import next_token
from unrolled.training.loop import Loop

Fit = Callable[..., Run]


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """The loss of each step as it was computed, of repeated steps the last one."""
    found: dict[int, float] = {}
    original = Loop._step

    def step(self: Loop) -> float:
        loss = original(self)
        for later in [number for number in found if number > self.at.step]:
            del found[later]  # rolled back
        if math.isfinite(loss):
            found[self.at.step] = loss
        return loss

    monkeypatch.setattr(Loop, "_step", step)
    return found


def check(run: Run, losses: dict[int, float]) -> None:
    points = read(run.path / "tensorboard")
    assert [step for step, _ in points["train/loss"]] == sorted(losses)
    assert dict(points["train/loss"]) == pytest.approx(losses, rel=1e-6)
    valid = {line["step"]: line["nats"] for line in run.directory.read_metrics() if line.get("split") == "valid"}
    assert dict(points["valid/nats"]) == pytest.approx(valid, rel=1e-6)


def test_one_point_for_every_step(fit: Fit, losses: dict[int, float]) -> None:
    run = fit("run", {"steps": 25, "evaluate_every": 10})
    assert sorted(losses) == list(range(1, 26))
    check(run, losses)


@pytest.mark.parametrize("how", ["stopped", "crashed"])
def test_a_resumed_run_has_no_point_twice(
    fit: Fit, losses: dict[int, float], how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = Loop._show

    def trouble(self: Loop, loss: float) -> None:
        original(self, loss)
        if self.at.step == 17:
            if how == "crashed":
                raise RuntimeError("the machine is on fire")
            self.stop.asked = True

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_show", trouble)
        with pytest.raises(Exception, match=r"fire|resume"):
            fit("run", {"steps": 30, "evaluate_every": 10})
    check(unrolled.train(tmp_path / "text.txt", resume=tmp_path / "run"), losses)


def test_a_roll_back_has_no_point_twice(fit: Fit, losses: dict[int, float], monkeypatch: pytest.MonkeyPatch) -> None:
    original, bad = next_token.Task.loss, iter(range(100))

    def poisoned(self: Any, y: Any, batch: Any) -> Any:
        total, count = original(self, y, batch)
        return (total * math.nan if next(bad) in (25, 26, 27, 28) else total), count

    monkeypatch.setattr(next_token.Task, "loss", poisoned)
    run = fit("run", {"steps": 40, "evaluate_every": 10})
    assert any("back to step 20" in line.get("event", "") for line in run.directory.read_metrics())
    check(run, losses)
