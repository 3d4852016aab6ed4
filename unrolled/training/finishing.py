"""What a run does when its weights are chosen: metrics on all held-out data, examples, pictures, costs, the card."""

from __future__ import annotations

import json
import math
import time
from typing import Any, NamedTuple

from unrolled.core.causal import Encoder, decoder_of
from unrolled.core.forward import start
from unrolled.core.sharing import shared_by
from unrolled.core.task import Ledger, Model, Task
from unrolled.runs import build, cost
from unrolled.runs.asking import uses_of
from unrolled.runs.card import write_card
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.directory import RunDirectory
from unrolled.training import told
from unrolled.training.loop import WRITING
from unrolled.training.processes import One, Processes

PREDICTIONS = 200  # examples kept in predictions.jsonl
COST_LENGTH = 128  # positions after which the state is weighed


def finish(
    run: RunDirectory,
    config: RunConfig,
    task: Task,
    model: Model,
    outcome: dict[str, Any],
    started: float,
    processes: Processes | None = None,
) -> None:
    """The figures on all held-out data, examples, the model card, the seal."""
    begun, parts = time.monotonic(), task.held_out()
    figures, ledgers, evaluation = measured(config, task, model, processes or One())
    run.write_json("data.json", {**task.describe(), "facts": task.facts()})
    units = {f"{split}.{name}": each for split in parts for name, each in ledgers[split].tensors().items()}
    run.write_tensors("units.safetensors", units)
    last = ledgers[parts[-1]]
    lines = list(task.predictions(model, parts[-1], min(PREDICTIONS, last.n_units) if last.left_out else PREDICTIONS))
    run.write_lines("predictions.jsonl", lines)
    for name, picture in task.pictures(model, parts[-1]).items():
        run.write_json(f"figures/{name}.json", picture.model_dump(mode="json"))
    result = {"parameters": build.count_parameters(model), **figures, **outcome}
    result |= {"units": ledgers[parts[-1]].n_units, "unit": ledgers[parts[-1]].unit}
    result |= {"score": task.ranks_by.name, "metrics": [metric.to_json() for metric in task.metrics()]}
    result |= {"criterion": task.criterion, "figures": list(task.FIGURES), "how_measured": task.how_measured()}
    result |= {"uses": uses_of(task, model, config.task), "cost": _costs(config, task, model)}
    result |= {"emission": json.loads(task.emission.to_json())}
    if words := told.kept(run):
        result["recipe"] = words
    now = time.monotonic()
    result |= {"seconds": round(now - started, 2), "closing_seconds": round(now - begun - evaluation, 2)}
    write_card(run, config, task, result)
    run.write_json("result.json", result)  # last, for whoever sees it takes the run as finished
    run.seal()  # a look at everything; all that was written is sealed already


class Measured(NamedTuple):
    """The figures of each held-out split, the statistics that they are from, and the seconds that it took."""

    figures: dict[str, dict[str, float]]
    ledgers: dict[str, Ledger]
    seconds: float


def measured(config: RunConfig, task: Task, model: Model, processes: Processes) -> Measured:
    """What the processes of a run compute together when its weights are chosen."""
    task.after_training(model)
    parts = task.held_out()
    ledgers = {split: Ledger(task.ranks_by.name, _writing_seconds(config, len(parts) + 1)) for split in parts}
    before = time.monotonic()
    with shared_by(processes.others):
        figures = {split: task.evaluate(model, split, ledger=ledgers[split]) for split in parts}
    return Measured(figures, ledgers, time.monotonic() - before)


def _writing_seconds(config: RunConfig, n: int) -> float:
    """How long texts may be written, n times, where a model writes any."""
    return math.inf if config.budget.time is None else WRITING * config.budget.time / n


def _costs(config: RunConfig, task: Task, model: Model) -> dict[str, Any]:
    """What streaming costs, what training needed."""
    facts = {**cost.facts(decoder_of(model), config.batching.length), "memory_megabytes": cost.peak_megabytes()}
    if isinstance(model, Encoder):  # it has no ticks
        return facts
    batch, _ = task.example(task.input_of(next(iter(task.predictions(model, task.splits()[-1], 1)))))
    batch = batch.to(config.device)
    x = batch.x[:, :COST_LENGTH]
    decoder, state = start(model, batch)
    facts["state_bytes"] = cost.state_bytes(decoder, x, state)
    facts["tick_microseconds"] = cost.tick_microseconds(decoder, x, state)
    return facts
