"""A letter must be carried over dots: models with memory learn it, the memoryless one cannot.

Each line is `a...a` with a random letter of four. A model that remembers pays log 4 once per line of six characters;
one that does not pays it twice, and cannot count the dots either.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.thorough import only

IDEAL = math.log(4) / 6
SETTINGS = {"d_state": 24, "d_embedding": 8, "batch_size": 16, "length": 24, "lr": 0.01, "warmup": 10, "threads": 1,
            "evaluate_every": 100, "split": "80/20"}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    choose = random.Random(0)
    path = tmp_path_factory.mktemp("learn") / "letters.txt"
    path.write_text("".join(f"{letter}...{letter}\n" for letter in choose.choices("abcd", k=2500)))
    return path


def nats(corpus: Path, out: Path, model: str, settings: dict[str, Any]) -> float:
    settings = settings | {"split": "80/20"} if model == "ngram" else SETTINGS | settings
    return float(unrolled.train(corpus, model=model, out=out, settings=settings).result["valid"]["nats"])


@pytest.mark.parametrize(("model", "settings"), only({"lstm"}, [
    ("lstm", {"steps": 500}),
    ("gru", {"steps": 300}),
    ("gru", {"steps": 300, "reset": "before"}),
    ("elman", {"steps": 500}),
    ("jordan", {"steps": 500, "feedback": "both"}),
    ("linear-rnn", {"steps": 500}),
]))  # fmt: skip
def test_memory_is_learned(corpus: Path, tmp_path: Path, model: str, settings: dict[str, Any]) -> None:
    assert nats(corpus, tmp_path / "run", model, settings) < IDEAL + 0.06


@pytest.mark.parametrize(("model", "settings"), [("memoryless", {"steps": 300}), ("ngram", {"order": 3})])
def test_and_cannot_be_learned_without(corpus: Path, tmp_path: Path, model: str, settings: dict[str, Any]) -> None:
    assert nats(corpus, tmp_path / "run", model, settings) > 2 * IDEAL - 0.02


def test_a_long_ngram_reaches_it_by_counting(corpus: Path, tmp_path: Path) -> None:
    assert nats(corpus, tmp_path / "run", "ngram", {"order": 6}) < IDEAL + 0.06
