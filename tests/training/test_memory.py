"""A model that no machine can hold is refused before it is built, with advice and exit code 6."""

from __future__ import annotations

from pathlib import Path

import pytest

import unrolled
from unrolled.core.errors import OutOfMemory
from unrolled.core.outside import explained
from unrolled.runs import cost

TINY = {"steps": 1, "threads": 1, "d_embedding": 4, "batch_size": 2, "length": 4}


def trained(folder: Path, **settings: object) -> None:
    unrolled.train([f"the cat sat {i}" for i in range(40)], model="gru", out=folder / "run", settings=TINY | settings)


@pytest.mark.parametrize("model", ["gru", "transformer"])
def test_a_model_larger_than_the_memory_is_refused_at_once(tmp_path: Path, monkeypatch, model):
    monkeypatch.setattr(cost, "available_bytes", lambda: 1_000_000)
    width = {"gru": {"d_state": 200}, "transformer": {"d_model": 256}}[model]
    with pytest.raises(
        OutOfMemory, match=r"parameters with these settings.*needs at least [\d,]+ bytes, but only 1,000,000 are free"
    ):
        unrolled.train(
            [f"the cat sat {i}" for i in range(40)], model=model, out=tmp_path / "run", settings=TINY | width
        )
    assert not (tmp_path / "run").exists()


def test_one_that_fits_is_trained(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cost, "available_bytes", lambda: 1_000_000)
    trained(tmp_path, d_state=4)


def test_terabytes_are_not_tried(tmp_path: Path):
    with pytest.raises(OutOfMemory):
        trained(tmp_path, d_state=1_000_000)


def test_what_is_free_is_known_or_not_told():
    assert cost.available_bytes() is None or cost.available_bytes() > 0


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to "
                     "allocate 12000000000000 bytes. Error code 12"),
        OSError(12, "Cannot allocate memory"),
    ],
)  # fmt: skip
def test_memory_that_ran_out_anywhere_has_its_code(error):
    found = explained(error)
    assert found is not None and found.exit_code == 6
    if isinstance(error, RuntimeError):
        assert "12,000,000,000,000 bytes" in str(found)
    assert explained(RuntimeError("a bug")) is None
