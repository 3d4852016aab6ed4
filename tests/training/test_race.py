"""A race of rates: the winner is a run with that rate alone, bit for bit, also where the race was interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from unrolled.core.errors import Interrupted, UsageError
from unrolled.training import race
from unrolled.training.progress import Quiet

TEXT = ["the cat sat on the mat", "a dog ate my homework", "no cat has nine lives", "the dog sat on a log"] * 12
SMALL: dict[str, Any] = {"batch_size": 4, "d_state": 8, "steps": 40, "evaluate_every": 5, "threads": 1, "warmup": 5}
RATES = [0.001, 0.05, 0.01]


def trained(path: Path, **more: Any) -> unrolled.Run:
    return unrolled.train(TEXT, "next-token", "gru", out=path, settings={"ends.d_embedding": 8}, **SMALL | more)


def curve(run: unrolled.Run) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def is_same(one: unrolled.Run, other: unrolled.Run) -> bool:
    ours, theirs = one.model.state_dict(), other.model.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours) and curve(one) == curve(other)


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> unrolled.Run:
    return trained(tmp_path_factory.mktemp("race") / "run", rates=RATES)


def test_the_winner_is_a_run_with_its_rate(raced: unrolled.Run, tmp_path: Path) -> None:
    chosen = raced.config.optimiser.lr
    assert chosen in RATES
    assert chosen != 0.001  # which learns nothing in 20 steps
    assert raced.config.choice.rates == []
    assert not (raced.path / "race").exists()
    assert f"learning rate {chosen:g}, chosen by nats on validation data" in raced.result["recipe"][-1]
    assert is_same(raced, trained(tmp_path / "alone", lr=chosen))


def test_the_recipe_of_a_run_reproduces_it(raced: unrolled.Run, tmp_path: Path) -> None:
    again = unrolled.train(TEXT, recipe=raced.path / "recipe.toml", out=tmp_path / "again")
    assert is_same(raced, again)
    assert "recipe" not in again.result


@pytest.mark.parametrize("moment", [1, 3, 4])
def test_an_interrupted_race_is_resumed(
    raced: unrolled.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    calls, train = [], race.Loop.train

    def stop(loop: Any) -> None:
        calls.append(loop)
        if len(calls) > moment:
            raise KeyboardInterrupt
        train(loop)

    with monkeypatch.context() as patched:
        patched.setattr(race.Loop, "train", stop)
        with pytest.raises(Interrupted):
            trained(tmp_path / "run", rates=RATES)
    shown = Quiet()
    assert is_same(raced, unrolled.train(TEXT, resume=tmp_path / "run", progress=shown))
    assert not (tmp_path / "run" / "race").exists()


def test_a_stop_between_the_decision_and_the_move(
    raced: unrolled.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(race, "adopt", stop)
        with pytest.raises(Interrupted):
            trained(tmp_path / "run", rates=RATES)
    assert is_same(raced, unrolled.train(TEXT, resume=tmp_path / "run"))


def test_a_run_that_is_too_short_for_a_race(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="learning rates are compared after 40 steps"):
        trained(tmp_path / "run", rates=RATES, evaluate_every=10)
