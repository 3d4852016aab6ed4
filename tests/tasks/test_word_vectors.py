"""Word vectors: planted neighbours are found, the loss is true, and vectors start other models."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.core.tokens import EMPTY
from unrolled.data.word_vectors import WordVectors
from unrolled.objectives.related import area, related_pairs
from unrolled.runs.run import Run

GROUPS = {"cat": ("purrs", "meows", "whiskers"), "car": ("drives", "wheels", "motor"), "tea": ("drink", "cup", "hot")}
TWINS = {"cat": "feline", "car": "vehicle", "tea": "infusion"}
QUICK = {"min_count": 1, "window": 2, "d_embedding": 12, "subsample": 0.0, "threads": 1, "batch_size": 8, "length": 32}


def planted(n: int = 360) -> list[str]:
    """Lines in which two words of each kind stand among the same others."""
    random, lines = np.random.default_rng(0), []
    for _ in range(n):
        kind = ("cat", "car", "tea")[random.integers(3)]
        word = (kind, TWINS[kind])[random.integers(2)]
        around = random.permutation(GROUPS[kind]).tolist()
        lines.append(" ".join([around[0], around[1], word, around[2], "and", str(random.integers(10))]))
    return lines


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("vectors") / "run"
    return unrolled.train(planted(), task="word-vectors", out=out, settings=QUICK | {"epochs": 6, "lr": 0.1})


def test_words_that_are_used_alike_are_neighbours(run: Run) -> None:
    for word, twin in TWINS.items():
        near = [each["word"] for each in run.do("neighbours", word, top=4)[0]["neighbours"]]
        assert twin in near
    same = np.mean([run.do("similarity", [a, b])[0]["cosine"] for a, b in TWINS.items()])
    other = np.mean([run.do("similarity", [a, b])[0]["cosine"] for a in TWINS for b in TWINS.values() if TWINS[a] != b])
    assert same > other + 0.3


def test_it_beats_the_unigram_and_tells_each_epoch(run: Run) -> None:
    result = run.result
    assert result["test"]["loss"] < result["baselines"]["unigram"]["test"]["loss"] - 0.3
    assert result["test"]["related"] > 0.8
    lines = [line for line in run.directory.read_metrics() if "loss" in line]
    assert len(lines) == 7  # before the first, and after each
    assert lines[0]["loss"] == pytest.approx(6 * math.log(2), abs=0.5)  # all scores are zero, some draws are the word
    assert lines[-1]["loss"] < lines[1]["loss"] < lines[0]["loss"]


def test_the_loss_is_the_average_over_all_inputs(run: Run) -> None:
    """Computed by hand from the tables, one input after the other."""
    task, data = run.task, planted()
    task.prepare(data)
    v, u = run.model.embedding.weight.detach().double(), run.model.head.weight.detach().double()
    losses = []
    text = task.found.texts["test"]  # type: ignore[attr-defined]
    drawn = task.contexts.draw(text, 0, len(text.words), 0, 0)  # type: ignore[attr-defined]
    for x, y in zip(drawn.x, drawn.y):
        for (word,) in x:
            if word != EMPTY:
                s = u[y] @ v[word]
                real = torch.from_numpy(y[1:] != EMPTY)
                losses.append(float(F.softplus(-s[0]) + F.softplus(s[1:])[real].sum()))
    assert task.evaluate(run.model, "test")["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert run.result["test"]["loss"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_what_is_predicted_is_a_probability(run: Run) -> None:
    found = run.predict(["purrs meows whiskers"])[0]
    assert found["prediction"] in ("cat", "feline", *GROUPS["cat"], "and")
    y, _ = run.model(torch.arange(4, 8)[None], torch.ones(1, 4, dtype=torch.bool))
    log_p = run.task.emission.log_probabilities(y)
    assert float(log_p.detach().exp().sum()) == pytest.approx(1.0)
    with pytest.raises(DataError, match="none of the words"):
        run.predict(["zzz"])


def test_cbow_and_counts_find_them_too(tmp_path: Path) -> None:
    for name, model, more in (("cbow", "word2vec", {"method": "cbow", "epochs": 8, "lr": 0.3}), ("ppmi", "ppmi", {})):
        found = unrolled.train(
            planted(), task="word-vectors", model=model, out=tmp_path / name, settings=QUICK | more, baselines={}
        )
        for word, twin in TWINS.items():
            near = [each["word"] for each in found.do("neighbours", word, top=4)[0]["neighbours"]]
            assert twin in near, (name, word, near)


def test_related_words_are_told_from_random_ones() -> None:
    words = np.array([4, 5, 4, 5, 4, 5, 6, 7, 6, 7, 6, 7] * 8, np.int32)
    lines = np.repeat(np.arange(16), 6).astype(np.int32)
    assert related_pairs(words, lines, 1, 4) is None  # two pairs are too few
    pairs = np.array([[4, 5, 6], [6, 7, 5]])
    units = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    assert area(units, pairs, 4) == 1.0
    assert area(np.ones((4, 2)), pairs, 4) == 0.5
    many = np.concatenate([np.tile([2 * k + 4, 2 * k + 5], 5) for k in range(12)]).astype(np.int32)
    found = related_pairs(many, np.repeat(np.arange(12), 10).astype(np.int32), 1, 4)
    assert found is not None
    assert {(a, b) for a, b, _ in found.tolist()} == {(2 * k + 4, 2 * k + 5) for k in range(12)}
    assert all(other not in (a, b) for a, b, other in found.tolist())


# ---- vectors that other models begin with


ROWS = [
    {"text": f"{word} {one} {two}", "label": kind}
    for kind, around in GROUPS.items()
    for word in ("A", kind, "it")
    for one in around
    for two in around
]


@pytest.fixture
def started(tmp_path: Path) -> Callable[..., Run]:
    def train(path: Any, **settings: Any) -> Run:
        own = {"steps": 3} | settings
        return unrolled.train(
            ROWS, task="classify", model="dan", out=tmp_path / f"run-{len(list(tmp_path.iterdir()))}", baselines={},
            settings={"start.vectors": str(path), "threads": 1, "batch_size": 8, "split": "60/20/20"} | own,
        )  # fmt: skip

    return train


def test_vectors_fill_the_embedding_by_name_and_stay_where_frozen(started: Callable[..., Run], tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(size=(4, 7)).astype(np.float32)
    WordVectors(["cat", "car", "a", "elsewhere"], values).save(tmp_path / "v.txt")
    frozen = started(tmp_path / "v.txt", **{"start.freeze": "embedding"})
    assert frozen.config.ends.d_embedding == 7
    assert frozen.config.data.tokens == "word"
    names = [each.decode().strip() for each in frozen.task.vocabularies()["encoder.embedding"].codec.spelling()]
    table = frozen.model.embedding.weight.detach().numpy()
    for word, row in (("cat", 0), ("car", 1), ("A", 2)):  # the last in lower case
        assert (table[names.index(word)] == values[row]).all()
    (said,) = [line for line in frozen.result["recipe"] if "vectors from" in line]
    n = sum(map(bool, names))
    assert f"3 of {n} words ({3 / n:.1%}), 1 of them in lower case; without: " in said
    tuned = started(tmp_path / "v.txt")
    assert (tuned.model.embedding.weight.detach().numpy()[names.index("cat")] != values[0]).any()


def test_a_run_of_word_vectors_starts_another_model(run: Run, started: Callable[..., Run]) -> None:
    other = started(run.path, **{"start.freeze": "embedding"})
    names = [each.decode().strip() for each in other.task.vocabularies()["encoder.embedding"].codec.spelling()]
    expected = unrolled.vectors(run)["cat"]
    assert (other.model.embedding.weight.detach().numpy()[names.index("cat")] == expected).all()
    again = unrolled.vectors(other)
    assert again["cat"].tolist() == expected.tolist()
    with pytest.raises(UsageError, match="are no word vectors"):
        other.do("neighbours", "cat")


def test_vectors_that_do_not_fit_are_refused(started: Callable[..., Run], tmp_path: Path) -> None:
    WordVectors(["nothing", "here"], np.ones((2, 3))).save(tmp_path / "none.txt")
    with pytest.raises(DataError, match="none of its words is in the vocabulary, which has "):
        started(tmp_path / "none.txt")
    WordVectors(["cat"], np.ones((1, 3))).save(tmp_path / "v.txt")
    with pytest.raises(UsageError, match="its vectors have 3 numbers, but the embedding has 5; leave out d_embedding"):
        started(tmp_path / "v.txt", d_embedding=5)
    with pytest.raises(DataError, match="no such file"):
        started(tmp_path / "missing.txt")


def test_bad_input_is_one_sentence(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="similar spellings: 'feline'"):
        run.do("neighbours", "felin")
    with pytest.raises(UsageError, match="three words"):
        run.do("analogy", ["cat", "car"])
    with pytest.raises(UsageError, match="two words or more"):
        run.do("similarity", ["cat"])
    with pytest.raises(DataError, match="no word occurs 1000 times"):
        unrolled.train(planted(40), task="word-vectors", out=tmp_path / "a", settings={"min_count": 1000})
    with pytest.raises(UsageError, match="vectors of words; leave out"):
        unrolled.train(planted(40), task="word-vectors", out=tmp_path / "b", settings={"tokens": "bpe"})
    with pytest.raises(DataError, match="this data is numbers"):
        unrolled.train(
            [np.arange(40) + i for i in range(9)], task="word-vectors", out=tmp_path / "c", settings={"min_count": 1}
        )
    with pytest.raises(UsageError, match="models that fit: ppmi, prior, word2vec"):
        unrolled.train(planted(40), task="word-vectors", model="lstm", out=tmp_path / "d")


def test_settings_of_an_optimiser_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'word2vec' moves its own weights: leave out weight_decay=... and clip=..."):
        given = QUICK | {"epochs": 1, "clip": 2.0, "weight_decay": 0.1}
        unrolled.train(planted(), task="word-vectors", out=tmp_path / "run", settings=given)
