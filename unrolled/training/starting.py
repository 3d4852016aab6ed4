"""What a run begins with, where that is a saved run: its sizes, its tokens, its weights.

settings      tokens and the width of the input's vectors; where the model is the same one, all of its own
vocabularies  what a token is stays what it was, where the data is of the same kind, so that tables mean the same
weights       every tensor with the same name by part and the same shape; vectors keep their size (runs/parts.py)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel
from torch import nn

from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.spec import Role, serves
from unrolled.core.task import Task, Vocabulary
from unrolled.core.taught import Taught
from unrolled.runs import parts
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig
from unrolled.runs.keys import flat
from unrolled.runs.run import Run, load
from unrolled.runs.storage import manifest
from unrolled.runs.storage.checkpoint import Checkpoints
from unrolled.runs.storage.directory import RunDirectory


def given_origin(settings: Mapping[str, Any], recipe: Mapping[str, Any]) -> str | None:
    """The saved run that settings name, or else a recipe file."""
    in_recipe = recipe.get("start", {})
    places = [settings.get("start.from_run"), settings.get("from_run")]
    places += [in_recipe.get("from_run") if isinstance(in_recipe, Mapping) else None, recipe.get("start.from_run")]
    return next((str(path) for path in places if path is not None), None)


def given_decoder(settings: Mapping[str, Any], recipe: Mapping[str, Any]) -> str | None:
    """The same of the saved run that gives the decoder."""
    found = {**flat(recipe), **settings}
    return next((str(found[key]) for key in ("start.decoder_from", "decoder_from") if found.get(key) is not None), None)


def of_half(half: str, saved: RunConfig, model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model that is made of two others (encdec) with the saved one as its half, if it can be and no
    other was named."""
    role: Role = "an encoder" if half == "encoder" else "a decoder that attends"
    named = next((given[key] for key in (half, f"model.{half}") if given.get(key) is not None), saved.model)
    fits = f"{half}_settings" in model.model_fields and serves(discover.model(saved.model), role)
    if not fits or named != saved.model:
        return {}
    return {f"model.{half}": saved.model} | {f"{half}.{name}": each for name, each in saved.model_settings.items()}


def inherited(saved: RunConfig, model: str) -> dict[str, Any]:
    """The settings of a saved run that weights need to fit; what is given by hand or in a recipe wins."""
    result: dict[str, Any] = {f"data.{name}": getattr(saved.data, name) for name in ("tokens", "vocabulary")}
    result |= {f"ends.{name}": getattr(saved.ends, name) for name in ("input", "d_embedding")}
    if saved.model == model:
        result |= {f"model.{name}": value for name, value in saved.model_settings.items()}
        result["ends.tied"] = saved.ends.tied
    return result


class Origin(NamedTuple):
    """The saved run that a run begins with, and perhaps another one for its decoder."""

    run: Run
    decoder: Run | None = None

    def by_half(self) -> list[tuple[str, Run]]:
        """The run that each half of a model is taken from."""
        return [(half, self.decoder or self.run if half == "decoder" else self.run) for half in parts.HALVES]

    def vocabularies(self) -> dict[str, Vocabulary]:
        """By the table of the new model that may use them."""
        found = {}
        for table, (_, run) in zip(parts.TABLES, self.by_half()):
            there = run.task.vocabularies()
            if (name := parts.counterpart(table, there)) in there:
                found[table] = there[name]
        return found


def offer_vocabularies(task: Task, origin: Origin) -> None:
    """Let a task that has read nothing yet use the vocabularies of saved runs."""
    task.reuse(origin.vocabularies())


def facts(task: Task, origin: Origin) -> dict[str, Any]:
    """For the config of the new run: which weights it began with, and which tables are read as they were there."""
    before, now = origin.vocabularies(), task.vocabularies()
    kept = [t for t in before if t in now and now[t].codec.to_json() == before[t].codec.to_json()]
    second = {} if origin.decoder is None else {"decoder_from_sha256": fingerprint(origin.decoder)}
    return {"from_run_sha256": fingerprint(origin.run), "from_vocabularies": kept, **second}


MOST_UNKNOWN = 0.9  # of the tokens of the data


def require_overlap(task: Task, origin: Origin) -> None:
    """Data that is read by the vocabulary of a saved run must be written in it."""
    share, before = task.unknown_share(), origin.vocabularies()
    if share > MOST_UNKNOWN and before:
        codec = next(iter(before.values())).codec
        known = ", ".join(codec.name(i) for i in range(len(codec.specials), min(codec.size, len(codec.specials) + 8)))
        raise DataError(
            f"{origin.run.path}: its vocabulary lacks {share:.0%} of the tokens of this data; its tokens are such as "
            f"{known}: start from a run that was trained on text like this, or leave out {option('from_run')}"
        )


def offer_own(run: RunDirectory, config: RunConfig, task: Task) -> None:
    """The same for a run that is resumed: what it took from a saved run is in its own codec by now."""
    before = make_task(config)
    run.verify(run.names("codec"))
    before.load_codec(run.path / "codec")
    before.recall(run.read_json("data.json"))
    task.reuse({table: before.vocabularies()[table] for table in config.from_vocabularies})


def take_weights(
    model: nn.Module, task: Task, origin: Origin, filled: Collection[str] = (), words: Sequence[str] = ()
) -> parts.Taken:
    """Copy what fits of the parts that words name, but for tensors that are filled already; nothing that fits is an
    error."""
    if origin.decoder is None:
        return _taken(model, task, origin.run, parts.HALVES, filled, words)
    first, second = (_taken(model, task, run, [half], filled, words) for half, run in origin.by_half())
    return first.beside(second)


def _taken(
    model: nn.Module, task: Task, saved: Run, halves: Sequence[str], filled: Collection[str], words: Sequence[str]
) -> parts.Taken:
    if not saved.config.is_alone:
        n = len(saved.config.ensemble) or saved.config.members
        raise UsageError(f"{saved.path}: this is an ensemble of {n} models; start from one of them")
    taken = parts.take(model, saved.model, task.vocabularies(), saved.task.vocabularies(), halves, filled, words)
    if not taken.took:
        reasons = "; ".join(f"{name} is {why}" for name, why in list(taken.left.items())[:3])
        raise UsageError(
            f"{saved.path}: none of its weights fit this model ({reasons}); use the same {option('model')} and sizes"
        )
    return taken


def require_taken(frozen: parts.Frozen, taken: parts.Taken) -> None:
    """What is newly initialised must be trained, or it would keep its random initial values."""
    for name in frozen.fixed:
        if name in taken.some:
            n, of = taken.some[name]
            raise UsageError(
                f"{name} cannot be frozen: {of - n} of its {of} rows are of tokens that the saved run does not have, "
                "and would keep their random initial values"
            )
        if name in taken.left:
            raise UsageError(
                f"{name} cannot be frozen: it was not loaded from the saved run ({taken.left[name]}) and would "
                "keep its random initial values; freeze less, such as one of "
                f"{', '.join(dict.fromkeys(map(parts.part_of, taken.took)))}"
            )


def began(run: RunDirectory) -> bool:
    """Whether a resumed run has weights of its own."""
    return Checkpoints(run.path / "checkpoints").any()


def fingerprint(saved: Run) -> str:
    return manifest.measure(saved.path / "model.safetensors").sha256


def require_unchanged(run: Path, saved: Run, sha256: str | None) -> None:
    """A run that has no weights of its own yet resumes from the same ones."""
    if fingerprint(saved) != sha256:
        raise DataError(f"{saved.path}: its weights have changed since {run} started from them; start a new run")


def teach(task: Task, config: RunConfig) -> RunConfig:
    """Load the run that a task learns from, where there is one; the config tells its fingerprint, which stays."""
    if not isinstance(task, Taught) or task.teacher_run is None:
        return config
    teacher = load(task.teacher_run, device=config.device)
    task.learn_from_run(teacher.task, teacher.model, str(teacher.path))
    found = fingerprint(teacher)
    if config.teacher_sha256 not in (None, found):
        raise DataError(f"{teacher.path}: its weights have changed since this run began to learn from them; restore "
                        "them, or start a new run")  # fmt: skip
    return config.model_copy(update={"teacher_sha256": found})
