"""Targets that are recalled: of the nearest source, or the most frequent one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from unrolled.core import discover
from unrolled.core.spec import Sizes
from unrolled.data.collate import NEXT, collate
from unrolled.data.pairs_prepare import examples_of_pairs
from unrolled.tasks._counted import Counted

FILE = discover.models.load("nearest-target")
V, D, STOP = 9, 2, 3
RANDOM = np.random.default_rng(0)
TARGETS = [[4, 5], [6], [4, 5], [7, 8, 4], [5]]
SOURCES = [np.full((3 + i, D), 10.0 * i, np.float32) for i in range(5)]


def section(sources: list[Any] = SOURCES, targets: list[Any] = TARGETS) -> Any:
    return examples_of_pairs(sources, [np.array(target, np.int32) for target in targets])


def counted(examples: Any) -> Counted:
    return Counted(examples, (None, None))  # type: ignore[arg-type]


def solved(**settings: Any) -> Any:
    model = FILE.make(FILE.Config(**settings), Sizes(V, V, D))
    model.decoder.solve(counted(section()))
    return model


def written(model: Any, batch: Any) -> list[list[int]]:
    """What is likeliest at each step up to <stop>."""
    y, _ = model.decoder(
        torch.zeros(len(batch.x), 6, dtype=torch.long), model.condition(batch.source, batch.source_mask)
    )
    torch.testing.assert_close(y.exp().sum(-1), torch.ones(y.shape[:2]))
    return [row[: row.index(STOP)] for row in y.argmax(-1).tolist()]


def test_every_training_source_recalls_its_own_target() -> None:
    batch = collate(section(), np.arange(5), NEXT)
    assert written(solved(), batch) == TARGETS
    moved = section([source + RANDOM.normal(0, 1, source.shape).astype(np.float32) for source in SOURCES])
    assert written(solved(), collate(moved, np.arange(5), NEXT)) == TARGETS


def test_the_most_frequent_target_whatever_the_source() -> None:
    assert written(solved(kept="frequent"), collate(section(), np.arange(5), NEXT)) == [[4, 5]] * 5


def test_how_sure_it_is_comes_from_other_examples() -> None:
    """Neighbours that agree make it sure of what it recalls, neighbours that do not make it unsure."""
    same, unlike = (FILE.make(FILE.Config(), Sizes(V, V, D)) for _ in range(2))
    places = [np.full((2, D), float(i), np.float32) for i in range(40)]
    same.decoder.solve(counted(section(places, [[4 + (i // 20)] for i in range(40)])))
    unlike.decoder.solve(counted(section(places, [[4 + i % 5] for i in range(40)])))
    assert same.decoder.e < 0.1 < 0.3 < unlike.decoder.e


def test_few_examples_are_kept_and_loaded_again() -> None:
    model = solved(examples=2)
    assert model.decoder.sources.shape == (2, 16, D)
    again = FILE.make(FILE.Config(examples=2), Sizes(V, V, D))
    again.load_state_dict(model.state_dict())
    batch = collate(section(), np.arange(5), NEXT)
    assert written(again, batch) == written(model, batch)
    damaged = {**model.state_dict(), "decoder.targets": torch.full((2, 2), 99)}
    with pytest.raises(RuntimeError, match="the saved tables are damaged: its stored targets are not valid"):
        again.load_state_dict(damaged)
    with pytest.raises(RuntimeError, match="the sizes of its tables do not match"):
        again.load_state_dict({**model.state_dict(), "decoder.sources": torch.zeros(3, 16, D)})
