"""What the loop makes of its evaluations: which weights stay, when the rate falls, when to stop, what is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from tests.training.conftest import SMALL
from unrolled.layers.recurrent.recurrent import Stacked
from unrolled.runs.run import Run
from unrolled.tasks import next_token
from unrolled.training.loop import Loop
from unrolled.training.progress import Quiet

Fit = Callable[..., Run]


class Seen(Quiet):
    """Remembers everything that could be shown."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[float, float, float, float | None]] = []
        self.evaluations: list[tuple[int, dict[str, float], bool]] = []

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None:
        self.steps.append((share, loss, tokens_per_second, left))

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None:
        self.evaluations.append((step, figures, best))


@pytest.fixture
def watch(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Run, Seen]]:
    """Train while the validation scores are those given, the last one for ever; None: as they are."""

    def watch(scores: list[float] | None, settings: dict[str, Any]) -> tuple[Run, Seen]:
        original, left = next_token.Task.evaluate, list(scores or [])

        def evaluate(self: Any, model: Any, split: str, limit: int | None = None, ledger: Any = None) -> Any:
            figures = original(self, model, split, limit, ledger)
            if limit is None or not left:
                return figures
            return figures | {"nats": left.pop(0) if len(left) > 1 else left[0]}

        monkeypatch.setattr(next_token.Task, "evaluate", evaluate)
        file, seen = tmp_path / "text.txt", Seen()
        file.write_text(text)
        run = unrolled.train(file, model="lstm", out=tmp_path / "run", settings=SMALL | settings, progress=seen)
        return run, seen

    return watch


def test_the_best_weights_stay_and_of_equals_the_later(watch: Any) -> None:
    run, seen = watch([3.0, 2.0, 2.0, 5.0, 2.5], {"steps": 40})
    assert [(step, best) for step, _, best in seen.evaluations] == [
        (0, True), (10, True), (20, True), (30, False), (40, False),
    ]  # fmt: skip
    assert run.result["best_step"] == 20
    assert [figures["nats"] for _, figures, _ in seen.evaluations] == [3.0, 2.0, 2.0, 5.0, 2.5]


def test_on_a_plateau_the_rate_is_halved_every_second_time(watch: Any) -> None:
    settings = {"steps": 60, "schedule": "plateau", "warmup": 0, "lr": 0.001}
    run, _ = watch([1.0, 2.0, 2.0, 2.0, 2.0, 0.5, 2.0], settings)
    rates = {line["step"]: line["rate"] for line in run.directory.read_metrics()}
    assert [rates[step] for step in range(10, 70, 10)] == pytest.approx(
        [0.001, 0.001, 0.0005, 0.0005, 0.00025, 0.00025]
    )


@pytest.mark.parametrize(
    ("scores", "steps"), [([1.0, 1.0], 20), ([3.0, 2.0, 1.0, 4.0], 40), ([1.0, 2.0, 0.5, 2.0], 40)]
)
def test_patience_counts_evaluations_without_a_better_score(watch: Any, scores: list[float], steps: int) -> None:
    run, _ = watch(scores, {"steps": 100, "patience": 2})
    assert run.result["steps"] == steps


def test_without_patience_it_goes_on(watch: Any) -> None:
    run, _ = watch([1.0, 2.0], {"steps": 50})
    assert (run.result["steps"], run.result["best_step"]) == (50, 0)


def test_every_step_is_shown(watch: Any) -> None:
    run, seen = watch(None, {"steps": 20})
    shares, losses, speeds, left = zip(*seen.steps, strict=True)
    assert shares == pytest.approx([step / 20 for step in range(1, 21)])
    assert left[-1] == 0
    assert all(one > 0 for one in left[:-1])
    assert all(speed > 0 for speed in speeds)
    first, second = (figures["train"] for step, figures, _ in seen.evaluations if step)
    assert first == pytest.approx(sum(losses[:10]) / 10)
    assert second == pytest.approx(sum(losses[10:]) / 10)
    lines = [line for line in run.directory.read_metrics() if line["step"]]
    assert [line["train_loss"] for line in lines] == [first, second]


def test_what_the_end_will_take_is_kept_of_the_time(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One and a half times what all held-out data takes at the speed of the last evaluation, that again, and a bit."""
    loops: list[Loop] = []
    original = Loop.train
    monkeypatch.setattr(Loop, "train", lambda self: (loops.append(self), original(self))[1])
    watch(None, {"steps": 3, "split": "60/20/20"})
    (loop,) = loops
    held_out = loop.task.size("valid") + loop.task.size("test")
    assert loop._reserve(2.0, 100) == pytest.approx(1.5 * 2.0 * held_out / 100 + 2.0 + 0.5)
    epoch = loop.task.size("train") / loop.sampler.steps_per_epoch  # tokens of a step, each three times as much work
    loop.reserve, loop.started = 7.0, time.monotonic()
    assert loop._needs(2.0, 100) == pytest.approx(10 * epoch * 3 * 2.0 / 100 + 2.0 + 7.0, abs=0.2)
    monkeypatch.setattr(loop.task, "more_seconds", lambda model: 4.0)
    assert loop._reserve(0.0, 0) == pytest.approx(1.5 * 4.0 + 0.5)


def test_baselines_that_are_given_are_not_measured_again(text: str, tmp_path: Path) -> None:
    given = {"guess": {"valid": {"nats": 9.0}}}
    settings = SMALL | {"steps": 2, "examples": "stream"}
    run = unrolled.train([text], out=tmp_path / "run", settings=settings, baselines=given)
    assert run.result["baselines"] == given


@pytest.mark.parametrize(("freeze", "training"), [("body", {False}), ("embedding", {True})])
def test_what_is_fixed_has_no_dropout(
    fit: Fit, monkeypatch: pytest.MonkeyPatch, freeze: str, training: set[bool]
) -> None:
    modes: set[bool] = set()
    original = Stacked.forward

    def spy(self: Stacked, x: torch.Tensor, state: Any = None) -> Any:
        if torch.is_grad_enabled():
            modes.add(self.training)
        return original(self, x, state)

    monkeypatch.setattr(Stacked, "forward", spy)
    fit("run", {"steps": 12, "n_layers": 2, "model.dropout": 0.5, "freeze": freeze})
    assert modes == training
