"""A saved run is evaluated by what was fitted in training; data that has changed since is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError
from unrolled.data import labelled_prepare
from unrolled.data.files.text_file import TextFile
from unrolled.runs.run import Run, load

SMALL = {"threads": 1, "steps": 2, "batch_size": 8, "warmup": 1}


def reviews(folder: Path, n: int = 60) -> Path:
    words = ["good", "bad", "odd"]
    lines = [f"{words[i % 3]} film number {i},{words[i % 3]}" for i in range(n)]
    path = folder / "reviews.csv"
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def tagged(folder: Path) -> Path:
    path = folder / "words.conll"
    path.write_text("\n\n".join(f"the D\nthing{i} N\nfalls V" for i in range(40)) + "\n", encoding="utf-8")
    return path


def series(folder: Path, answers: str) -> Path:
    random = np.random.default_rng(0)
    x = random.normal(3, 2, (40, 6)).astype(np.float32)
    y = x.mean(1) if answers == "numbers" else x - random.normal(1, 1, x.shape).astype(np.float32)
    np.savez(folder / "series.npz", x=x, y=y)
    return folder / "series.npz"


def text(folder: Path) -> Path:
    path = folder / "text.txt"
    path.write_text("the state is carried from chunk to chunk. " * 60, encoding="utf-8")
    return path


def pairs(folder: Path) -> Path:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"one{i}\ttwo{i}\n" for i in range(40)), encoding="utf-8")
    return path


CASES: dict[str, tuple[Callable[[Path], Path], str, dict[str, Any]]] = {
    "classify": (reviews, "naive-bayes", {"tokens": "word"}),
    "tag": (tagged, "tag-counts", {}),
    "regress": (lambda folder: series(folder, "numbers"), "prior", {}),
    "denoise": (lambda folder: series(folder, "series"), "gru", {"model.d_state": 4}),
    "next-token": (text, "ngram", {}),
    "translate": (pairs, "dictionary", {}),
}


@pytest.mark.parametrize("task", CASES)
def test_the_same_data_gives_the_figures_of_training(task: str, tmp_path: Path) -> None:
    make, model, settings = CASES[task]
    path = make(tmp_path)
    unrolled.train(path, task=task, model=model, out=tmp_path / "run", settings=SMALL | settings)
    again = load(tmp_path / "run", trained_on=path)
    split = "test" if "test" in again.result else "valid"
    assert again.evaluate() == pytest.approx(again.result[split], rel=1e-5)
    assert again.evaluate_baselines().keys() == again.result["baselines"].keys()


@pytest.mark.parametrize("task", CASES)
def test_data_that_has_changed_is_refused(task: str, tmp_path: Path) -> None:
    make, model, settings = CASES[task]
    path = make(tmp_path)
    unrolled.train(path, task=task, model=model, out=tmp_path / "run", settings=SMALL | settings)
    if path.suffix == ".npz":
        arrays = dict(np.load(path))
        arrays["y"][0] += 1
        np.savez(path, **arrays)
    else:
        lines = path.read_text(encoding="utf-8").splitlines()
        more = {".csv": "a new one,awful", ".tsv": "a\tb", ".conll": "\nso ADV"}.get(path.suffix, "more of it")
        path.write_text("\n".join([*lines, more]) + "\n", encoding="utf-8")
    again = load(tmp_path / "run", trained_on=path)
    with pytest.raises(DataError, match="the data has changed since training"):
        again.evaluate()
    assert again.evaluate_baselines() == {}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    settings = SMALL | {"tokens": "word"}
    return unrolled.train(reviews(folder), task="classify", model="naive-bayes", out=folder / "run", settings=settings)


def test_the_data_is_read_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    once = labelled_prepare.scan_examples
    monkeypatch.setattr(labelled_prepare, "scan_examples", lambda *given: (read.append(1), once(*given))[1])
    again = load(run.path, trained_on=run.trained_on)
    again.evaluate()
    again.evaluate_baselines()
    again.evaluate(split="valid")
    assert len(read) == 1


def test_other_data_with_a_new_class_is_measured_by_the_classes_of_training(run: Run, tmp_path: Path) -> None:
    """The new class stands before the others by name, which must not move them."""
    path = tmp_path / "other.csv"
    path.write_text("label,text\nawful,awful film\ngood,good film\nbad,bad film\nodd,odd film\n", encoding="utf-8")
    told = json.loads(run_unrolled("evaluate", run.path, path, "--trained-on", run.trained_on, "--json").stdout)
    assert (told["error"], told["unseen_targets"], told["tokens"]) == (0.25, 1, 4)
    assert told["baselines"]


@pytest.mark.parametrize("task", ["classify", "regress", "next-token", "translate"])
def test_other_data_is_read_once_for_the_run_and_its_baselines(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, model, settings = CASES[task]
    data = make(tmp_path)
    unrolled.train(data, task=task, model=model, out=tmp_path / "run", settings=SMALL | settings)
    (tmp_path / "other").mkdir()
    other = make(tmp_path / "other")
    again, opened = load(tmp_path / "run", trained_on=data), []
    once = TextFile.open
    monkeypatch.setattr(TextFile, "open", lambda file: (opened.append(file.path), once(file))[1])
    for _ in range(2):  # prepared texts are kept, so that the second time less is read
        opened.clear()
        again.evaluate(other)
    alone = opened.count(other)
    opened.clear()
    figures, baselines = again.evaluate_beside(other)
    assert opened.count(other) == alone > 0
    assert figures == again.evaluate(other)
    assert baselines == again.evaluate_baselines(other) != {}


def test_the_command_measures_the_run_beside_its_baselines(run: Run, tmp_path: Path) -> None:
    path = reviews(tmp_path)
    told = json.loads(run_unrolled("evaluate", run.path, path, "--trained-on", path, "--json").stdout)
    again = load(run.path, trained_on=run.trained_on)
    assert told.pop("baselines") == again.evaluate_baselines(path) != {}
    assert told == again.evaluate(path)
    alone = run_unrolled("evaluate", run.path, path).stdout
    assert "No baselines: they are fitted on the training data of this run; name it with --trained-on" in alone


def test_the_data_that_a_run_names_is_not_opened_by_that(run: Run, tmp_path: Path) -> None:
    refused = run_unrolled("evaluate", run.path, code=3).stderr
    assert f"unrolled evaluate {run.path} --trained-on {run.trained_on}" in refused
    assert "tokens" in json.loads(run_unrolled("evaluate", run.path, "--trained-on", run.trained_on, "--json").stdout)
    other = reviews(tmp_path, 50)
    assert "has changed" in run_unrolled("evaluate", run.path, "--trained-on", other, code=3).stderr
