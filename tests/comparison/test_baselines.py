"""A baseline of a comparison, of a run, and a run of the same model alone are one and the same, for every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unrolled
from tests.thorough import every
from unrolled.comparison.plan import baseline_jobs
from unrolled.comparison.worker import perform
from unrolled.core import discover
from unrolled.runs import closed_form
from unrolled.runs.build import make_task
from unrolled.training.api import configure
from unrolled.training.progress import Quiet

LIMIT = 40  # tokens; every source has more
WORDS = "a bad cat did eat five good hats in june".split()


def texts(n: int = 60) -> list[dict[str, str]]:
    """Sorted by class, as files often are; of unlike lengths."""
    random = np.random.default_rng(0)
    made = [" ".join(random.choice(WORDS, random.integers(3, 20))) for _ in range(n)]
    return [{"text": text, "label": "good" if i < n // 2 else "bad"} for i, text in enumerate(made)]


def sources(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Data of every task that can be made in a moment."""
    random = np.random.default_rng(0)
    rolls = {part: [random.integers(0, 2, (12, 5)) for _ in range(4)] for part in ("train", "valid", "test")}
    np.savez(folder / "rolls.npz", **{part: np.array(each, dtype=np.uint8) for part, each in rolls.items()})
    tagged = "\n\n".join("\n".join(f"{w} {w[0]}" for w in random.choice(WORDS, 6)) for _ in range(60))
    (folder / "tagged.conll").write_text(tagged + "\n")
    return {
        "next-token": ([row["text"] for row in texts()], {}),
        "masked-token": ([row["text"] for row in texts()], {}),
        "word-vectors": ([row["text"] for row in texts()], {"min_count": 1}),
        "next-frame": (str(folder / "rolls.npz"), {}),
        "handwriting": ([[[0, 0, 0], [i, 1, 0], [1, i, 1], [2, 2, 1]] for i in range(60)], {"n_mixtures": 2}),
        "classify": (texts(), {"column": "text", "target": "label", "task.class_weights": 0.5}),
        "regress": ("builtin:maximum,length=8,examples=60", {}),
        "tag": (str(folder / "tagged.conll"), {}),
        "denoise": ("builtin:sinusoids,length=20,examples=40", {}),
        "translate": ("builtin:reversal,length=5,examples=60", {}),
        "caption": ("builtin:shapes,examples=40", {}),
    }  # fmt: skip


OTHERS = ("recognise", "forecast", "recall")


@pytest.mark.parametrize("task", every(4, [name for name in discover.tasks.names() if name not in OTHERS]))
def test_compare_and_train_fit_the_same_baselines(task, tmp_path, monkeypatch):
    """`recognise` has those of `caption`, those of `forecast` and `recall` have nothing to fit. With more data than the
    limit all take the same part of it, and say so."""
    monkeypatch.setattr(closed_form, "TOKENS", LIMIT)
    data, own = sources(tmp_path)[task]
    settings = {"split": "60/20/20", "threads": 1} | own if task not in ("next-frame", "translate", "caption") else {
        "threads": 1} | own  # fmt: skip
    prepared = make_task(configure(task, None, data, settings))
    prepared.prepare(data)
    jobs = {job.label: job for job in baseline_jobs(prepared)}
    assert jobs
    for label, job in jobs.items():
        order = {"out": str(tmp_path / job.folder), "data": data, "task": task, "model": job.model, "own_file": None,
                 "settings": settings | job.settings, "baselines": {}}  # fmt: skip
        events: list[dict[str, Any]] = []
        perform(order, data, events.append)
        assert events[-1]["event"] == "done", events
        compared = unrolled.load(tmp_path / job.folder)
        alone = unrolled.train(data, task, job.model, out=tmp_path / "alone" / job.folder,
                               settings=settings | job.settings)  # fmt: skip
        for name, table in compared.model.state_dict().items():
            assert torch.equal(table, alone.model.state_dict()[name]), (label, name)
        assert compared.result["test"] == alone.result["test"] == alone.result["baselines"][label]["test"]
        assert compared.result["steps"] == 0
        assert any("train_tokens" in note for note in alone.result["notes"])


def test_of_much_sorted_data_every_class_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(closed_form, "TOKENS", 400)
    settings = {"split": "60/20/20", "threads": 1, "column": "text", "target": "label"}
    run = unrolled.train(texts(), "classify", "prior", out=tmp_path / "run", settings=settings)
    [p] = {tuple(round(float(q), 3) for q in row.softmax(-1)[:2]) for row in run.model.body.answer[None]}
    assert min(p) > 0.3
    assert "classify" not in run.result["notes"][0] and "prior was fitted to" in run.result["notes"][0]


def test_what_was_chosen_is_told_and_kept(tmp_path):
    settings = {"split": "60/20/20", "threads": 1, "column": "text", "target": "label"}
    quiet = Quiet()
    run = unrolled.train(texts(), "classify", "logistic", out=tmp_path / "run", settings=settings, progress=quiet)
    strength = run.result["chosen"]["regularisation"]
    note = f"logistic: regularisation = {strength}, chosen on validation data"
    assert note in run.result["notes"] and f"note: {note}" in quiet.said
    fixed = unrolled.train(texts(), "classify", "logistic", out=tmp_path / "fixed",
                           settings=settings | {"regularisation": strength})  # fmt: skip
    assert fixed.result["chosen"] == {} and fixed.result["notes"] == []
    torch.testing.assert_close(fixed.model.body.weight, run.model.body.weight, rtol=0, atol=0)


def test_with_folds_the_choice_reads_no_fold_that_is_scored(tmp_path):
    settings = {"split": "60/20/20", "threads": 1, "column": "text", "target": "label",
                "task.reading.fold.of": 2, "task.reading.fold.number": 0}  # fmt: skip
    run = unrolled.train(texts(), "classify", "naive-bayes", out=tmp_path / "run", settings=settings)
    assert run.result["notes"][0].endswith("chosen on a share of the training data")
