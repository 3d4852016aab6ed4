"""What is chosen where nobody says it: by the data, the pace and the time, and never against what was given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import unrolled
from unrolled.core.outline import TokenLook
from unrolled.core.task import Task
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig
from unrolled.training import estimate, recipe, token_choice
from unrolled.training.api import configure, given_keys
from unrolled.training.estimate import Pace

RANDOM = np.random.default_rng(0)
MUSIC = [RANDOM.integers(0, 2, (n, 6)).astype(np.uint8) for n in (700, 900, 40, 500, 800, 650, 300, 720, 610, 580)]
LONG = (["".join("ACGT"[k] for k in RANDOM.integers(0, 4, n)) for n in (5000, 30, 900, 2500) * 5], ["a", "b"] * 10)
SENTENCES = [f"{w} film number {n} was {w}" for n in range(60) for w in ("good", "bad")], ["pos", "neg"] * 60
NAMES = (
    [f"{a}{b}{e}" for a in "bdfgkl" for b in ("ana", "omi", "uru") for e in ("ov", "ez", "son")],
    ["r", "s", "e"] * 18,
)


def prepared(task: str, model: str, data: Any, **settings: Any) -> tuple[RunConfig, Task, frozenset[str]]:
    given = {"time": 60, "threads": 1, **settings}
    config = configure(task, model, data, given)
    found = make_task(config)
    found.prepare(data)
    return config, found, given_keys(config, given, {})


def steady(monkeypatch: pytest.MonkeyPatch, each: float, fixed: float = 0.0) -> None:
    """A step takes so many seconds for each row, and some more."""

    def pace(config: RunConfig, *_: Any) -> Pace:
        width = config.model_settings.get("d_state", 256)
        return Pace((fixed + each * config.batching.batch_size) * width / 256, 0.5, 1.0)

    monkeypatch.setattr(estimate, "pace_of", pace)


def test_long_pieces_are_trained_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, 0.001)
    config, task, given = prepared("next-frame", "gru", MUSIC)
    found = recipe.chosen(config, task, given, 60.0)
    assert found.config.batching.chunk == 64
    assert "chunks of 64" in found.words[0]
    config, task, given = prepared("next-frame", "gru", [roll[:60] for roll in MUSIC])
    assert recipe.chosen(config, task, given, 60.0).config.batching.chunk is None


def test_long_strings_are_joined_and_cropped(monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, 0.001)
    config, task, given = prepared("classify", "gru", LONG)
    found = recipe.chosen(config, task, given, 60.0).config
    assert (found.ends.input_stride, found.batching.chunk) == (16, 2048)
    config, task, given = prepared("classify", "gru", LONG, input_stride=2, chunk=100)
    found = recipe.chosen(config, task, given, 60.0).config
    assert (found.ends.input_stride, found.batching.chunk) == (2, 100)


def test_too_few_steps_shrink_the_batch_and_then_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, 0.05)
    config, task, given = prepared("classify", "gru", SENTENCES)
    found = recipe.chosen(config, task, given, 60.0)
    assert found.config.batching.batch_size == 4
    assert found.config.model_settings["d_state"] == 256  # with four rows there are about 200
    steady(monkeypatch, 0.001, fixed=1.0)  # smaller batches do not help
    found = recipe.chosen(config, task, given, 60.0)
    assert found.config.model_settings["d_state"] < 128
    assert "parameters instead of" in found.words[0]
    config, task, given = prepared("classify", "gru", SENTENCES, d_state=200, batch_size=16)
    found = recipe.chosen(config, task, given, 60.0)
    assert (found.config.model_settings["d_state"], found.config.batching.batch_size) == (200, 16)


def test_evaluations_have_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (0.0002, 0.005):
        steady(monkeypatch, each)
        config, task, given = prepared("classify", "gru", SENTENCES)
        found = recipe.chosen(config, task, given, 60.0)
        assert found.pace is not None
        expected = 60.0 / (recipe.SLOWER * found.pace.step)
        looks = expected / found.config.watching.evaluate_every
        assert looks * found.pace.look < 0.15 * 60


def test_long_runs_race_rates_and_short_ones_take_a_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, 0.0005)
    config, task, given = prepared("classify", "gru", SENTENCES)
    assert recipe.chosen(config, task, given, 60.0).config.choice.rates == [0.004, 0.01, 0.0016]
    steady(monkeypatch, 0.05)
    found = recipe.chosen(config, task, given, 60.0).config
    assert (found.choice.rates, found.optimiser.lr) == ([], 0.008)
    config, task, given = prepared("classify", "gru", SENTENCES, lr=0.003)
    for each in (0.0005, 0.05):
        steady(monkeypatch, each)
        found = recipe.chosen(config, task, given, 60.0).config
        assert (found.choice.rates, found.optimiser.lr) == ([], 0.003)


@pytest.mark.parametrize("settings", [{"plain": True}, {"time": None, "steps": 5}, {"time": None, "epochs": 2}])
def test_nothing_is_chosen_for_plain_runs_and_numbers_of_steps(settings: dict[str, Any]) -> None:
    config, task, given = prepared("next-frame", "gru", MUSIC, **settings)
    assert recipe.chosen(config, task, given, 60.0) == recipe.Chosen(config)
    assert token_choice.for_run(config, task, MUSIC, given) == (config, task, [])


@pytest.mark.parametrize(("data", "tokens"), [(SENTENCES, "word"), (NAMES, "char")])
def test_tokens_are_chosen_by_validation_data(data: Any, tokens: str) -> None:
    config, task, given = prepared("classify", "gru", data, split="60/20/20")
    changed, found, words = token_choice.for_run(config, task, data, given)
    assert changed.data.tokens == tokens
    assert found.ports().n_tokens == task.ports().n_tokens if tokens == "char" else True
    assert f"tokens: {tokens}" in words[0]
    config, task, given = prepared("classify", "gru", data, tokens="byte", split="60/20/20")
    assert token_choice.for_run(config, task, data, given)[0].data.tokens == "byte"


@pytest.mark.parametrize(
    ("length", "word", "tokens"),
    [
        (9.0, 0.27, "word"),
        (9.0, 0.29, "char"),
        (2, 0.27, "char"),
        (2, 0.23, "word"),
        (1, 0.2, "char"),
        (1, 0.19, "word"),
    ],
)
def test_words_of_sentences_may_be_worse_in_a_quick_look(length: float, word: float, tokens: str) -> None:
    looks = {"word": TokenLook(word, 0.05, 50, length), "char": TokenLook(0.2, 0.04, 50, 40.0)}
    reading = lambda way: SimpleNamespace(token_look=lambda: looks[way["data.tokens"]])  # noqa: E731
    way, _ = token_choice.chosen(reading({"data.tokens": "char"}), (), 60.0, reading)  # type: ignore[arg-type]
    assert way["data.tokens"] == tokens


def test_a_run_with_a_time_budget_tells_and_keeps_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steady(monkeypatch, 16.0)  # by the width
    given = {"time": 100, "patience": 1, "d_state": 8, "ends.d_embedding": 8, "threads": 1, "lr": 0.01}
    run = unrolled.train(LONG, "classify", "gru", out=tmp_path / "run", settings=given, baselines={})
    assert run.config.ends.input_stride == 16
    assert run.config.model_settings["d_state"] == 8
    assert any("stride 16" in line for line in run.result["recipe"])
    assert "stride 16" in (run.path / "README.md").read_text()
    again = unrolled.train(LONG, recipe=run.path / "recipe.toml", out=tmp_path / "again", baselines={})
    assert again.result["steps"] == run.result["steps"] > 0
    ours, theirs = run.model.state_dict(), again.model.state_dict()
    assert all((ours[name] == theirs[name]).all() for name in ours)
