"""A small text and a quick way to train on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import unrolled
from unrolled.runs.run import Run

SMALL = {"d_state": 12, "d_embedding": 6, "batch_size": 4, "length": 10, "evaluate_every": 10, "warmup": 5,
         "evaluate_tokens": 300, "threads": 1, "split": "80/20"}  # fmt: skip


@pytest.fixture(scope="session")
def text() -> str:
    words = "the state of a layer is a value that is passed in and returned never kept on the layer itself".split()
    return " ".join(words[(i * i + 3 * i) % len(words)] + ("\n" if i % 9 == 0 else "") for i in range(700))


@pytest.fixture
def fit(text: str, tmp_path: Path) -> Callable[..., Run]:
    """Train on the small text: fit("name", {"steps": 20}, model="gru")."""

    file = tmp_path / "text.txt"
    file.write_text(text)

    def fit(name: str, settings: Mapping[str, Any], model: str = "lstm") -> Run:
        return unrolled.train(file, model=model, out=tmp_path / name, settings=SMALL | settings)

    return fit
