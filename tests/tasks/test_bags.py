"""Bags from one end to the other: train, evaluate, predict, inspect; baselines; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

import unrolled
from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError
from unrolled.core.spec import Asks, Sizes, misfit
from unrolled.models.min_max_svm import MinMaxSvm, box
from unrolled.runs.run import Run

RANDOM = np.random.default_rng(0)
SETTINGS = {"steps": 100, "d_embedding": 8, "evaluate_every": 50, "batch_size": 8, "split": "60/20/20", "threads": 1}
SMALL = {**SETTINGS, "d_state": 8, "warmup": 5}


def letters(n: int) -> str:
    return "".join(RANDOM.choice(list("abcd"), n))


ROWS = [
    {"who": i, "text": letters(3) + ("z" if i % 2 and j == i % 5 else "") + letters(2), "label": "yn"[i % 2]}
    for i in range(60)
    for j in range(5)
]
VECTORS = [
    {"who": i, "u": float(u), "v": float(v) + 5 * (i % 2 and j == 2), "w": 0.0, "label": i % 2}
    for i in range(40)
    for j, (u, v) in enumerate(RANDOM.normal(size=(4, 2)))
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("bags")
    settings = {**SMALL, "bag": "who", "instances": 4, "readout": "max", "lr": 0.02}
    return unrolled.train(ROWS, task="classify", model="memoryless", out=folder / "run", settings=settings)


def test_the_instance_that_matters_is_found(run: Run) -> None:
    assert run.evaluate()["accuracy"] >= 0.9
    assert set(run.result["baselines"]) == {"class frequencies", "naive Bayes", "logistic regression"}
    answer = run.inspect("attention", ["abcda", "cbzad", "ddaca"])
    assert answer.numbers["instances"][0]["name"] == "cbzad"
    assert answer.arrays["weights"].shape == (3,)
    assert "instance 1, cbzad" in answer.reading
    assert run.unanswered("states") is not None
    assert run.unanswered("parameters") is None


def test_predictions_are_of_bags(run: Run, tmp_path: Path) -> None:
    told = list(run.predict([["abcda", "cbzad"], ["abcda", "ccbad"]]))
    assert [each["prediction"] for each in told] == ["n", "y"]
    table = tmp_path / "new.csv"
    table.write_text("who,text\nA,abcda\nB,abcda\nA,cbzad\nB,ccbad\n")
    found = list(run.predict(table))
    assert [(each["who"], each["prediction"], each["p"]) for each in found] == [
        ("A", "n", told[0]["p"]), ("B", "y", told[1]["p"])
    ]  # fmt: skip
    lines = tmp_path / "new.jsonl"
    lines.write_text("".join(json.dumps({"who": bag}) + "\n" for bag in (["abcda", "cbzad"], ["abcda", "ccbad"])))
    assert [each["p"] for each in run.predict(lines)] == [each["p"] for each in told]
    for bad, words in (([[]], "the bag is empty"), (["not a list"], "expected a list of instances")):
        with pytest.raises(DataError, match=words):
            list(run.predict(bad))


def test_what_is_read_in_parts_is_what_is_read_at_once(run: Run) -> None:
    bag = [letters(5) for _ in range(300)]
    alone = next(iter(run.predict([bag])))
    again = list(run.predict([bag[::-1], bag[:2], bag]))
    assert again[0]["p"] == pytest.approx(alone["p"], abs=1e-6)
    assert again[2]["p"] == pytest.approx(alone["p"], abs=1e-6)


def test_vectors_have_a_support_vector_machine_beside_them(tmp_path: Path) -> None:
    settings = {**SMALL, "bag": "who", "pooling": "max", "target": "label", "steps": 2}
    run = unrolled.train(VECTORS, task="classify", model="memoryless", out=tmp_path / "run", settings=settings)
    assert set(run.result["baselines"]) == {"class frequencies", "SVM on minimum and maximum"}
    assert run.result["baselines"]["SVM on minimum and maximum"]["test"]["accuracy"] >= 0.8
    why = run.unanswered("attention")
    assert why is not None and "'max'" in why
    assert next(iter(run.predict([[[0, 5, 0], [1, 1, 0]]])))["p"] <= 1


def test_the_machine_is_that_of_scikit_learn() -> None:
    x = torch.from_numpy(RANDOM.normal(size=(30, 4, 1, 3)).astype(np.float32))
    mask = torch.ones(30, 4, 1, dtype=torch.bool)
    mask[::2, 3] = False
    y = torch.arange(30) % 3
    model = MinMaxSvm(discover.model("min-max-svm").tiny, 3, 3)  # type: ignore[arg-type]
    model.solve([(x[:20], mask[:20], y[:20]), (x[20:], mask[20:], y[20:])])
    z = box(x, mask).double().numpy()
    z = (z - z.mean(0)) / z.std(0)
    for c in range(3):
        known = SVC(C=1.0, gamma=1 / 6).fit(z, y.numpy() == c)
        assert np.allclose(model(x, mask)[0][:, 0, c], known.decision_function(z), atol=1e-4)


def test_ngrams_of_a_bag_are_those_of_its_instances() -> None:
    model: Any = discover.model("logistic").make(discover.model("logistic").tiny, Sizes(9, 2))
    x, mask = torch.tensor([[[5, 6, 7], [5, 6, 0]], [[8, 0, 0], [0, 0, 0]]]), torch.zeros(2, 2, 3, dtype=torch.bool)
    mask[0, 0], mask[0, 1, :2], mask[1, 0, 0] = True, True, True
    key, row = model.grams(x, mask)
    alone = [model.grams(x[0, :1], mask[0, :1])[0], model.grams(x[0, 1:], mask[0, 1:])[0]]
    assert sorted(key[row == 0].tolist()) == sorted(torch.cat(alone).tolist())
    assert sorted(key[row == 1].tolist()) == sorted(model.grams(x[1, :1], mask[1, :1])[0].tolist())


@pytest.mark.parametrize(
    ("task", "model", "settings", "words"),
    [
        ("classify", "minirocket", {"bag": "who", "target": "label"}, "it reads single sequences"),
        ("classify", "gru", {"bag": "who", "pooling": "last"}, "have no order"),
        ("classify", "gru", {"pooling": "mean"}, "is for bags, but these examples are single"),
        ("classify", "min-max-svm", {"column": "u,v", "target": "label"}, "it reads bags of sequences"),
        ("tag", "gru", {"bag": "who"}, "one target for a whole example"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, task: str, model: str, settings: dict[str, Any], words: str
) -> None:
    data = VECTORS if "target" in settings else ROWS
    with pytest.raises(UsageError, match=words):
        unrolled.train(data, task=task, model=model, out=tmp_path / "run", settings={**SETTINGS, **settings})


def test_whole_models_say_whether_they_read_bags() -> None:
    asks = Asks(("encoder", "causal"), "whole", "numbers", None, "class", bags=True)
    fitting = {name for name in discover.models.names() if misfit(discover.model(name), asks) is None}
    assert {"prior", "min-max-svm", "gru", "tcn"} <= fitting
    assert not {"nearest", "minirocket", "hopfield"} & fitting


def test_numbers_can_be_predicted_of_bags(tmp_path: Path) -> None:
    rows = [{**row, "label": 0.5 * row["who"]} for row in VECTORS]  # type: ignore[operator]
    settings = {**SMALL, "bag": "who", "target": "label", "steps": 2}
    run = unrolled.train(rows, task="regress", model="memoryless", out=tmp_path / "run", settings=settings)
    assert isinstance(next(iter(run.predict([[[0, 5, 0], [1, 1, 0]]])))["prediction"], float)


def test_implanted_motifs() -> None:
    from unrolled.data.builtin.motifs import Settings, read

    made = list(read(Settings(examples=6, instances=300, witness=0.01)))
    again = list(read(Settings(examples=4, instances=300, witness=0.01)))
    assert [each.input for each in made[:4]] == [each.input for each in again]
    import re

    motif = re.compile("LD.S.GT")
    assert [sum(bool(motif.search(text)) for text in each.input) for each in made] == [0, 3, 0, 3, 0, 3]
    assert [each.target for each in made[:2]] == ["none", "motif"]
    assert {len(text) for text in made[0].input} == set(range(10, 21))
