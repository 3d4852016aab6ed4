"""The regress task: figures in the user's units by brute force, saved runs, several numbers, losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unrolled
from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError
from unrolled.data.examples import INPUT
from unrolled.runs.guess import guess_task
from unrolled.runs.run import Run

QUICK = {"steps": 120, "d_state": 16, "d_embedding": 8, "batch_size": 32, "lr": 0.01, "warmup": 2, "threads": 1}
MAXIMUM = "builtin:maximum,length=8,examples=400"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("maximum") / "run"
    return unrolled.train(MAXIMUM, task="regress", model="gru", out=out, settings=QUICK)


def held_out(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """True numbers and predictions of the test part, example by example, in the user's units."""
    run.task.prepare(MAXIMUM)
    section = run.task.prepared.sections["test"]
    x = [run.task.inputs.decode(section.at(INPUT, i)) for i in range(section.n_examples)]
    y = np.array([line["prediction"] for line in run.predict([list(series[:, 0]) for series in x])])
    return np.array([series.max() for series in x]), y


def test_figures_are_in_the_users_units(run: Run) -> None:
    truth, said = held_out(run)
    error = said - truth
    figures = run.evaluate(split="test")
    assert figures["tokens"] == len(truth)
    assert figures["mse"] == pytest.approx(np.square(error).mean(), rel=1e-4)
    assert figures["rmse"] == pytest.approx(np.sqrt(np.square(error).mean()), rel=1e-4)
    assert figures["mae"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    assert figures["r2"] == pytest.approx(1 - np.square(error).sum() / np.square(truth - truth.mean()).sum(), rel=1e-4)
    assert run.result["test"] == pytest.approx(figures, rel=1e-5)
    units = run.directory.read_tensors("units.safetensors")
    assert float(torch.div(*units["test.mse"].sum(0))) == pytest.approx(figures["mse"], rel=1e-6)
    np.testing.assert_allclose(units["test.mse"][:, 0].numpy(), np.square(error), atol=1e-6)


def test_it_learns_and_the_baseline_is_the_mean(run: Run) -> None:
    truth, _ = held_out(run)
    train = run.task.prepared.sections["train"]
    mean = run.task.answers.decode(train.values(TARGET)).mean()
    baseline = run.result["baselines"]["mean"]["test"]
    assert baseline["mse"] == pytest.approx(np.square(truth - mean).mean(), rel=1e-4)
    assert run.result["test"]["mse"] < 0.5 * baseline["mse"]


def test_a_saved_run_is_the_same_run(run: Run) -> None:
    again = unrolled.load(run.path)
    assert again.evaluate(MAXIMUM)["tokens"] == 400
    assert again.evaluate(split="test") == pytest.approx(run.result["test"], rel=1e-6)
    assert again.predict(["0.1 0.9, 0.3"]) == run.predict([[0.1, 0.9, 0.3]])
    with pytest.raises(DataError, match="example 2: found 'x', expected a number"):
        again.predict(["0.1", "0.1 x"])


def test_lines_and_pictures(run: Run) -> None:
    lines = list(run.directory.read_lines("predictions.jsonl"))
    assert lines[0]["target"] == pytest.approx(max(row[0] for row in lines[0]["input"]), abs=1e-5)
    assert lines[0]["error"] == pytest.approx((lines[0]["prediction"] - lines[0]["target"]) ** 2, rel=1e-3, abs=1e-9)
    cloud = run.directory.read_json("figures/predicted.json")["series"][0]
    assert np.mean(np.square(np.subtract(cloud["x"], cloud["y"]))) == pytest.approx(run.result["test"]["mse"])
    assert np.std(run.directory.read_json("figures/residuals.json")["series"][0]["y"]) < np.std(cloud["x"])


def test_several_numbers_of_a_text(tmp_path: Path) -> None:
    """How many a and b: in two very different units, of which the score is the plain mean."""
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("abc"), 6)) for _ in range(80)]
    rows: list[dict[str, Any]] = [{"text": t, "a": t.count("a"), "b": 1000.0 * t.count("b")} for t in texts]
    settings = QUICK | {"steps": 3, "target": "a,b", "split": "60/20/20"}
    made = unrolled.train(rows, task="regress", model="dan", out=tmp_path / "run", settings=_dan(settings))
    lines = list(made.directory.read_lines("predictions.jsonl"))
    errors = [np.subtract(line["prediction"], line["target"]) for line in lines]
    assert made.result["test"]["mse"] == pytest.approx(np.square(errors).mean(), rel=1e-4)
    residuals = made.directory.read_json("figures/residuals.json")
    assert [series["name"] for series in residuals["series"]] == ["a", "b"]
    assert made.predict(["abba"])[0]["prediction"] == pytest.approx(made.predict(["abba", "c"])[0]["prediction"])


def _dan(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != "d_state"}


@pytest.mark.parametrize(("name", "wanted"), [("l2", 4.25), ("l1", 2.5), ("huber", 1.625)])
def test_losses(run: Run, name: str, wanted: float) -> None:
    task = type(run.task)(run.task.config.updated({"loss": name}), run.task.data)
    task.answers = run.task.answers
    y = torch.tensor([[[0.5]], [[2.0]]])
    total, count = task.loss(y, _Batch())
    assert (float(total), int(count)) == (wanted, 2)


class _Batch:
    y = torch.zeros(2, 1)


def test_numbers_are_guessed() -> None:
    assert guess_task("builtin:adding", {})[0] == "regress"
    assert guess_task([{"text": f"a{i}", "y": i + 0.5} for i in range(40)], {"column": "text"})[0] == "regress"
