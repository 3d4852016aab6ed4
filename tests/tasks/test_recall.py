"""Recall: patterns of every kind are stored, damaged and completed; bad ones are refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.data.codecs.patterns import PatternCodec, codec_of_texts
from unrolled.layers.memory.capacity import crossing, theory, theory_of_numbers, wrong_share
from unrolled.layers.memory.classical import Classical
from unrolled.layers.memory.dense import Dense
from unrolled.layers.memory.recaller import damaged

SPINS = np.sign(np.random.default_rng(0).normal(size=(6, 8, 8)))  # [n, T, D]


def stored(tmp_path: Path, data: Any, model: str = "dense-hopfield", **settings: Any) -> unrolled.Run:
    return unrolled.train(data, "recall", model, tmp_path / "run", settings={"threads": 1, **settings})


@pytest.mark.parametrize("model", ["classical-hopfield", "dense-hopfield", "continuous-hopfield", "nearest-pattern"])
def test_flipped_bits_are_recalled_from_a_saved_run(tmp_path: Path, model: str) -> None:
    run = stored(tmp_path, (SPINS,), model)
    assert run.result["test"]["exact"] >= 0.8
    query = SPINS[2].copy()
    query[0] *= -1
    found = unrolled.load(tmp_path / "run").predict([query])[0]
    assert np.array_equal(found["prediction"], SPINS[2])
    assert found["overlap"] == pytest.approx(1.0)
    assert found["ended"] == "fixed point"
    assert found["energy"][-1] <= found["energy"][0]


def test_texts_are_patterns(tmp_path: Path) -> None:
    lines = ["the quick brown fox", "jumps over", "the lazy dog"]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    run = stored(tmp_path, tmp_path / "lines.txt", damage="cover", amount=0.3)
    assert run.predict(["the quick brown"])[0]["prediction"] == lines[0]
    with pytest.raises(DataError, match=r"the letter 'Z' is in none of the stored texts"):
        run.predict(["Zebra"])


def test_numbers_are_compared_as_they_are_or_by_their_shape(tmp_path: Path) -> None:
    """A pattern that is a multiple of another is told apart by its size, or not at all."""
    x = np.random.default_rng(1).normal(size=(20, 4, 4))
    run = stored(tmp_path / "a", (x,), "continuous-hopfield", scaling="pattern", amount=0.3)
    assert run.result["test"]["exact"] == 1.0
    found = run.predict([3 * x[4] + 7])[0]  # another level and scale
    assert np.allclose(found["prediction"], x[4], atol=1e-3)
    with pytest.raises(
        UsageError,
        match="patterns of bits, but the targets are patterns of numbers; models that fit: continuous-hopfield",
    ):
        stored(tmp_path / "b", (x,), "classical-hopfield")
    assert stored(tmp_path / "c", (x,), "dense-hopfield", bits="yes").result["test"]["exact"] > 0.5


def test_wrong_patterns_are_refused(tmp_path: Path) -> None:
    run = stored(tmp_path, (SPINS,))
    with pytest.raises(DataError, match="4 x 8 numbers, but the first has 8 x 8"):
        run.predict([SPINS[0, :4]])
    with pytest.raises(DataError, match="only bits can be flipped"):
        stored(tmp_path / "b", (np.random.default_rng(0).normal(size=(5, 3, 3)),), damage="flip")


def test_a_damaged_codec_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sizes"):
        PatternCodec.from_json(PatternCodec((1, 1)).to_json().replace("1,", "0,", 1))
    (tmp_path / "patterns.json").write_text("{}")
    with pytest.raises(DataError, match="damaged"):
        PatternCodec.load(tmp_path)


@pytest.mark.parametrize("texts", [["ab", "b"], ["ä", "日本"]])
def test_texts_come_back(texts: list[str]) -> None:
    codec = codec_of_texts(texts)
    assert [codec.decode(codec.encode(text, "here")) for text in texts] == texts
    again = PatternCodec.from_json(codec.to_json())
    assert again == codec


@pytest.mark.parametrize(("kind", "changed"), [("flip", 8), ("mask", 8), ("cover", 8)])
def test_damage_is_as_much_as_was_asked_for(kind: str, changed: int) -> None:
    x = torch.ones(5, 32)
    found = damaged(x, kind, 0.25, torch.Generator().manual_seed(0))
    assert ((found != x).sum(1) == changed).all()
    assert set(found.flatten().tolist()) == {-1.0, 1.0}
    noisy = damaged(torch.randn(5, 32), "noise", 0.25, torch.Generator().manual_seed(0))
    assert not bool((noisy.abs() == 1).all())


# ---- capacity


def test_one_update_of_a_classical_memory_follows_theory() -> None:
    """P(wrong) = P(normal > sqrt(d / N)), at d = 200: 1 % at 0.185 d."""
    memory = lambda: Classical(200, updates="synchronous")  # noqa: E731
    points = [(n, wrong_share(memory, 200, n, 10, once=True)) for n in (30, 37, 45)]
    found = crossing(points, 0.01)
    assert found is not None
    assert found / 200 == pytest.approx(theory(200, 2, True, 0.01) / 200, abs=0.02)
    assert theory(1000, 2, True, 0.01) == pytest.approx(185, abs=1)


@pytest.mark.parametrize("d", [6, 10])
def test_how_many_normal_patterns_are_separated_follows_theory(d: int) -> None:
    """By drawing them: the share of patterns that some other is more like than they are themselves."""
    n = round(theory_of_numbers(d, 0.05))
    x = torch.randn(4000, n, d, generator=torch.Generator().manual_seed(0))
    products = x @ x.mT
    lost = (products.amax(2) > products.diagonal(dim1=1, dim2=2)).double().mean()
    assert float(lost) == pytest.approx(0.05, rel=0.25)  # n is a whole number


def test_a_cubic_memory_keeps_far_more() -> None:
    assert wrong_share(lambda: Dense(60, 3, updates="synchronous"), 60, 120, 2, once=True) < 0.01
    assert wrong_share(lambda: Classical(60, updates="synchronous"), 60, 120, 2, once=True) > 0.1


def test_the_commands(tmp_path: Path) -> None:
    """Capacity with its curve, and a letter that is completed and drawn."""
    words = ("capacity", "-d", 60, "--draws", 2, "--once", "--updates", "synchronous", "-o", "curve.svg")
    told = run_unrolled(*words, cwd=tmp_path).stdout
    assert "1.00% wrong bits at" in told and "theory" in told
    assert (tmp_path / "curve.svg").read_text().startswith("<")
    run_unrolled("train", "builtin:letters", "--task", "recall", "--out", "run", cwd=tmp_path)
    letter = np.kron(np.eye(2), np.ones((8, 8))) * 255
    from PIL import Image

    Image.fromarray(letter.astype(np.uint8)).save(tmp_path / "query.png")
    run_unrolled("predict", "run", "query.png", "-o", "restored.png", cwd=tmp_path)
    with Image.open(tmp_path / "restored.png") as drawn:
        assert drawn.size == (5 * 100, 100)
        query, *states, stored = np.split(np.asarray(drawn), 5, axis=1)
    assert all(np.array_equal(state, stored) for state in states)  # one update, and it stands still
    assert not np.array_equal(query, stored)
    refused = run_unrolled("capacity", "--model", "nearest-pattern", code=2, cwd=tmp_path).stderr
    assert "not a memory with a capacity; use classical-hopfield" in refused
    refused = run_unrolled("capacity", "--model", "continuous-hopfield", code=2, cwd=tmp_path).stderr
    assert "patterns of 1000 numbers would be needed; choose a smaller -d" in refused
    told = run_unrolled("capacity", "--model", "continuous-hopfield", "-d", 16, "--json", cwd=tmp_path).stdout
    measured = json.loads(told)
    assert measured["curve"][-1]["not_recalled"] > 0.01
    assert measured["threshold"] == pytest.approx(measured["theory"], rel=0.5)


def test_a_comparison_has_the_memories_that_fit() -> None:
    """All memories are fitted in closed form; those of bits are left out where patterns are numbers. What a comparison
    prepares is kept once."""
    from unrolled.comparison.config import CompareConfig
    from unrolled.comparison.plan import chosen_models
    from unrolled.data.config import DataConfig
    from unrolled.data.prepared import shared
    from unrolled.tasks.recall import Config, Task

    names = []
    for source in ("builtin:letters", "builtin:digits"):
        with shared():
            task, again = Task(Config(), DataConfig()), Task(Config(), DataConfig())
            task.prepare(source)
            again.prepare(source)
            assert again.codec == task.codec
            names.append(chosen_models(CompareConfig(), task, "recall"))
    assert names == [["classical-hopfield", "continuous-hopfield", "dense-hopfield"], ["continuous-hopfield"]]


@pytest.mark.long
def test_vectors_of_another_run_are_patterns(tmp_path: Path) -> None:
    """What `unrolled embed` writes is stored as it is; an array among several is named by --column."""
    x = np.random.default_rng(0).normal(size=(40, 24)).astype(np.float32)
    np.savez(tmp_path / "one.npz", vectors=x)
    np.savez(tmp_path / "two.npz", vectors=x, more=x[:, :3])
    words = ("--task", "recall", "--model", "continuous-hopfield", "-o")
    run_unrolled("train", "one.npz", *words, "one", cwd=tmp_path)
    run_unrolled("train", "two.npz", "--column", "vectors", *words, "two", cwd=tmp_path)
    one, two = (unrolled.load(tmp_path / name) for name in ("one", "two"))
    assert one.result["test"] == two.result["test"] and one.result["test"]["exact"] > 0.9
    refused = run_unrolled("train", "two.npz", *words, "three", code=2, cwd=tmp_path).stderr
    assert "name the array of the inputs with --column" in refused
