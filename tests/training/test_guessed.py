"""`train` without a task or a model: both are found, and told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

import unrolled
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import misfit
from unrolled.runs.build import spec_of
from unrolled.runs.guess import chosen, default_model, guess_task, task_alone
from unrolled.training.api import configure
from unrolled.training.progress import Quiet

QUICK = {"steps": 1, "threads": 1, "d_embedding": 4, "batch_size": 4}
ROWS = [{"text": f"some words {i}", "label": "ab"[i % 2]} for i in range(40)]


class Heard(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize("task", discover.tasks.names())
def test_every_task_has_a_default_model_that_fits(task: str) -> None:
    model = default_model(task, {})
    assert misfit(discover.model(model), task_alone(task, {}).asks()) is None


def test_the_default_follows_what_the_settings_ask() -> None:
    assert default_model("recognise", {}) == "seq2seq"
    assert default_model("recognise", {"objective": "ctc"}) == "lstm"
    assert default_model("translate", {"reversed_source": True, "lr": 0.1}) == "seq2seq"  # a setting of the model
    assert default_model("caption", {}) == "encdec"  # which the task advises
    assert default_model("next-token", {}) == "lstm"
    with pytest.raises(UsageError, match="no setting 'd_stat'; did you mean 'd_state'"):
        default_model("next-token", {"d_stat": 1})


def test_pairs_find_their_task_and_a_model(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"satz nummer {i}\tsentence number {i}\n" for i in range(60)))
    heard = Heard()
    run = unrolled.train(tmp_path / "pairs.tsv", out=tmp_path / "run", progress=heard, d_state=4, **QUICK)
    assert (run.config.task, run.config.model) == ("translate", "seq2seq")
    assert heard.lines[0] == (
        'task translate (guessed because its examples are pairs of texts; override with task="NAME"), '
        'model seq2seq (the default; override with model="NAME")'
    )


def test_what_is_named_is_not_guessed(tmp_path: Path) -> None:
    heard = Heard()
    config = configure("next-token", "gru", ROWS, {}, shown=heard)
    assert (config.task, config.model, heard.lines) == ("next-token", "gru", [])
    config = configure(None, "gru", ROWS, {}, shown=heard)
    assert (config.task, config.model) == ("classify", "gru")
    assert heard.lines == ['task classify (guessed because its targets are classes; override with task="NAME")']
    (tmp_path / "recipe.toml").write_text('task = "next-token"\nmodel = "gru"\n')
    config = configure(None, None, ROWS, {}, tmp_path / "recipe.toml", shown=heard)
    assert (config.task, config.model, len(heard.lines)) == ("next-token", "gru", 1)


def test_what_is_named_by_hand_wins_over_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('task = "next-token"\nmodel = "gru"\n[task_settings]\nreadout = "mean"\n')
    config = configure("classify", "elman", ROWS, {}, tmp_path / "recipe.toml")
    assert (config.task, config.model) == ("classify", "elman")


def test_a_recipe_of_settings_helps_to_guess(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('[task_settings]\nreadout = "mean"\n')
    config = configure(None, None, [{"text": "a b", "kind": "ab"[i % 2]} for i in range(9)], {"target": "kind"},
                       tmp_path / "recipe.toml")  # fmt: skip
    assert (config.task, config.task_settings["readout"]) == ("classify", "mean")


def test_a_saved_run_tells_both(tmp_path: Path) -> None:
    first = unrolled.train(ROWS, "next-token", "elman", out=tmp_path / "a", d_state=4, **QUICK)
    heard = Heard()
    run = unrolled.train(ROWS, out=tmp_path / "b", from_run=first.path, progress=heard, **QUICK)
    assert (run.config.task, run.config.model) == ("next-token", "elman")
    assert not any("guessed" in line for line in heard.lines)


def test_a_model_that_does_not_fit_is_told_before_the_data_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"satz nummer {i}\tsentence number {i}\n" for i in range(60)))
    monkeypatch.setattr(discover.tasks.load("translate").Task, "prepare", lambda task, source: pytest.fail("read"))
    with pytest.raises(UsageError, match="the model 'gru' does not fit the task 'translate'"):
        unrolled.train(tmp_path / "pairs.tsv", model="gru", out=tmp_path / "run")
    assert spec_of(configure(None, None, tmp_path / "pairs.tsv", {})).kind == "conditional"


def test_a_setting_of_the_model_says_nothing_of_the_data() -> None:
    """`window` is a setting of transformers, where 0 is all, and of series, which are cut into windows of 2 or more."""
    assert guess_task(["a b", "c d"], {"window": 0}).task == "next-token"
    assert guess_task(["a b", "c d"], {"window": 4, "model.window": 4}, "transformer").task == "next-token"
    assert chosen(None, "transformer", ["a b", "c d"], {"window": 0})[:2] == ("next-token", "transformer")
