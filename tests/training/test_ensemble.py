"""Runs combined: what is selected, what is saved, and that none is worse on validation data than its best member."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import unrolled
from tests.small import DATA, QUICK
from tests.thorough import every
from unrolled.core import discover
from unrolled.core.forward import forward
from unrolled.core.spec import misfit
from unrolled.emissions.categorical import Categorical
from unrolled.layers.parts.gate import certainty
from unrolled.runs import build
from unrolled.runs.run import load
from unrolled.training import ensemble, gating
from unrolled.training.api import configure
from unrolled.training.ensemble import NoneBetter, combine
from unrolled.training.member_search import Mixture
from unrolled.training.together import join


def text() -> list[str]:
    """Letters that follow the last one, where it is a, b or d, and otherwise the one five before: what a bigram and a
    6-gram know."""
    random.seed(0)
    found = list("abcde")
    for _ in range(16_000):
        last = found[-1]
        next_one = "abcdefgh"[("abcdefgh".index(last) + 1) % 8] if last in "abd" else found[-5]
        found.append(next_one if random.random() < 0.8 else random.choice("abcdefgh"))
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
    settings = {"examples": "stream", "split": "60/20/20"}
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
    each = torch.stack([forward(run.model, batch)[0].softmax(-1) for run in parts])  # [K, 1, T, V]
    base = torch.tensor([member.weight for member in opened.config.ensemble])
    w = opened.model.mix.log_weights(certainty(each.log()), base).exp().detach()  # [1, T, K]
    torch.testing.assert_close(w.sum(-1), torch.ones(w.shape[:-1]))
    assert float(w[0, :, 0].max() - w[0, :, 0].min()) > 0.05
    torch.testing.assert_close(p, torch.einsum("btk,kbtv->btv", w, each))
    assert opened.generate("abc", max_tokens=5, seed=1)[0]["text"]
    assert opened.evaluate([text()[0][:500]])["nats"] > 0


def test_weights_of_each_position_are_better_than_constant_ones(combined):
    """On validation data, and here on test data too."""
    opened = load(combined.path, trained_on=text())
    assert opened.config.combine == "gate"
    constant = build.make_model(opened.config.model_copy(update={"combine": "mixture"}), opened.task)
    constant.members.load_state_dict(opened.model.members.state_dict())
    opened.task.prepare(text())
    for split in ("valid", "test"):
        before, after = (opened.task.evaluate(model, split)["nats"] for model in (constant, opened.model))
        assert after == pytest.approx(combined.result[split]["nats"])
        assert after < before - 0.001
    assert f"{after:.4g} nats" not in combined.result["notes"][0]  # which is about validation data
    assert f"{combined.result['valid']['nats']:.4g} nats on validation data" in combined.result["notes"][0]


def test_what_each_member_brings_is_kept(combined):
    members = combined.result["members"]
    assert [each["run"] for each in members] == [*combined.result["weights"]]
    for each in members:
        assert each["with"] < min(each["alone"], each["without"])
    assert sum(each["cost"] for each in members) == pytest.approx(1, abs=1e-3)
    if len(members) == 2:
        assert members[0]["without"] == pytest.approx(members[1]["alone"])


def test_it_is_written_token_by_token_as_it_is_scored(combined):
    """Its state is that of the members: in one call or in chunks, the same."""
    opened = load(combined.path)
    batch, _ = opened.task.example("abcdeabcdeabc")
    whole = forward(opened.model, batch)[0]
    state, pieces = None, []
    for x in batch.x.split(1, dim=1):
        y, state = opened.model(x, state)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), whole)


def test_a_gate_needs_certainty_that_tells_something(monkeypatch):
    random_numbers, n = torch.Generator().manual_seed(0), 4000
    sure = torch.rand(n, generator=random_numbers, dtype=torch.double)  # of the first: then it is right
    c = torch.stack([sure.log(), 1 - sure, torch.full_like(sure, -1.0), torch.ones_like(sure)], 1)
    nats = torch.stack([torch.where(sure > 0.5, 0.1, 4.0), torch.ones_like(sure)])
    task, base = SimpleNamespace(emission=Categorical(3)), [0.5, 0.5]

    def fitted(nats, c):
        monkeypatch.setattr(gating, "read", lambda *_: gating.Seen(nats, c))
        return gating.fitted([None, None], base, task, n)

    gate = fitted(nats, c)
    w = gate.log_weights(c.float(), torch.tensor(base)).exp()[:, 0].detach()
    assert float(w[sure > 0.8].mean()) > 0.9 and float(w[sure < 0.2].mean()) < 0.1
    at_random = nats[:, torch.randperm(n, generator=random_numbers)]
    assert fitted(at_random, c) is None or float(fitted(at_random, c).A.detach().abs().max()) < 0.1
    assert fitted(nats[:, :1999], c[:1999]) is None


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
    assert load(tmp_path / "out").config.ensemble and found.best.path.name == "ensemble"
    assert found.best.generate("abc", max_tokens=3, seed=0)[0]["text"]
    assert (tmp_path / "out" / "report.html").read_text().count("ensemble") > 1
    settings |= {"ensemble": False, "steps": 2}
    found = unrolled.compare(text(), "next-token", out=tmp_path / "none", settings=settings)
    assert "ensemble" not in {row["label"] for row in found.table["rows"]}
    assert not found.best.config.ensemble and not (tmp_path / "none" / "ensemble").exists()


@pytest.mark.long
def test_folds_are_combined_by_what_they_have_not_seen(tmp_path):
    settings = {"models": "bigru,dan", "steps": 30, "threads": 1, "tokens": "word", "folds": 2}
    found = unrolled.compare(rows(300), "classify", out=tmp_path / "out", settings=settings)
    assert not any(row["failed"] for row in found.table["rows"])
    run = load(tmp_path / "out" / "ensemble")
    assert len(run.result["folds"]) == 2 and "left_out" in run.result
    assert run.predict(["not so good"])[0]["prediction"] in ("yes", "no")


def test_folds_rank_a_mixture_as_they_rank_its_members(tmp_path, monkeypatch):
    """At its best moment a trained run has a kinder score than one in closed form, and so has a mixture with it."""
    settings = {"models": "dan", "steps": 30, "lr": 0.01, "threads": 1, "tokens": "word", "folds": 2, "ensemble": False}
    out = unrolled.compare(rows(120), "classify", out=tmp_path / "out", settings=settings).path
    names = ["dan", "baseline-naive-Bayes"]
    folds = [[out / f"{name}-fold-{k}" for k in range(2)] for name in names]
    kind = {"dan": 0.4, "naive": 0.0}
    of = lambda run, score: run.result["valid"][score] + kind[run.config.model.partition("-")[0]]  # noqa: E731
    monkeypatch.setattr(ensemble, "_valid", of)
    best = min(of(load(out / name), "error") for name in names)
    with suppress(NoneBetter):
        run = combine([out / name for name in names], rows(120), tmp_path / "both", folds=folds)
        assert run.result["left_out"] <= best


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
