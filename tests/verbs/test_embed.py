"""Vectors of inputs: pooled or of each position, of any layer, in the order of the inputs; contexts matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import UsageError
from unrolled.runs.run import Run

TEXTS = [
    f"the bank of the {'river' if i % 2 else 'city'} was {'near' if i % 3 else 'far'}. It is a bank." for i in range(40)
]
QUICK = {"steps": 4, "batch_size": 8, "evaluate_every": 2, "warmup": 1, "threads": 1, "split": "60/20/20", "lr": 0.01,
         "tokens": "word", "d_embedding": 8}  # fmt: skip


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Run:
    small = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "row_length": 24}
    return unrolled.train(
        TEXTS, "masked-token", "bert", tmp_path_factory.mktemp("bert") / "run", settings=QUICK | small
    )


def test_one_word_in_two_contexts_has_two_vectors(bert: Run) -> None:
    contexts = ["the bank of the river", "the bank of the city was far"]
    _, names = bert.task.example(contexts[0])
    place = names.index("␣bank")
    near, far = (each[place] for each in bert.embed(contexts, pool="none", layer=2))
    assert np.abs(near - far).max() > 1e-3
    before = [each[place] for each in bert.embed(contexts, pool="none", layer=0)]
    assert np.allclose(*before)  # the same word at the same position, before any layer has looked around


def test_vectors_are_those_of_the_model_whatever_stands_beside_them(bert: Run) -> None:
    found = bert.embed(TEXTS[:5])
    assert isinstance(found, np.ndarray)
    assert found.shape == (5, 8)
    for text, vector in zip(TEXTS, found):
        batch, names = bert.task.example(text)
        with torch.no_grad():
            y = bert.model._around(bert.model.embedding, None, None)(batch.x, batch.mask)[0][0]
        assert len(y) == len(names)
        assert np.allclose(vector, y.mean(0), atol=1e-6)
    each = bert.embed(TEXTS[:5], pool="none")
    for pool, take in (("first", lambda v: v[0]), ("last", lambda v: v[-1]), ("max", lambda v: v.max(0))):
        assert np.allclose(bert.embed(TEXTS[:5], pool=pool), [take(vectors) for vectors in each], atol=1e-6)
    with pytest.raises(UsageError, match=r"layer = 7: expected 0 \(what the first layer reads\) to 2"):
        bert.embed(TEXTS[:1], layer=7)


def test_a_causal_run_makes_vectors_and_a_file_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = unrolled.train(TEXTS, "next-token", "gru", tmp_path / "run", settings=QUICK | {"d_state": 6})
    (tmp_path / "lines.txt").write_text("the bank of\nthe river\n")
    run_unrolled("embed", "run", "lines.txt", "-o", "pooled.npz", cwd=tmp_path)
    with np.load("pooled.npz") as held:
        assert np.allclose(held["vectors"], run.embed(["the bank of", "the river"]), atol=1e-6)
    run_unrolled("embed", "run", "lines.txt", "--pool", "none", "-o", "each.npz", cwd=tmp_path)
    with np.load("each.npz") as held:
        assert held["offsets"].tolist() == [0, 4, 7]
        assert held["tokens"].tolist()[:2] == ["<start>", "the"]
        assert held["vectors"].shape == (7, 6)
    with pytest.raises(UsageError, match="expected -1 for the outputs of the whole model"):
        run.embed(["the bank"], layer=0)
