"""Runs combined: what is selected, what is saved, and that none is worse on validation data than its best member."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import unrolled
from tests.small import DATA, QUICK
from tests.thorough import every
from unrolled.core import discover
from unrolled.core.forward import forward
from unrolled.core.spec import misfit
from unrolled.runs import build
from unrolled.runs.run import load
from unrolled.training.api import configure
from unrolled.training.ensemble import Mixture, NoneBetter, combine
from unrolled.training.together import join


def text() -> list[str]:
    """Letters that follow the last one or the one five before, by turns: a bigram and a 6-gram know half each."""
    random.seed(0)
    found = list("abcde")
    for i in range(12_000):
        far = found[-5] if i % 3 else "abcdefgh"[("abcdefgh".index(found[-1]) + 1) % 8]
        found.append(far if random.random() < 0.8 else random.choice("abcdefgh"))
    return ["".join(found)]


# in this order
SIMPLE = (
    "elman",
    "memoryless",
    "bert",
    "transformer-encoder",
    "seq2seq",
    "encdec-transformer",
    "encdec",
    "bigru",
)


def train(data, task, model, out, **settings):
    return unrolled.train(data, task, model, out=out, settings={"threads": 1, **settings}, baselines={})


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """A network that saw little, and two that count."""
    folder, data = tmp_path_factory.mktemp("runs"), text()
    settings = {"examples": "stream", "split": "70/15/15"}
    return {
        "elman": train(data, "next-token", "elman", folder / "elman", steps=60, lr=0.01, **settings).path,
        "bigram": train(data, "next-token", "ngram", folder / "bigram", order=2, **settings).path,
        "five": train(data, "next-token", "ngram", folder / "five", order=6, **settings).path,
    }


@pytest.fixture(scope="module")
def combined(runs, tmp_path_factory):
    return combine([*runs.values()], text(), tmp_path_factory.mktemp("together") / "ensemble")


def test_it_is_better_on_validation_data_than_each_alone(runs, combined):
    alone = {name: load(path).result["valid"]["nats"] for name, path in runs.items()}
    assert combined.result["valid"]["nats"] < min(alone.values())
    assert combined.result["test"]["nats"] < min(load(path).result["test"]["nats"] for path in runs.values())
    weights = combined.result["weights"]
    assert sum(weights.values()) == pytest.approx(1, abs=1e-3) and len(weights) >= 2
    assert set(weights) <= set(runs)


def test_it_is_a_run_that_means_the_mixture(runs, combined):
    opened = load(combined.path)
    assert [member.run for member in opened.config.ensemble] == [*combined.result["weights"]]
    assert "ensemble of" in opened.config.title and "ensemble of" in (combined.path / "README.md").read_text()
    batch, _ = opened.task.example("abcdeabc")
    p = forward(opened.model, batch)[0].softmax(-1)
    parts = [load(runs[member.run]) for member in opened.config.ensemble]
    own = sum(m.weight * forward(r.model, batch)[0].softmax(-1) for m, r in zip(opened.config.ensemble, parts))
    torch.testing.assert_close(p, own)
    assert opened.generate("abc", max_tokens=5, seed=1)[0]["text"]
    assert opened.evaluate([text()[0][:500]])["nats"] > 0


def test_what_helps_nothing_is_not_combined(runs, tmp_path):
    with pytest.raises(NoneBetter, match="no combination is better than five on validation data"):
        combine([runs["five"], runs["five"]], text(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_weights_move_towards_a_run():
    assert Mixture({0: 1.0}, 0.0).towards(1, 0.25) == {0: 0.75, 1: 0.25}
    assert Mixture({0: 0.5, 1: 0.5}, 0.0).towards(1, 0.5) == {0: 0.25, 1: 0.75}


def rows(n: int) -> list[dict[str, str]]:
    """Classes that words and their order give away, each in part."""
    random.seed(1)
    found = []
    for _ in range(n):
        y = random.random() < 0.5
        words = [random.choice("of the in to and".split()) for _ in range(5)]
        if random.random() < 0.6:
            words.insert(random.randrange(6), random.choice(["good", "fine"] if y else ["bad", "poor"]))
        elif random.random() < 0.8:
            words[:2] = ["not", "so"] if y else ["so", "not"]
        found.append({"text": " ".join(words), "label": "yes" if y else "no"})
    return found


def test_a_comparison_has_a_row_for_it(tmp_path):
    settings = {"models": "elman", "steps": 60, "lr": 0.01, "threads": 1, "examples": "stream", "split": "70/15/15"}
    found = unrolled.compare(text(), "next-token", out=tmp_path / "out", settings=settings)
    table = {row["label"]: row for row in found.table["rows"]}
    assert table["ensemble"]["kind"] == "ensemble" and found.table["selected"] == "ensemble"
    assert table["ensemble"]["valid"] < min(row["valid"] for label, row in table.items() if label != "ensemble")
    assert load(tmp_path / "out").config.ensemble
    assert (tmp_path / "out" / "report.html").read_text().count("ensemble") > 1
    settings |= {"ensemble": False, "steps": 2}
    found = unrolled.compare(text(), "next-token", out=tmp_path / "none", settings=settings)
    assert "ensemble" not in {row["label"] for row in found.table["rows"]}


@pytest.mark.long
def test_folds_are_combined_by_what_they_have_not_seen(tmp_path):
    settings = {"models": "bigru,dan", "steps": 30, "threads": 1, "tokens": "word", "folds": 2}
    found = unrolled.compare(rows(300), "classify", out=tmp_path / "out", settings=settings)
    assert not any(row["failed"] for row in found.table["rows"])
    run = load(tmp_path / "out" / "ensemble")
    assert len(run.result["folds"]) == 2 and "left_out" in run.result
    assert run.predict(["not so good"])[0]["prediction"] in ("yes", "no")


@pytest.mark.parametrize("label", every(4, DATA))
def test_models_of_every_task_are_combined_where_it_says_so(label, tmp_path):
    name, data, settings = DATA[label]
    if not discover.tasks.load(name).Task.MIXES:
        assert name in ("recall", "word-vectors")
        return
    task = build.make_task(configure(name, None, data, QUICK | settings))
    task.prepare(data)
    asks = task.ports().asks(task.asks().accepts)
    models = [each for each in SIMPLE if misfit(discover.model(each), asks) is None][:2]
    assert len(models) == 2
    runs = []
    for model in models:
        own = {f"model.{key}": value for key, value in discover.model(model).tiny.model_dump().items()}
        runs.append(train(data, name, model, tmp_path / model, **QUICK, **settings, **own).path)
    with suppress(NoneBetter):
        run = combine(runs, data, tmp_path / "both")
        assert load(run.path).evaluate(data)


def test_folds_of_different_sizes_are_joined(tmp_path):
    settings = {"steps": 3, "tokens": "word", "split": "60/20/20", "task.reading.fold.of": 2}
    paths = [
        train(
            rows(120),
            "classify",
            "dan",
            tmp_path / f"fold-{k}",
            d_hidden=8 + k,
            **settings,
            **{"task.reading.fold.number": k},
        ).path
        for k in range(2)
    ]
    run = join(paths, rows(120), tmp_path / "both")
    assert [member.model_settings["d_hidden"] for member in run.config.ensemble] == [8, 9]
    assert run.result["parameters"] == sum(load(path).result["parameters"] for path in paths)
    batch, _ = run.task.example("good of the")
    p = [forward(load(path).model, batch)[0].softmax(-1) for path in paths]
    run.task.temperature = 1.0
    torch.testing.assert_close(forward(run.model, batch)[0].softmax(-1), (p[0] + p[1]) / 2)
