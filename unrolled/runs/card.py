"""The model card of a run: what it is, what it learned from, how good it is, how to use and repeat it."""

from __future__ import annotations

import re
import shlex
from typing import Any

from unrolled.core.errors import listed
from unrolled.core.metric import metrics_in
from unrolled.core.task import Task
from unrolled.pictures.letters import clean
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.uses import commands, data_words, own_words

MARKDOWN = str.maketrans({
    **{sign: f"\\{sign}" for sign in "\\`*[]|~"}, "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\t": " ",
})  # fmt: skip

CARD = """# {title}

A `{model}` model with {parameters:,} parameters{some}, trained on the task `{task}` with unrolled {version}.

## Metrics

{table}

{verdict}Baselines were fitted on the same training data and evaluated on the same {unit}. Weights were selected on
validation data ({chosen}); test data was used once, at the end.

## Data

{facts}{notes}

## Use it

From the parent folder of this one:

{uses}

## Reproduce it

{repeat}; seed {seed}, {threads} threads, torch {torch}.
"""
ALONE = """    unrolled train {data} --recipe {path}/recipe.toml{more}

`recipe.toml` beside this file holds every setting"""
TOGETHER = """    unrolled compare {data} --task {task} --models {model} --folds {members}{more}

An ensemble of {members} models, each trained without one of {members} folds"""
MIXED = """    unrolled compare {data} --task {task}{more}

An ensemble of models of that comparison and their weights, which validation data gave them: {parts}"""


def as_text(value: object) -> str:
    r"""Words from data as Markdown that shows them, letter by letter, on one line: no HTML, link or emphasis.

    >>> as_text("<b>*a*</b> [x](y)\n| c")
    '&lt;b&gt;\\*a\\*&lt;/b&gt; \\[x\\](y) \\| c'
    """
    text = clean(value).translate(MARKDOWN)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\_", text)  # within a word it is only a letter


def _as_code(command: str) -> str:
    """A line of a block of code, where nothing is Markdown but the line end."""
    return clean(command).replace("\n", "↵")


def write_card(run: RunDirectory, config: RunConfig, task: Task, result: dict[str, Any]) -> None:
    """README.md and recipe.toml of a run directory."""
    left_out = {
        "versions",
        "source",
        "own_file",
        "own_file_sha256",
        "from_run_sha256",
        "decoder_from_sha256",
        "teacher_sha256",
        "from_vocabularies",
    }
    chosen, repeat = f"step {result.get('best_step', 0)} of {result.get('steps', 0)}", ALONE
    if config.ensemble:
        chosen, repeat = "of each model alone", MIXED
    elif config.members > 1:
        chosen, repeat = "of each model on its own fold; the metrics there are means", TOGETHER
    else:
        recipe = config.model_copy(update={"budget": _as_steps(config, result)})
        run.write_text("recipe.toml", RunConfig.parse(recipe.model_dump(exclude=left_out)).to_toml())
    uses = commands(config.model_dump(), result, run.path.name)
    text = CARD.format(
        title=as_text(f"{config.title} on {config.source}"),
        model=_as_code(config.title).replace("`", "'"),
        task=config.task,
        parameters=result["parameters"],
        some=_beginning(config, result),
        version=config.versions.get("unrolled"),
        torch=config.versions.get("torch"),
        table=_table(config.title, result, task.FIGURES),
        verdict=_verdict(config.title, result),
        unit=task.UNIT,
        notes="".join(f"\n- {as_text(note)}" for note in [*result.get("notes", []), *result.get("recipe", [])]),
        chosen=chosen,
        repeat=repeat.format(
            data=_as_code(data_words(config.source)),
            path=_as_code(shlex.quote(run.path.name)),
            task=config.task,
            model=_as_code(config.model),
            members=config.members,
            parts=as_text(", ".join(f"{member.run} {member.weight:.2f}" for member in config.ensemble)),
            more=_as_code(own_words(config.own_file)),
        ),
        uses="\n".join(f"    {_as_code(command)}" for _, command in uses),
        facts=_facts(task.facts()),
        seed=config.seed,
        threads=config.threads,
    )
    run.write_text("README.md", text)


def _beginning(config: RunConfig, result: dict[str, Any]) -> str:
    """How many parameters were trained, and what the first weights were, where that is not the usual."""
    trained, origin = result.get("trained_parameters"), config.start.from_run
    fixed = as_text(", ".join(config.start.freeze))
    some = "" if trained is None else f" ({trained:,} of them trained, {fixed} frozen)"
    return some + ("" if origin is None else f", starting from the weights of {as_text(origin)}")


def not_beaten(result: dict[str, Any], split: str) -> list[str]:
    """The baselines that a model is not better than on a part; one that was solved may be that very baseline."""
    metric = metrics_in(result, "")[0]
    own, solved = metric.loss(result[split][metric.name]), not result.get("steps")
    measured = {label: parts[split] for label, parts in result["baselines"].items() if split in parts}
    scores = {label: metric.loss(figures[metric.name]) for label, figures in measured.items()}
    return [label for label, score in scores.items() if score < own or (score == own and not solved)]


def _verdict(model: str, result: dict[str, Any]) -> str:
    better = not_beaten(result, "test" if "test" in result else "valid")
    return f"**{as_text(f'{model} does not beat {listed(better)} here.')}**\n\n" if better else ""


def _as_steps(config: RunConfig, result: dict[str, Any]) -> Any:
    """A time budget as the number of steps taken, so that the recipe reproduces the run bit for bit."""
    if not result.get("steps"):
        return config.budget
    empty = {"epochs": None, "train_tokens": None, "time": None}
    return config.budget.model_copy(update={**empty, "steps": result["steps"], "horizon": result["horizon"]})


def _table(model: str, result: dict[str, Any], names: tuple[str, ...]) -> str:
    """Markdown table: one line per model and held-out split."""
    rows = [(name, split, figures) for name, parts in result["baselines"].items() for split, figures in parts.items()]
    rows += [(model, split, result[split]) for split in ("valid", "test") if split in result]
    known = [name for name in names if any(name in figures for _, _, figures in rows)]
    lines = [f"| model | data | {' | '.join(n.replace('_', ' ') for n in known)} |", "|" + "---|" * (len(known) + 2)]
    for label, split, figures in rows:
        cells = (f"{figures[name]:.4f}" if name in figures else "" for name in known)
        lines.append(f"| {as_text(label)} | {split} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _facts(facts: dict[str, Any]) -> str:
    """One line per fact; tables of facts in words."""

    def words(value: Any) -> str:
        if isinstance(value, dict):
            return "; ".join(f"{key} {words(each)}" for key, each in value.items())
        if isinstance(value, list):
            return ", ".join(words(each) for each in value)
        return f"{value:,}" if isinstance(value, int) else str(value)

    known = {name: value for name, value in facts.items() if value not in (None, [], {})}
    return "\n".join(f"- {as_text(name.replace('_', ' '))}: {as_text(words(value))}" for name, value in known.items())
