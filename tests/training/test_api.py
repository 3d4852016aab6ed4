"""`unrolled.train` takes what people have in hand: paths, lists, arrays, tensors, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch
from torch import nn

import unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.core.task import Given
from unrolled.decode.config import Decoding
from unrolled.training import api
from unrolled.training.progress import Quiet

QUICK = {"steps": 4, "d_state": 8, "d_embedding": 4, "batch_size": 4, "length": 8, "threads": 1, "split": "80/20"}
TEXTS = [f"row {i} of {i * i}" for i in range(80)]
NUMBERS = np.arange(900) ** 2 % 17


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> list[nn.Module]:
    """The models that were trained, as they were before they were saved."""
    kept: list[nn.Module] = []
    finish = api.finish

    def keep(run: Any, config: Any, task: Any, model: nn.Module, *others: Any) -> None:
        kept.append(model)
        finish(run, config, task, model, *others)

    monkeypatch.setattr(api, "finish", keep)
    return kept


SAVED: dict[str, tuple[Any, dict[str, Any]]] = {
    "gru": (TEXTS, QUICK),
    "ngram": (TEXTS, {"threads": 1, "split": "80/20", "order": 2}),
    "bigru": ([{"text": text, "label": "ab"[i % 2]} for i, text in enumerate(TEXTS)], QUICK | {"target": "label"}),
    "seq2seq": ("builtin:reversal,length=4,examples=60", {"steps": 3, "d_state": 8, "d_embedding": 4, "threads": 1}),
}


@pytest.mark.parametrize("model", SAVED)
def test_a_saved_run_is_the_model_that_was_trained(model: str, tmp_path: Path, in_memory: list[nn.Module]) -> None:
    data, settings = SAVED[model]
    task = {"bigru": "classify", "seq2seq": "translate"}.get(model)
    run = unrolled.train(data, task, model, out=tmp_path / "run", settings=settings)
    [trained] = in_memory
    for loaded in (run.model, unrolled.load(tmp_path / "run").model):
        assert loaded is not trained
        there = loaded.state_dict()
        assert there.keys() == trained.state_dict().keys()
        for name, tensor in trained.state_dict().items():
            assert torch.equal(there[name], tensor), name


def test_what_the_sampler_could_not_do_is_told_and_kept(tmp_path: Path) -> None:
    quiet = Quiet()
    run = unrolled.train(TEXTS, model="gru", out=tmp_path / "run", settings=QUICK | {"batch_size": 500}, progress=quiet)
    [note] = [note for note in run.result["notes"] if "batch size" in note]
    assert note == "the batch size is 64 instead of 500: there are no more examples"
    assert quiet.said.count(f"note: {note}") == 1
    assert f"- {note}" in (tmp_path / "run" / "README.md").read_text()
    stream = unrolled.train(["one long text, " * 90], model="gru", out=tmp_path / "stream",
                            settings=QUICK | {"batch_size": 500, "examples": "stream"})  # fmt: skip
    assert any("too few for more rows" in note for note in stream.result["notes"])


@pytest.mark.parametrize(("data", "settings"), [
    (TEXTS, {}),
    (tuple(TEXTS), {}),
    (["one long text, " * 90], {"examples": "stream"}),
    (np.array(TEXTS), {}),
    (NUMBERS, {}),
    (torch.from_numpy(NUMBERS), {}),
    (polars.DataFrame({"text": TEXTS, "kind": ["even", "odd"] * 40}), {"condition": "kind", "column": "text"}),
    ([{"text": text, "kind": "ab"[i % 2]} for i, text in enumerate(TEXTS)], {"condition": "kind"}),
], ids=["list", "tuple", "stream", "strings", "numbers", "tensor", "frame", "records"])  # fmt: skip
def test_data_from_memory(data: Any, settings: dict[str, Any], tmp_path: Path, in_memory: list[nn.Module]) -> None:
    unrolled.train(data, model="gru", out=tmp_path / "run", settings=QUICK | settings)
    again = unrolled.load(tmp_path / "run")
    condition = (again.task.labels or [None])[0]
    prompt, asked = Given("", condition), Decoding(max_tokens=5)
    first, second = (again.task.generate(model, prompt, asked)[0] for model in (in_memory[0], again.model))
    assert first == second
    with pytest.raises(DataError, match="memory"):
        again.evaluate()


def test_the_same_data_again_measures_the_same(tmp_path: Path) -> None:
    run = unrolled.train(TEXTS, out=tmp_path / "run", settings=QUICK)
    whole = run.evaluate(TEXTS)
    assert whole["tokens"] == sum(len(text) + 1 for text in TEXTS)
    assert run.evaluate(TEXTS) == whole


def test_a_text_in_place_of_a_path_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\[text\]"):
        unrolled.train("line one\nline two\n" * 50, out=tmp_path / "run", settings=QUICK)


def test_names_are_found_for_runs_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poem.txt").write_text("so it goes, and so it went\n" * 40)
    paths = [unrolled.train("poem.txt", settings=QUICK).path for _ in range(2)]
    assert [str(path) for path in paths] == ["runs/lstm-poem", "runs/lstm-poem-2"]


def test_baselines_can_be_measured_on_other_data(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("so it goes, and so it went\n" * 60)
    (tmp_path / "other.txt").write_text("so it went, and so it goes\n" * 5)
    run = unrolled.train(tmp_path / "text.txt", out=tmp_path / "run", settings=QUICK)
    found = run.evaluate_baselines(tmp_path / "other.txt")
    assert list(found) == ["unigram", "bigram", "trigram", "6-gram"]
    assert found["trigram"]["nats"] < found["unigram"]["nats"]
    own = run.evaluate_baselines()
    assert own["bigram"]["nats"] == pytest.approx(run.result["baselines"]["bigram"]["valid"]["nats"])
    (tmp_path / "text.txt").unlink()
    again = unrolled.load(tmp_path / "run", trained_on=tmp_path / "text.txt")  # which has not read it
    assert again.evaluate(tmp_path / "other.txt")["tokens"] > 0
    assert again.evaluate_baselines(tmp_path / "other.txt") == {}
