"""What a run begins with, where that is a saved run: its sizes, its tokens, its weights.

settings      tokens and the width of the input's vectors; where the model is the same one, all of its own
vocabularies  what a token is stays what it was, where the data is of the same kind, so that tables mean the same
weights       every tensor with the same name by part and the same shape; vectors keep their size (runs/parts.py)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.task import Task, Vocabulary
from unrolled.runs import parts
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig
from unrolled.runs.run import Run
from unrolled.runs.storage import manifest
from unrolled.runs.storage.checkpoint import Checkpoints
from unrolled.runs.storage.directory import RunDirectory


def given_origin(settings: Mapping[str, Any], recipe: Mapping[str, Any]) -> str | None:
    """The saved run that settings name, or else a recipe file."""
    in_recipe = recipe.get("start", {})
    places = [settings.get("start.from_run"), settings.get("from_run")]
    places += [in_recipe.get("from_run") if isinstance(in_recipe, Mapping) else None, recipe.get("start.from_run")]
    return next((str(path) for path in places if path is not None), None)


def inherited(saved: RunConfig, model: str) -> dict[str, Any]:
    """The settings of a saved run that weights need to fit; what is given by hand or in a recipe wins."""
    result: dict[str, Any] = {f"data.{name}": getattr(saved.data, name) for name in ("tokens", "vocabulary")}
    result |= {f"ends.{name}": getattr(saved.ends, name) for name in ("input", "d_embedding")}
    if saved.model == model:
        result |= {f"model.{name}": value for name, value in saved.model_settings.items()}
        result["ends.tied"] = saved.ends.tied
    return result


def offer_vocabularies(task: Task, found: Mapping[str, Vocabulary]) -> None:
    """Let a task that has read nothing yet use the vocabularies of a saved run."""
    known = {table: parts.counterpart(table, found) for table in parts.TABLES}
    task.reuse({table: found[name] for table, name in known.items() if name in found})


def facts(task: Task, saved: Run) -> dict[str, Any]:
    """For the config of the new run: which weights it began with, and which tables are read as they were there."""
    before, now = saved.task.vocabularies(), task.vocabularies()
    names = {table: parts.counterpart(table, before) for table in parts.TABLES if table in now}
    kept = [t for t, name in names.items() if name in before and now[t].codec.to_json() == before[name].codec.to_json()]
    return {"from_run_sha256": fingerprint(saved), "from_vocabularies": kept}


def offer_own(run: RunDirectory, config: RunConfig, task: Task) -> None:
    """The same for a run that is resumed: what it took from a saved run is in its own codec by now."""
    before = make_task(config)
    run.verify(run.names("codec"))
    before.load_codec(run.path / "codec")
    before.recall(run.read_json("data.json"))
    task.reuse({table: before.vocabularies()[table] for table in config.from_vocabularies})


def take_weights(model: nn.Module, task: Task, saved: Run, filled: Collection[str] = ()) -> parts.Taken:
    """Copy what fits, but for tensors that are filled already; nothing that fits is an error."""
    if not saved.config.is_alone:
        n = len(saved.config.ensemble) or saved.config.members
        raise UsageError(f"{saved.path}: this is an ensemble of {n} models; start from one of them")
    taken = parts.take(model, saved.model, task.vocabularies(), saved.task.vocabularies(), filled)
    if not taken.took:
        reasons = "; ".join(f"{name} is {why}" for name, why in list(taken.left.items())[:3])
        raise UsageError(
            f"{saved.path}: none of its weights fit this model ({reasons}); use the same {option('model')} and sizes"
        )
    return taken


def require_taken(frozen: parts.Frozen, taken: parts.Taken) -> None:
    """What is newly initialised must be trained, or it would keep its random initial values."""
    for name in frozen.fixed:
        if name in taken.left:
            raise UsageError(
                f"{name} cannot be frozen: it was not loaded from the saved run ({taken.left[name]}) and would "
                "keep its random initial values; freeze less, such as one of "
                f"{', '.join(dict.fromkeys(map(parts.part_of, taken.took)))}"
            )


def began(run: RunDirectory) -> bool:
    """Whether a resumed run has weights of its own."""
    return Checkpoints(run.path / "checkpoints").latest() is not None


def fingerprint(saved: Run) -> str:
    return manifest.measure(saved.path / "model.safetensors").sha256


def require_unchanged(run: Path, saved: Run, config: RunConfig) -> None:
    """A run that has no weights of its own yet resumes from the same ones."""
    if fingerprint(saved) != config.from_run_sha256:
        raise DataError(f"{saved.path}: its weights have changed since {run} started from them; start a new run")
