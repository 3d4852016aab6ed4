"""Runs from other machines and releases, and runs whose outputs are not finite."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.run import load
from unrolled.runs.storage.directory import RunDirectory

TEXTS = [f"the cat sat {i}" for i in range(40)]
TINY: dict[str, Any] = {"steps": 1, "threads": 1, "d_state": 4, "d_embedding": 4, "batch_size": 2, "length": 4}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    return unrolled.train(TEXTS, model="elman", out=folder / "run", settings=TINY).path


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> RunDirectory:
    shutil.copytree(trained, tmp_path / "run")
    return RunDirectory.open(tmp_path / "run")


def change(run: RunDirectory, values: dict[str, Any]) -> None:
    run.write_json("config.json", run.read_json("config.json") | values)


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "mps", "xla"])
def test_a_run_from_another_machine_is_read_to_the_processor(copy: RunDirectory, trained: Path, device: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has one")
    change(copy, {"device": device})
    found = load(copy.path)
    assert found.config.device == "cpu"
    assert found.score(TEXTS[:3]) == load(trained).score(TEXTS[:3])
    (copy.path / "result.json").unlink()
    with pytest.raises(DataError, match=f"was trained on {device}, which this machine does not have"):
        unrolled.train(resume=copy.path, data=TEXTS)


@pytest.mark.parametrize("device", ["meta", "nonsense", "cuda:99"])
def test_a_device_that_is_asked_for_must_be_there(trained: Path, device: str) -> None:
    with pytest.raises(UsageError, match=f"the device '{device}' cannot be used here"):
        load(trained, device=device)


@pytest.mark.parametrize("where", ["", "data", "optimiser", "model_settings", "task_settings"])
def test_a_setting_of_a_later_release_is_told_as_such(copy: RunDirectory, where: str) -> None:
    config = copy.read_json("config.json")
    (config[where] if where else config)["flux"] = 1
    copy.write_json("config.json", config)
    with pytest.raises(DataError, match="there is no setting") as now:
        load(copy.path)
    assert "later release" not in str(now.value)
    copy.write_json("config.json", config | {"versions": {**config["versions"], "unrolled": "99.1"}})
    with pytest.raises(DataError, match=r"written by a later release \(unrolled 99\.1, this is .*update unrolled"):
        load(copy.path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_outputs_that_are_not_finite_are_refused(copy: RunDirectory, value: float) -> None:
    tensors = copy.read_tensors("model.safetensors")
    head = next(name for name in sorted(tensors) if tensors[name].dim() == 1 and len(tensors[name]) > 4)
    tensors[head][1] = value
    copy.write_tensors("model.safetensors", tensors)
    run = load(copy.path)
    for act in (
        lambda: run.predict(TEXTS[:2]),
        lambda: run.score(TEXTS[:2]),
        lambda: run.evaluate(TEXTS),
        lambda: run.generate("the", max_tokens=4),
        lambda: run.generate("the", beam=2, max_tokens=4),
        lambda: list(run.stream("the", max_tokens=4)),
        lambda: run.inspect("surprise", "the cat"),
    ):
        with pytest.raises(DataError, match="not finite"):
            act()
