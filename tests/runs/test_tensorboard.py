"""Event files that TensorBoard reads, continued after a kill."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from unrolled.core.errors import CannotWrite
from unrolled.runs.storage.tensorboard import Events


def read(path: Path) -> dict[str, list[tuple[int, float]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(path))
        events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_numbers_come_back_without_close(tmp_path: Path):
    events = Events(tmp_path / "tensorboard")
    assert not events.path.exists()
    events.scalars(10, {"valid/loss": 2.0, "train/loss": 1.5})
    events.scalars(20, {"valid/loss": 1.0})
    assert read(events.path) == {"valid/loss": [(10, 2.0), (20, 1.0)], "train/loss": [(10, 1.5)]}
    events.close()
    events.close()


@pytest.mark.parametrize("told", [True, False])
def test_a_resumed_run_replaces_what_came_after_the_checkpoint(tmp_path: Path, told: bool):
    first = Events(tmp_path)
    for step in (10, 20, 30, 40):
        first.scalars(step, {"loss": float(step)})
    first.close()
    second = Events(tmp_path)
    if told:
        second.resume(20)
    for step in (30, 40, 50):
        second.scalars(step, {"loss": -float(step)})
    second.close()
    assert read(tmp_path) == {"loss": [(10, 10.0), (20, 20.0), (30, -30.0), (40, -40.0), (50, -50.0)]}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotWrite, match="tensorboard cannot be written"):
        Events(tmp_path / "file" / "tensorboard").scalars(1, {"loss": 1.0})
