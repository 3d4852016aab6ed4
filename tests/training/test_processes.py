"""Several processes train one run as one does: every task, with equal and unequal shares of its batches.

Threads stand for processes here; that real ones do the same is in test_processes_started.py.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import unrolled
from tests.small import DATA, QUICK
from tests.thorough import every
from tests.training.side_by_side import together
from unrolled.core.batch import Batch
from unrolled.core.errors import Interrupted, UsageError
from unrolled.core.ledger import Ledger
from unrolled.core.sharing import shared_by
from unrolled.core.state import leaves
from unrolled.core.task import Task
from unrolled.runs import build, parts
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.directory import RunDirectory
from unrolled.training import launching
from unrolled.training.api import configure
from unrolled.training.batches import sampler_of
from unrolled.training.finishing import measured
from unrolled.training.launching import Started
from unrolled.training.loop import Loop
from unrolled.training.many import Many
from unrolled.training.processes import LostProcess, One, Processes, require_gradients, require_rows
from unrolled.training.progress import Quiet
from unrolled.training.writers import Unwritten

STILL = {"ends.dropout": 0.0, "target_dropout": 0.0, "teacher": 1.0, "steps": 6, "batch_size": 4, "optimiser": "sgd"}
MODELS = {"denoise": "gru", "next-frame": "gru", "tag": "bigru", "forecast": "gru", "masked-token": "bert"}
ALONE = {"word-vectors", "recall"}  # tasks whose models are not trained by gradients
GENERATOR = threading.Lock()  # of torch, which threads share
TRAINED = [label for label in DATA if DATA[label][0] not in ALONE]


def prepared(label: str, **more: Any) -> tuple[RunConfig, Task]:
    name, data, settings = DATA[label]
    known = {key: value for key, value in STILL.items() if key in settings or key not in ("target_dropout", "teacher")}
    config = configure(name, MODELS.get(name), data, QUICK | settings | known | more)
    still = {key: 0.0 for key in config.model_settings if key == "dropout"}
    config = config.model_copy(update={"model_settings": {**config.model_settings, **still}})
    task = build.make_task(config)
    task.prepare(data)
    return config, task


def loop_of(label: str, place: Path, processes: Processes, **more: Any) -> Loop:
    config, task = prepared(label, **more)
    with GENERATOR:  # initial weights are those of the first process
        torch.manual_seed(processes.rank)
        model = build.make_model(config, task)
    run = RunDirectory.create(place) if processes.rank == 0 else Unwritten(place)
    processes.wait()
    task.look_at_training(model)
    return Loop(config, task, model, parts.freeze(model, []), run, Quiet(), 0.0, processes)


def trained(label: str, place: Path, processes: Processes, **more: Any) -> dict[str, Any]:
    """What a run came to: its last weights, its curve, its figures on all held-out data and by unit."""
    loop = loop_of(label, place, processes, **more)
    loop.train()
    found = measured(loop.config, loop.task, loop.model, processes)
    lines = [line for line in RunDirectory(place).read_metrics() if processes.rank == 0]
    units = {f"{split} {name}": each for split, own in found.ledgers.items() for name, each in own.tensors().items()}
    return {"weights": loop.model.state_dict(), "lines": lines, "figures": found.figures, "units": units}


def assert_alike(one: Any, other: Any, place: str = "") -> None:
    if isinstance(one, Mapping):
        assert one.keys() == other.keys(), place
        for name in one:
            if name != "seconds":
                assert_alike(one[name], other[name], f"{place}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for i, (a, b) in enumerate(zip(one, other)):
            assert_alike(a, b, f"{place}/{i}")
    elif isinstance(one, Tensor):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda text: f"{place} {text}")
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=1e-5, abs=1e-5), place
    else:
        assert one == other, place


@pytest.mark.parametrize(
    ("label", "n"), every(2, [(label, n) for i, label in enumerate(TRAINED) for n in ((2, 3) if i % 2 else (3, 2))])
)
def test_a_run_is_the_same_whatever_the_number_of_processes(label: str, n: int, tmp_path: Path) -> None:
    alone = trained(label, tmp_path / "one", One())
    first, *others = together(n, lambda many: trained(label, tmp_path / "many", many))
    assert_alike(alone, first)
    for other in others:
        assert all(torch.equal(first["weights"][name], other["weights"][name]) for name in first["weights"])
        assert other["figures"] == first["figures"]


def test_what_each_process_was_given_differs(tmp_path: Path) -> None:
    """The test above would hold if every process did everything."""
    seen: dict[int, set[int]] = {}

    def rows(many: Many) -> None:
        loop = loop_of("classes of texts", tmp_path / "run", many)
        batches = [many.own(loop.sampler.batch(step))[0] for step in range(3)]
        seen[many.rank] = {int(row) for batch in batches for row in batch.rows}  # type: ignore[union-attr]

    together(2, rows)
    assert seen[0]
    assert not seen[0] & seen[1]


def test_the_carried_state_is_cut_by_rows_and_saved_whole(tmp_path: Path) -> None:
    def states(many: Many) -> Any:
        loop = loop_of("a stream", tmp_path / f"run{many.n}", many, evaluate_every=100)
        loop.train()
        return many.joined(loop.state), loop.checkpoints.latest()

    (whole, kept), _ = together(2, states)
    joined = [*leaves(whole)]
    saved = [value for name, value in kept.tensors.items() if name.startswith("state.")]
    assert [len(leaf) for leaf in joined] == [4]
    assert all(torch.equal(one, other) for one, other in zip(saved, joined, strict=True))


def test_a_run_goes_on_with_another_number_of_processes(tmp_path: Path) -> None:
    """A checkpoint does not know how many there were."""
    whole = trained("a stream", tmp_path / "one", One())

    def half(many: Processes) -> None:
        loop = loop_of("a stream", tmp_path / "run", many)
        loop.plan.steps = 3
        loop.plan.horizon = 6
        loop.train()

    together(2, half)
    loop = loop_of_resumed(tmp_path / "run", One())
    loop.train()
    assert_alike(whole["weights"], loop.model.state_dict())


def loop_of_resumed(place: Path, processes: Processes) -> Loop:
    config, task = prepared("a stream")
    model = build.make_model(config, task)
    loop = Loop(config, task, model, parts.freeze(model, []), RunDirectory(place), Quiet(), 0.0, processes)
    loop.resume()
    loop.plan.steps = 6
    return loop


class Blind(Loop):
    """One process of which some batches have no finite loss."""

    def _gradient(self, step: int) -> tuple[float, float]:
        self.blind = step in (2, 3) and self.processes.rank == 1
        return super()._gradient(step)

    def _forward(self, batch: Batch) -> Tensor:
        y = super()._forward(batch)
        return y * math.nan if self.blind else y


def test_what_is_not_finite_in_one_process_is_skipped_by_all(tmp_path: Path) -> None:
    def blinded(many: Many) -> tuple[Loop, dict[str, Tensor]]:
        config, task = prepared("a stream")
        torch.manual_seed(0)
        model = build.make_model(config, task)
        run = RunDirectory.create(tmp_path / "run") if many.rank == 0 else Unwritten(tmp_path / "run")
        loop = Blind(config, task, model, parts.freeze(model, []), run, Quiet(), 0.0, many)
        loop.train()
        return loop, model.state_dict()

    (first, one), (second, other) = together(2, blinded)
    events = [line["event"] for line in first.run.read_metrics() if "event" in line]
    assert [event.split(":")[0] for event in events] == ["batch 2", "batch 3"]
    assert first.at.step == second.at.step == 6
    assert all(torch.isfinite(one[name]).all() and torch.equal(one[name], other[name]) for name in one)


def test_whoever_is_asked_to_stop_stops_all(tmp_path: Path) -> None:
    class Asked(Loop):
        def _show(self, loss: float) -> None:
            self.stop.asked = self.at.step == 2 and self.processes.rank == 1

    def asked(many: Many) -> tuple[str, int]:
        config, task = prepared("a stream")
        model = build.make_model(config, task)
        run = RunDirectory.create(tmp_path / "run") if many.rank == 0 else Unwritten(tmp_path / "run")
        many.wait()
        with pytest.raises(Interrupted) as error:
            Asked(config, task, model, parts.freeze(model, []), run, Quiet(), 0.0, many).train()
        return str(error.value), RunDirectory(tmp_path / "run").last_step()

    assert all("stopped at step 3 and saved" in text for text, _ in together(2, asked))


def test_an_evaluation_that_one_process_gives_up_ends_in_all(tmp_path: Path) -> None:
    def given_up(many: Many) -> tuple[int, int]:
        loop = loop_of("classes of texts", tmp_path / "run", many)
        loop.stop.asked = many.rank == 1
        loop._look()
        return loop.at.looked, int(loop.asked)

    assert together(2, given_up) == [(-1, 1), (-1, 1)]


def test_figures_by_unit_are_those_of_one_process(tmp_path: Path) -> None:
    config, task = prepared("texts")
    torch.manual_seed(0)
    model = build.make_model(config, task)
    alone = Ledger(task.ranks_by.name)
    task.evaluate(model, "test", ledger=alone)

    def units(many: Many) -> dict[str, Tensor]:
        ledger = Ledger(task.ranks_by.name)
        with shared_by(many):
            task.evaluate(model, "test", ledger=ledger)
        return ledger.tensors()

    for found in together(3, units):
        assert_alike(alone.tensors(), found)


def test_a_process_that_no_row_is_left_for_changes_nothing() -> None:
    batch = Batch(torch.arange(3)[:, None], targets={"target": torch.arange(3)[:, None]})
    shares = together(4, lambda many: many.own(batch))
    assert [counts for _, counts in shares] == [False, True, True, True]
    assert torch.equal(torch.cat([own.x for own, counts in shares if counts]), batch.x)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"processes": 3}, "3 processes cannot share batches of 32 rows equally: use batch_size=30 or batch_size=33"),
        ({"processes": 40}, "40 processes cannot share batches of 32 rows equally: use batch_size=40"),
        ({"shard": True}, "shard=True divides a model between processes: add processes=2"),
    ],
)
def test_what_cannot_be_shared_is_refused_in_a_sentence(settings: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=text):
        unrolled.train(["some text"], out=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()


def test_a_process_without_data_is_refused() -> None:
    config, task = prepared("a stream", batch_size=8, length=100, processes=8)
    model = build.make_model(config, task)
    with pytest.raises(UsageError, match="8 processes are too many for this data, whose batches have 3 rows"):
        require_rows(config, sampler_of(config, task, model))


def test_a_model_that_moves_its_own_weights_is_refused() -> None:
    config = configure("word-vectors", "word2vec", ["a b c"], {"processes": 2})

    class Own(torch.nn.Module):
        def learn(self, batch: Batch, rate: float) -> tuple[float, int]:
            raise NotImplementedError

    with pytest.raises(UsageError, match="'word2vec' moves its own weights, example after example, which cannot be"):
        require_gradients(config, Own())


def test_a_process_that_ends_before_all_have_met_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_: object) -> None:
        crew.others[0].kill()
        threading.Event().wait()

    stub = SimpleNamespace(connected=connected, Here=lambda *_: None, of_order=None)
    monkeypatch.setattr(launching, "_distributed", lambda: stub)
    crew = Started(2, 1)
    with pytest.raises(LostProcess, match="process 1 of this run ended before it began"):
        crew.begin({"config": {"device": "cpu"}})
    crew.end()


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    monkeypatch.delitem(sys.modules, "unrolled.training.distributed", raising=False)
    with pytest.raises(UsageError, match=r"lightning_fabric is not installed; one run on several processes needs the"):
        Started(2, 1)
