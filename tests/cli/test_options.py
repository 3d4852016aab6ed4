"""Options in help, errors and docs are those that there are, and each is accepted where it is listed."""

from __future__ import annotations

import importlib

import pytest

from tests.commands import run_unrolled
from unrolled.cli import options
from unrolled.cli.train import GROUPS
from unrolled.core import discover
from unrolled.runs.config import full_keys


def test_groups_name_the_tasks_that_have_them() -> None:
    for prefix, said in options.ONLY_FOR.items():
        group = prefix.removeprefix("task.")
        have = [name for name in discover.tasks.names() if group in discover.tasks.load(name).Config.model_fields]
        assert said == " and ".join(", ".join(have).rsplit(", ", 1)), prefix


@pytest.mark.parametrize("command", ["train", "compare"])
def test_every_listed_setting_is_accepted_by_the_tasks_it_is_listed_for(command: str) -> None:
    model = discover.models.load("lstm").Config
    groups = importlib.import_module(f"unrolled.cli.{command}").GROUPS
    for prefix, config in groups.items():
        if not prefix:  # the comparison's own
            continue
        said = options.ONLY_FOR.get(prefix)
        tasks = discover.tasks.names() if said is None else said.replace(" and ", ", ").split(", ")
        for task in tasks:
            of_task = discover.tasks.load(task).Config
            for name in config.model_fields:
                if f"{prefix}.{name}".split(".")[0] == "task" and options.is_config(
                    config.model_fields[name].annotation
                ):
                    continue
                assert full_keys({f"{prefix}.{name}": None}, model, of_task), (prefix, name, task)


def test_no_group_of_settings_is_left_out() -> None:
    """Whatever a task reads its data by has flags, or is reached by --set."""
    flags = {name for config in GROUPS.values() for name in config.model_fields}
    assert {"skip_bad", "target", "noise", "column", "lr"} <= flags


@pytest.mark.parametrize(("words", "says"), [
    (["--skip-bad"], "this task has no setting 'skip_bad'; the tasks caption, recognise and translate have it"),
    (["--noise", "white"], "the task denoise has it"),
    (["--set", "kernel=3"], "there is no setting 'kernel'; the models tcn and wavenet have it"),
    (["--set", "learning_rate=1"], "did you mean 'lr'?"),
    (["--set", "hidden_size=8"], "did you mean 'd_state'?"),
    (["--set", "zzzzzz=8"], "`unrolled models NAME`"),
])  # fmt: skip
def test_a_setting_that_is_not_there_is_refused_in_a_short_sentence(
    words: list[str], says: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "text.txt").write_text("a b c d\n" * 200)
    told = run_unrolled("train", folder / "text.txt", "--model", "gru", *words, cwd=folder, code=2).stderr
    assert says in told
    assert len(told) < 300
    assert [entry.name for entry in folder.iterdir()] == ["text.txt"]
