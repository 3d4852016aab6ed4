"""Options in help, errors and docs are those that there are, and each is accepted where it is listed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands import run_unrolled
from unrolled.cli import options, settings
from unrolled.core import discover
from unrolled.core.errors import UsageError

SETTINGS = {
    f"{room.kind} {name}": config
    for room in (discover.tasks, discover.models)
    for name in room.names()
    for config in [room.load(name).Config if room is discover.tasks else discover.model(name).config]
}


class Param(NamedTuple):
    """As much of an option of a command as is asked of it."""

    opts: list[str]
    is_flag: bool = False
    secondary_opts: tuple[str, ...] = ()


PARAMS = [Param(["data"]), Param(["--set"]), Param(["--task"]), Param(["-o", "--out"]), Param(["--json"], True),
          Param(["--model"]), Param(["--dropout"])]  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_of_a_task_or_a_model_is_an_option(name: str) -> None:
    for path, field in options._leaves("", SETTINGS[name]):
        key = path.rsplit(".", 1)[-1]
        is_switch = settings._is_switch(settings.declared(key))
        assert settings.declared(key), path
        assert is_switch == (options._metavar(options.allowed(field)) == "true|false"), path


@pytest.mark.parametrize(("typed", "becomes"), [
    ("a.csv --readout mean", "a.csv --set readout=mean"),
    ("--readout mean a.csv", "--set readout=mean a.csv"),
    ("data --readout mean", "data --set readout=mean"),  # a file that is called as the argument is
    ("--readout=mean a.csv --json", "--set readout=mean a.csv --json"),
    ("--lstm.d-state 64 --linear-rnn.n-layers 2", "--set lstm.d_state=64 --set linear-rnn.n_layers=2"),
    ("--model.dropout 0.1 --dropout 0.2", "--set model.dropout=0.1 --dropout 0.2"),
    ("--task.reading.target a", "--set task.reading.target=a"),
    ("--skip-bad pairs.tsv", "--set skip_bad=true pairs.tsv"),
    ("--skip-bad false pairs.tsv", "--set skip_bad=false pairs.tsv"),
    ("--no-grey folder", "--set grey=false folder"),
    ("--snr -5 -o --odd", "--set snr=-5 -o --odd"),
    ("--betas [0.9,0.99]", "--set betas=[0.9,0.99]"),
    ("--set a=1 --json x", "--set a=1 --json x"),
    ("-- --readout mean", "-- --readout mean"),
    ("--threads 2", "--set threads=2"),
    ("--unheard-of", "--set unheard_of=true"),
    ("--unheard-of 3", "--set unheard_of=3"),  # which no task and no model has: they are asked
])  # fmt: skip
def test_options_that_are_settings(typed: str, becomes: str) -> None:
    assert settings.as_settings(typed.split(), PARAMS) == becomes.split()


@pytest.mark.parametrize(("typed", "says"), [
    ("--modell lstm", "there is no option '--modell'; did you mean '--model'?"),
    ("--readout", "the option '--readout' needs a value"),
    ("--readout --json", "the option '--readout' needs a value"),
])  # fmt: skip
def test_options_that_cannot_be(typed: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        settings.as_settings(typed.split(), PARAMS)


def test_what_a_comparison_decides_is_no_setting_of_its_runs() -> None:
    with pytest.raises(UsageError, match="no option '--model'; did you mean '--models'"):
        settings.as_settings(["--model", "lstm"], [Param(["--set"]), Param(["--models"])])


def test_a_command_without_settings_keeps_its_words() -> None:
    assert settings.as_settings(["--readout", "mean"], PARAMS[2:]) == ["--readout", "mean"]


def test_settings_of_a_users_own_file_are_options(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Config(config.Config):\n    sparkle: bool = False\n    depth_of: int = 3\n"
    )
    typed = ["--with", str(tmp_path / "mine.py"), "--sparkle", "a.txt", "--depth-of", "4"]
    params = [*PARAMS, Param(["--with"])]
    assert settings.as_settings(typed, params)[2:] == ["--set", "sparkle=true", "a.txt", "--set", "depth_of=4"]


@pytest.mark.parametrize("words", [
    ["train", "--task", "classify", "--model", "lstm"], ["compare", "--task=classify", "--models", "lstm,gru"],
])  # fmt: skip
def test_help_lists_the_settings_of_what_is_named(words: list[str]) -> None:
    told = run_unrolled(*words, "--help").stdout
    for flag in ("--readout", "--target", "--permutation", "--lr", "--tokens", "--class-weights"):
        assert re.search(rf"{flag}\b", told), flag
    own = ["--d-state", "--model.dropout"] if words[0] == "train" else ["--lstm.d-state", "--gru.d-state"]
    assert all(flag in told for flag in own)
    light = run_unrolled(words[0], "--help").stdout
    assert "--readout mean" in light
    assert "--class-weights" not in light
    assert "--lr" in light


def test_help_shows_what_options_take_as_it_is_typed() -> None:
    told = re.sub(r"[│\s]+", " ", run_unrolled("compare", "--help").stdout)
    assert "without <start> and <stop>" in told  # not taken for markup
    assert re.search(r"--budget <time> .*\[default: 10m\]", told)
    assert re.search(r"--steps <int> .*--size small\|medium\|large ", told)
    assert "<bool>" not in told  # a switch takes no value
    assert "[[" not in run_unrolled("inspect", "--help").stdout


def test_settings_within_settings_are_listed_by_their_dotted_names() -> None:
    told = run_unrolled("tasks", "classify").stdout
    assert re.search(r"^  reading\.target = none    text or a list, or none\. ", told, re.MULTILINE)
    assert "reading.fold.of" in json.loads(run_unrolled("tasks", "classify", "--json").stdout)["settings"]


def test_check_of_a_file_that_is_not_there() -> None:
    assert "nothing.py: no such Python file\n" in run_unrolled("check", "nothing.py", code=2).stderr


def test_help_lists_the_settings_of_a_users_own_model(tmp_path: Path) -> None:
    source = (Path(discover.__file__).parents[1] / "models" / "elman.py").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text(
        source.replace("class Config(RecurrentConfig):", "class Config(RecurrentConfig):\n    sparkle: bool = False\n")
    )
    told = run_unrolled("train", "--with", "mine.py", "--model", "mine", "--help", cwd=tmp_path).stdout
    assert "--sparkle" in told
    assert "--no-sparkle" in told


def test_a_guessed_task_takes_its_options(tmp_path: Path) -> None:
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(f"good {i} day,{'ab'[i % 2]}\n" for i in range(60)))
    words = ["--readout", "max", "--d-state", 5, "--class-weights", 0.5, "--d-embedding", 4, "--steps", 1]
    made = run_unrolled("train", "reviews.csv", *words, "-o", "run", "--json", "--threads", 1, cwd=tmp_path)
    assert "task classify (guessed because its targets are classes; override with --task NAME)" in made.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["task"], config["model"], config["model_settings"]["d_state"]) == ("classify", "lstm", 5)
    assert (config["task_settings"]["readout"], config["task_settings"]["class_weights"]) == ("max", 0.5)
    told = run_unrolled("train", "reviews.csv", "--readuot", "max", "-o", "other", cwd=tmp_path, code=2).stderr
    assert "there is no setting 'readuot'; did you mean 'readout'?" in told
    told = run_unrolled("compare", "reviews.csv", "--models", "gru", "--gru.d-stat", 3, cwd=tmp_path, code=2).stderr
    assert "'d_stat'; did you mean 'd_state'?" in told


@pytest.mark.parametrize(("words", "says"), [
    (["--skip-bad"], "there is no setting 'skip_bad'; the tasks caption, recognise and translate have it"),
    (["--noise", "white"], "the task denoise has it"),
    (["--set", "kernel=3"], "there is no setting 'kernel'; the models tcn and wavenet have it"),
    (["--kernel", "3"], "there is no setting 'kernel'; the models tcn and wavenet have it"),
    (["--hidden-size", "8"], "did you mean 'd_state'?"),
    (["--set", "learning_rate=1"], "did you mean 'lr'?"),
    (["--set", "hidden_size=8"], "did you mean 'd_state'?"),
    (["--set", "zzzzzz=8"], "`unrolled models NAME`"),
])  # fmt: skip
def test_a_setting_that_is_not_there_is_refused_in_a_short_sentence(
    words: list[str], says: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "text.txt").write_text("a b c d\n" * 200)
    named = ["--task", "next-token", "--model", "gru"]
    told = run_unrolled("train", folder / "text.txt", *named, *words, cwd=folder, code=2).stderr
    assert says in told
    assert len(told) < 300
    assert [entry.name for entry in folder.iterdir()] == ["text.txt"]


def test_a_word_is_a_setting_where_settings_declare_it(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from unrolled.core.config import Config as Base\n\n\nclass Config(Base):\n    verily: bool = False\n"
    )
    assert (settings.declared("verily"), settings.declared("verily", [own])) == ([], ["bool"])
    assert settings.declared("size")  # of CaptionReading, which is settings by way of PairReading
    assert settings.declared("body") == []  # of layers
    assert settings.declared("own_file") == []  # of the run as a whole
    assert settings.declared("max_tokens") == settings.declared("models") == []  # asked of a verb, of a comparison
