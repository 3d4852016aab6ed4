"""What the README, the pages of docs/ and the CHANGELOG name is there: options, presets, models of presets."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import typer.main

from unrolled.cli.main import commands
from unrolled.cli.options import _leaves, _of_task
from unrolled.core import discover

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAG = re.compile(r"(?<![\w-])--(?:[a-z-]+\.)*[a-z][a-z-]*[a-z]")
OF_OTHER_TOOLS = {  # of python -m tests.mutants, of the example of a verb, of batch systems
    "mutants.md": {"--count", "--quick"},
    "own_verb.md": {"--nats"},
    "CHANGELOG.md": {"--nproc-per-node"},  # of torchrun
    "scale.md": {"--array", "--wrap", "--cpus-per-task", "--nproc-per-node", "--max-restarts"},  # of Slurm, of torchrun
}
EVERYWHERE = {"--help", "--version"}


def settings() -> set[str]:
    """Every setting of a task, a model or a question as an option: alone, and behind the name of its group."""
    configs = {name: discover.model(name).config for name in discover.models.names()}
    leaves = {name: [path.rsplit(".", 1)[-1] for path, _ in _leaves("", each)] for name, each in configs.items()}
    leaves["task"] = [p.rsplit(".", 1)[-1] for t in discover.tasks.names() for p, _ in _leaves("", _of_task(t))]
    leaves["inspect"] = [name for q in discover.questions.names() for name in discover.question(q).config.model_fields]
    leaves |= {half: [name for each in configs for name in leaves[each]] for half in ("model", "encoder", "decoder")}
    leaves |= {name: [*own, "steps"] for name, own in leaves.items()}  # of one model of a comparison
    alone = {name for own in leaves.values() for name in own}
    named = [*alone, *(f"{group}.{name}" for group, own in leaves.items() for name in own)]
    return {f"--{name.replace('_', '-')}" for name in named} | {f"--no-{name.replace('_', '-')}" for name in alone}


SETTINGS = settings()


def flags_of(command: str) -> set[str]:
    made = typer.Typer(add_completion=False)
    made.command(command)(importlib.import_module(f"unrolled.cli.{command}").command)
    found = {flag for each in typer.main.get_command(made).params for flag in (*each.opts, *each.secondary_opts)}
    return found | (SETTINGS if "--set" in found else set())


FLAGS = {command: flags_of(command) | EVERYWHERE for command in commands()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_exists(page: Path) -> None:
    known = set().union(*FLAGS.values()) | OF_OTHER_TOOLS.get(page.name, set())
    assert sorted(set(FLAG.findall(page.read_text(encoding="utf-8"))) - known) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_takes_the_flags_behind_it(page: Path) -> None:
    for command, rest in re.findall(r"unrolled ([a-z]+)((?: [^`\n|]*)?)", page.read_text(encoding="utf-8")):
        if command in FLAGS:
            assert set(FLAG.findall(rest)) <= FLAGS[command], f"unrolled {command}{rest}"


def test_presets_are_listed_as_they_are() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    told = {
        name: set(re.findall(r"[a-z][\w-]+", row)) for name, row in re.findall(r"\| `--preset (\w+)` \|(.*)\|", text)
    }
    kinds = {name: discover.models.told(name) for name in discover.models.names()}
    for preset in ("quick", "standard"):
        models = {name for name, told_of in kinds.items() if told_of.get("preset") == preset}
        assert models <= told[preset], f"{preset}: {sorted(models - told[preset])}"
        assert not told[preset] & (set(kinds) - models), preset


def test_baselines_of_text_are_listed_as_they_are() -> None:
    from unrolled.data.config import DataConfig
    from unrolled.tasks import next_token

    orders = [each.settings["order"] for each in next_token.Task(next_token.Config(), DataConfig()).baselines()]
    words = [{1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}[order] for order in orders]
    told = f"{', '.join(words[:-1])} and {words[-1]} tokens"
    assert told in (ROOT / "docs" / "text.md").read_text(encoding="utf-8")
