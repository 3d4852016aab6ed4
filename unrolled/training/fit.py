"""Fit a model to its data: in closed form where it has one, trained otherwise, by as many processes as there are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.task import Model, Task
from unrolled.runs import build, closed_form
from unrolled.runs.config import RunConfig
from unrolled.runs.parts import Frozen
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import saved
from unrolled.training import rungs, starting
from unrolled.training.batches import sampler_of
from unrolled.training.launching import Crew
from unrolled.training.loop import Loop
from unrolled.training.memory import explain_memory
from unrolled.training.processes import NAME, One, Processes, require_gradients, require_rows
from unrolled.training.progress import Progress, Quiet

MOST_STARTED = 8  # processes that a directory may ask for, or as many as there are cores


class Ready(NamedTuple):
    """What there is to fit a model to, and by whom."""

    run: RunDirectory
    config: RunConfig
    task: Task
    frozen: Frozen
    shown: Progress
    started: float
    resuming: bool
    crew: Crew
    data: Any = None
    own_file: str | Path | None = None

    def told(self, notes: list[str]) -> list[str]:
        return tell(self.shown, notes)


class Fit(NamedTuple):
    """What fitting came to, the model with its best weights, and who computes its figures."""

    outcome: dict[str, Any]
    model: Model
    processes: Processes


def tell(shown: Progress, notes: list[str]) -> list[str]:
    for note in notes:
        shown.say(f"note: {note}")
    return notes


def fit(ready: Ready, model: Model) -> Fit:
    """Leaves the best weights in the run and the model."""
    run, config, task = ready.run, ready.config, ready.task
    if closed_form.applies(config, task.ports()):
        return _solved(ready, model)
    task.look_at_training(model)
    processes = _begun(ready, model)
    loop = Loop(config, task, model, ready.frozen, run, ready.shown, ready.started, processes)
    notes = loop.sampler.notes if ready.resuming else ready.told(loop.sampler.notes)
    with explain_memory(config, task, model):
        if ready.resuming or starting.began(run):
            loop.progress = ready.shown if ready.resuming else Quiet()  # behind a race nothing is to be told
            loop.resume()
            begun = time.monotonic() - rungs.seconds(run.path)  # of a race of models
            loop.progress, loop.started = ready.shown, min(loop.started, ready.started, begun)  # with a race of rates
        loop.plan = rungs.held(loop.plan, loop.used)
        loop.train()
    processes.wait()
    model = build.make_model(config, task) if config.optimiser.shard else model
    model.load_state_dict(run.read_tensors("model.safetensors"))
    rungs.pause(run, loop.plan, task, model, loop.at.step, loop.used)
    at = loop.at
    speed = at.step * loop.sampler.tokens_per_step * config.optimiser.accumulate / max(at.training, 1e-9)
    outcome = {
        "steps": at.step,
        "horizon": loop.plan.horizon,
        "best_step": at.best_step,
        "training_seconds": round(at.training, 2),
        "tokens_per_second": round(speed),
        "notes": list(notes),
    } | ({"trained_parameters": ready.frozen.n_trained} if config.start.freeze else {})
    return Fit(outcome, model, processes)


def _solved(ready: Ready, model: Model) -> Fit:
    config, begun = ready.config, time.monotonic()
    if config.processes > 1:
        ready.told([f"the model '{config.model}' is fitted in closed form, which one process does"])
    fitted = closed_form.fit(config, ready.task, model)
    ready.run.write_tensors("model.safetensors", model.state_dict())
    notes = ready.told(closed_form.notes(config, fitted))
    seconds = round(time.monotonic() - begun, 2)
    return Fit({"steps": 0, "training_seconds": seconds, "notes": notes, "chosen": dict(fitted.chosen)}, model, One())


def _begun(ready: Ready, model: Model) -> Processes:
    """The processes that train, all of which know what."""
    config = ready.config
    if config.processes > 1:
        require_gradients(config, model)
        require_rows(config, sampler_of(config, ready.task, model))
    return ready.crew.begin(
        {
            "path": str(ready.run.path),
            "config": config.model_dump(mode="json"),
            "data": ready.data,
            "own_file": ready.own_file,
            "resuming": ready.resuming or starting.began(ready.run),
        }
    )


def require_processes(config: RunConfig) -> None:
    """Rows must divide among processes, and weights among several."""
    if config.optimiser.shard and config.processes == 1:
        raise UsageError(f"{option('shard', True)} divides a model between processes: add {option(NAME, 2)}")
    n, size = config.processes, config.batching.batch_size
    if size % n == 0 or config.batching.batch_tokens is not None:
        return
    nearest = dict.fromkeys(value for value in (size // n * n, -(-size // n) * n) if value)
    fits = " or ".join(option("batch_size", value) for value in nearest)
    raise UsageError(f"{n} processes cannot share batches of {size} rows equally: use {fits}")


def require_few(place: Path, config: RunConfig) -> None:
    """That a run directory, which may come from anybody, starts no crowd of processes."""
    with saved(place):
        require_processes(config)
    if config.processes > max(MOST_STARTED, os.cpu_count() or 1):
        raise DataError(
            f"{place}: this run was trained by {config.processes:,} processes; say how many are to train it here with "
            f"{option(NAME, 2)}"
        )
