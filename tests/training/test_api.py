"""`unrolled.train` takes what people have in hand: paths, lists, arrays, tensors, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
import torch

import unrolled
from unrolled.core.errors import UsageError

QUICK = {"steps": 4, "d_state": 8, "d_embedding": 4, "batch_size": 4, "length": 8, "threads": 1, "split": "80/20"}
TEXTS = [f"row {i} of {i * i}" for i in range(80)]
NUMBERS = np.arange(900) ** 2 % 17


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
def test_data_from_memory(data: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    run = unrolled.train(data, model="gru", out=tmp_path / "run", settings=QUICK | settings)
    again = unrolled.load(tmp_path / "run")
    condition = (again.task.labels or [None])[0]
    first, second = (each.generate("", condition=condition, max_tokens=5)[0] for each in (run, again))
    assert first == second
    with pytest.raises(UsageError, match="memory"):
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
    assert run.evaluate(tmp_path / "other.txt")["tokens"] > 0
    assert run.evaluate_baselines(tmp_path / "other.txt") == {}
