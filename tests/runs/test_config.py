"""The config of a run: short keys, layers of advice, budgets, and what is answered to a mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from unrolled.core import discover
from unrolled.core.config import Config, parse_assignments, read_toml
from unrolled.core.errors import UsageError
from unrolled.runs.config import RunConfig, assemble, full_keys
from unrolled.runs.keys import leaf_paths


class Model(Config):
    width: int = Field(8, ge=1)
    dropout: float = 0.0


class TaskConfig(Config):
    label_smoothing: float = Field(0.0, ge=0, lt=1)


def keys(*words: str) -> dict[str, Any]:
    return full_keys(parse_assignments(words), Model, TaskConfig)


def made(values: dict[str, Any], recipe: Any = (), advice: Any = ()) -> RunConfig:
    return assemble(values, dict(recipe), dict(advice), Model, TaskConfig)


def test_short_keys_find_their_place() -> None:
    assert keys("lr=1e-3", "steps=5", "tokens=bpe", "width=3", "label_smoothing=0.1") == {
        "optimiser.lr": 1e-3,
        "budget.steps": 5,
        "data.tokens": "bpe",
        "model_settings.width": 3,
        "task_settings.label_smoothing": 0.1,
    }
    assert keys("model.width=3", "data.seed=1", "seed=2") == {"model_settings.width": 3, "data.seed": 1, "seed": 2}


def test_a_key_that_means_two_things_must_say_which() -> None:
    with pytest.raises(UsageError, match=r"ends\.dropout or model\.dropout"):
        keys("dropout=0.1")
    assert keys("model.dropout=0.1", "ends.dropout=0.2") == {"model_settings.dropout": 0.1, "ends.dropout": 0.2}


@pytest.mark.parametrize(
    ("word", "says"), [("widht=3", "width"), ("optimizer.lr=1", "lr"), ("lable_smoothing=0", "label")]
)
def test_a_wrong_key_is_answered_with_the_nearest(word: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        keys(word)


def test_by_hand_beats_recipe_beats_advice_beats_default() -> None:
    config = made({"lr": 3.0}, {"optimiser": {"lr": 2.0, "clip": 2.0}}, {"lr": 1.0, "clip": 1.5, "width": 5})
    assert (config.optimiser.lr, config.optimiser.clip, config.optimiser.warmup) == (3.0, 2.0, 50)
    assert config.model_settings == {"width": 5, "dropout": 0.0}


def test_settings_of_the_model_are_checked_by_its_own_config() -> None:
    with pytest.raises(UsageError, match=r"model\.width = 0: .*>= 1"):
        made({"width": 0})


@pytest.mark.parametrize("betas", [[0.9, 1], [-0.1, 0.9], [0.9, True], [float("nan"), 0.9]])
def test_decays_are_below_one(betas: list[float]) -> None:
    with pytest.raises(UsageError, match=r"betas: invalid value .* each >= 0 and < 1|betas.* = nan"):
        made({"betas": betas})


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1.5h", 5400), ("20", 20), (7, 7)])
def test_times(text: Any, seconds: float) -> None:
    assert made({"time": text}).budget.time == seconds


@pytest.mark.parametrize("values", [{"time": "soon"}, {"time": "-5m"}, {"steps": 0}, {"steps": 3, "time": "1m"}])
def test_budgets_that_make_no_sense(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"time|steps"):
        made(values)


def test_a_run_config_survives_json_and_toml(tmp_path: Path) -> None:
    config = made({"steps": 7, "width": 3, "condition": "kind", "betas": [0.8, 0.9]})
    assert RunConfig.from_json(config.to_json()) == config
    (tmp_path / "recipe.toml").write_text(config.to_toml())
    assert RunConfig.parse(read_toml(tmp_path / "recipe.toml")) == config


def test_every_setting_can_be_reached_by_its_full_key() -> None:
    for path in leaf_paths(RunConfig):
        assert full_keys({path: None}, Model, TaskConfig) == {path: None}


def test_a_setting_of_another_task_is_refused_by_its_name() -> None:
    from unrolled.models.gru import Config as Gru
    from unrolled.tasks.translate import Config as Translate

    with pytest.raises(
        UsageError, match=r"^this task has no setting 'time' \(use .*time.* to limit the training time\)"
    ):
        full_keys({"task.reading.time": "5m"}, Gru, Translate)


def test_a_short_name_means_one_thing_in_every_task() -> None:
    """A setting of a task that lies deeper than one of the run would be shadowed without a word; these are meant so."""
    known = {"column", "part", "time"}  # where to read: `data.column` and `task.reading.column`; a time budget
    of_run = {path.rsplit(".", 1)[-1]: path for path in leaf_paths(RunConfig)}
    for task in discover.tasks.names():
        for path in leaf_paths(discover.tasks.load(task).Config, "task_settings."):
            last = path.rsplit(".", 1)[-1]
            deeper = last in of_run and path.count(".") > of_run[last].count(".")
            assert not deeper or last in known, f"{task}: --{last} means {of_run[last]}, not {path}"


def test_runs_of_before_the_rename_have_their_stride() -> None:
    assert RunConfig.parse({"task": "classify", "model": "gru", "ends": {"stride": 4}}).ends.input_stride == 4
