"""Every model, on every task that it fits, stopped and resumed: the same bits as without the stop.

A new model file joins by itself, a new task with a line of tests/small.py.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.small import DATA, QUICK
from tests.thorough import every
from unrolled.comparison.plan import trained
from unrolled.core import discover
from unrolled.core import state as states
from unrolled.core.errors import DataError, Interrupted
from unrolled.core.spec import Ports
from unrolled.core.state import Fixed
from unrolled.core.task import Task
from unrolled.runs import build, parts
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.state_json import flatten
from unrolled.training import writers
from unrolled.training.api import configure
from unrolled.training.loop import Loop
from unrolled.training.progress import Quiet

STOP = 3  # of 4 steps; evaluations are at 0, 2 and 4


def prepared(label: str, model: str) -> Task:
    return prepared_for(label, discover.model(model).kind)


@cache
def prepared_for(label: str, kind: str) -> Task:
    """The task with its settings for models of a kind."""
    name, data, settings = DATA[label]
    room = discover.tasks.load(name)
    own = {key: value for key, value in room.Task.FOR_KIND.get(kind, {}).items() if key in room.Config.model_fields}
    settings = {f"task.{key}": value for key, value in own.items() if key not in settings} | settings
    task = build.make_task(configure(name, None, data, QUICK | settings))
    task.prepare(data)
    return task


def configured(label: str, model: str) -> RunConfig:
    """The smallest form of a model, with dropout wherever it has some."""
    name, data, settings = DATA[label]
    tiny = discover.model(model).tiny
    dropout = {"dropout": 0.2} if "dropout" in type(tiny).model_fields else {}
    config = configure(name, model, data, QUICK | settings)
    return config.model_copy(update={"model_settings": tiny.updated(dropout).model_dump()})


def trains(label: str, model: str) -> bool:
    """Whether a model is trained there: `compare` would, it is not fitted in closed form, and predicts where asked."""
    task = prepared(label, model)
    if not trained(discover.model(model), task.ports().asks(task.asks().accepts)):
        return False
    config = configured(label, model)
    if task.ports().answers != "each":
        return True
    x, reader = task.sampler(config.batching, carried=False, seed=0).batch(0).x, build.build(config, *asked(task))
    cut = [x[:, :n] for n in range(1, x.shape[1] + 1)]
    return all(reader(x, torch.ones(x.shape[:2]).bool())[0].shape[1] == x.shape[1] for x in cut)  # it has no strides


def asked(task: Task) -> tuple[Ports, tuple[str, ...]]:
    return task.ports(), task.ACCEPTS


class NoEvents:
    """Curves that nobody looks at: each file of them would wait for the next second."""

    def __init__(self, path: Path) -> None: ...
    def resume(self, step: int) -> None: ...
    def note(self, step: int, values: Any) -> None: ...

    scalars = note

    def flush(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No curves, and no waiting for the disk: nobody cuts the power here."""
    monkeypatch.setattr(writers, "Events", NoEvents)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Stopped(Loop):
    """One that is asked to stop after some steps."""

    def _show(self, loss: float) -> None:
        self.stop.asked = self.at.step == STOP - 1


class Diverging(Loop):
    """One whose batches 4 to 7 are not finite at first, so that it goes back to the checkpoint of step 4."""

    bad = 4

    def _gradient(self, step: int) -> tuple[float, float]:
        if step == 4:
            weights = {name: value.clone() for name, value in self.model.state_dict().items()}
            self.found = [*getattr(self, "found", []), (tuple(weights.values()), states.clone(self.state))]
        loss, norm = super()._gradient(step)
        if step >= 4 and self.bad:
            self.bad -= 1
            return float("nan"), norm
        return loss, norm


def make(label: str, model: str, path: Path, kind: type[Loop] = Loop, **watching: int) -> Loop:
    """What `train` makes of data and a model, without its figures at the end."""
    task, config = prepared(label, model), configured(label, model)
    config = config.model_copy(update={"watching": config.watching.model_copy(update=watching)})
    built = build.build(config, *asked(task))
    task.look_at_training(built)
    path.mkdir(exist_ok=True)
    return kind(config, task, built, parts.freeze(built, []), RunDirectory(path), Quiet(), time.monotonic())


def everything(loop: Loop) -> dict[str, Any]:
    """All that a run leaves behind."""
    memory = {f"optimiser {name}": value for name, value in loop.optimiser.export().items()}
    kept = {f"best {name}": value for name, value in loop.run.read_tensors("model.safetensors").items()}
    lines = [{key: value for key, value in line.items() if key != "seconds"} for line in loop.run.read_metrics()]
    best = loop.at.best, loop.at.best_step, loop.at.stale
    return {**loop.model.state_dict(), **memory, **kept, "metrics.jsonl": lines, "best": best}


def assert_same(whole: Loop, resumed: Loop, label: str) -> None:
    a, b = everything(whole), everything(resumed)
    assert a.keys() == b.keys(), label
    for name, value in a.items():
        same = torch.equal(value, b[name]) if isinstance(value, Tensor) else value == b[name]
        assert same, f"{label}: {name} differs"


def test_every_task_has_data() -> None:
    assert {task for task, _, _ in DATA.values()} == set(discover.tasks.names())


@pytest.mark.parametrize(
    ("model", "part"),
    every(2, [(name, (i + part) % 2) for i, name in enumerate(discover.models.names()) for part in range(2)]),
)
def test_every_model_goes_on_as_if_nothing_had_happened(model: str, part: int, tmp_path: Path) -> None:
    labels = [label for label in DATA if trains(label, model)]
    for label in labels[part::2]:
        folder = tmp_path / label.replace(" ", "-")
        whole = make(label, model, tmp_path / f"{folder}-whole")
        whole.train()
        with pytest.raises(Interrupted):
            make(label, model, folder, Stopped).train()
        resumed = make(label, model, folder)
        resumed.resume()
        assert resumed.at.step == STOP
        resumed.train()
        assert_same(whole, resumed, label)
    assert labels or discover.model(model).closed_form, f"{model} is trained on no task"


def same(a: Any, b: Any) -> bool:
    """Whether two states have the same classes and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Fixed):
        return same(a.tree, b.tree)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, Tensor) else bool(a == b)


@pytest.mark.parametrize("label", ["a stream", "a stream with longer gradients"])
@pytest.mark.parametrize("model", ["ar", "tcn", "wavenet"])
def test_a_roll_back_after_a_divergence_brings_the_carried_state_back(model: str, label: str, tmp_path: Path) -> None:
    loop = make(label, model, tmp_path, Diverging, evaluate_every=4)
    loop.plan.steps = 10
    loop.train()
    events = [line["event"] for line in loop.run.read_metrics() if "event" in line]
    assert events[-1] == "batch 7: still not finite, rolled back to step 4 with the learning rate times 0.3"
    before, after = loop.found  # type: ignore[attr-defined]
    assert before[1] is not None
    assert same(before, after)
    assert loop.at.step == 10
    assert loop.at.best_step > 4


def test_a_state_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        make("a stream", "tcn", tmp_path, Stopped).train()
    loop = make("a stream", "tcn", tmp_path)
    found = loop.checkpoints.latest()
    assert found is not None
    carried, structure = flatten((None, None, torch.zeros(3, 4)))
    tensors = {name: value for name, value in found.tensors.items() if not name.startswith("state.")}
    tensors |= {f"state.{name}": value for name, value in carried.items()}
    loop.checkpoints.save(STOP, tensors, found.facts | {"structure": structure})
    with pytest.raises(DataError, match="the saved state has a tuple of 3 where the model has a tuple"):
        loop.resume()
