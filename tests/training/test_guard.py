"""NaN and infinity: skip, roll back with a smaller rate, give up."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.thorough import every
from unrolled.core.errors import Diverged, Interrupted
from unrolled.runs.run import Run
from unrolled.runs.storage.directory import RunDirectory
from unrolled.tasks import next_token
from unrolled.training.guard import CUT, ROLLBACKS, SKIPS, Guard
from unrolled.training.loop import Loop

Fit = Callable[..., Run]


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (1.0, math.inf), (math.inf, math.nan)])
def test_one_bad_batch_is_skipped_and_forgiven(loss: float, norm: float) -> None:
    guard = Guard()
    assert guard.judge(3, loss, norm) == "skip"
    assert guard.judge(4, 1.0, 1.0) == "fine"
    assert guard.skipped == 0


def test_many_in_a_row_roll_back_then_stop() -> None:
    guard = Guard()
    for rollback in range(1, ROLLBACKS + 1):
        assert [guard.judge(0, math.nan, 1.0) for _ in range(SKIPS + 1)] == ["skip"] * SKIPS + ["roll back"]
        assert guard.scale == pytest.approx(CUT**rollback)
    for _ in range(SKIPS):
        guard.judge(0, math.nan, 1.0)
    with pytest.raises(Diverged, match="batch 77"):
        guard.judge(77, math.nan, 1.0)


def test_its_memory_survives_a_checkpoint() -> None:
    guard = Guard(skipped=2, rollbacks=1, scale=0.3)
    assert Guard(**guard.state()) == guard


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Callable[[set[int]], None]:
    """The losses of these batches, counted from 0 as they are asked for, come out as NaN."""

    def poison(which: set[int]) -> None:
        original, calls = next_token.Task.loss, iter(range(10_000))

        def loss(self: Any, y: Any, batch: Any) -> Any:
            total, count = original(self, y, batch)
            return (total * math.nan if next(calls) in which else total), count

        monkeypatch.setattr(next_token.Task, "loss", loss)

    return poison


def test_a_checkpoint_is_not_made_while_batches_are_skipped(fit: Fit, poison: Any) -> None:
    """Batches 18 to 21 fail. What is saved after 18, 19 or 20 would have the weights that fail, and what a clock has
    saved just before would be another one the next time."""
    poison({18, 19, 20, 21})
    run = fit("run", {"steps": 30, "save_every": 1e-9, "evaluate_every": 10, "lr": 0.001})
    events = [line["event"] for line in run.directory.read_metrics() if "event" in line]
    assert [event.split(":")[0] for event in events] == ["batch 18", "batch 19", "batch 20", "batch 21"]
    assert "back to step 10 with the learning rate" in events[-1]


def test_what_was_left_out_is_made_up_for(fit: Fit, poison: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    poison({18, 19, 20})
    saved: list[int] = []
    save = Loop.save

    def note(self: Loop, target: bool = False) -> None:
        before = self.saved_step
        save(self, target)
        if self.saved_step != before:
            saved.append(self.saved_step)

    monkeypatch.setattr(Loop, "save", note)
    fit("run", {"steps": 30, "evaluate_every": 10})
    assert saved == [0, 10, 22, 30]


@pytest.mark.parametrize("stops", every(2, [[16], [12, 16], [20], [14]]))
def test_a_run_that_rolls_back_is_resumed_with_the_same_bits(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stops: list[int]
) -> None:
    """Batches 18 to 21 fail at the first rate. Stopped before, meanwhile or (14) on the way again: a checkpoint made
    because of that is not the one to go back to, and what went wrong stays on record."""
    gradient, show = Loop._gradient, Loop._show
    left, seen = list(stops), [False]

    def failing(self: Loop, step: int) -> tuple[float, float]:
        seen[0] = seen[0] or step == 21
        found = gradient(self, step)
        return (math.nan, math.nan) if self.at.guard.scale == 1 and 18 <= step <= 21 else found

    def stop(self: Loop, loss: float) -> None:
        show(self, loss)
        if left and self.at.step == left[0] and (left[0] != 14 or seen[0]):
            self.stop.asked = bool(left.pop(0))

    monkeypatch.setattr(Loop, "_gradient", failing)
    settings = {"steps": 30, "evaluate_every": 10}
    whole = fit("whole", settings)
    seen[0] = False
    monkeypatch.setattr(Loop, "_show", stop)
    with pytest.raises(Interrupted):
        fit("run", settings)
    while left:
        with pytest.raises(Interrupted):
            unrolled.train(tmp_path / "text.txt", resume=tmp_path / "run")
    run = unrolled.train(tmp_path / "text.txt", resume=tmp_path / "run")
    lines = [[{**line, "seconds": 0} for line in each.directory.read_metrics()] for each in (whole, run)]
    assert lines[0] == lines[1]
    assert sum("event" in line for line in lines[0]) == 4
    assert (whole.path / "model.safetensors").read_bytes() == (run.path / "model.safetensors").read_bytes()


def test_stopped_while_batches_are_skipped_it_says_what_is_saved(
    fit: Fit, poison: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    poison({18, 19})

    def show(self: Loop, loss: float) -> None:
        self.stop.asked = self.at.step == 19

    with monkeypatch.context() as patch, pytest.raises(Interrupted, match="stopped at step 20 and the last checkpoint"):
        patch.setattr(Loop, "_show", show)
        fit("run", {"steps": 30, "evaluate_every": 10})
    assert "step-00000010" in (RunDirectory.open(tmp_path / "run").path / "checkpoints" / "latest").read_text()
