"""Sequences that are added one by one come out as they went in, from memory and from the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unrolled.core.errors import CannotWrite
from unrolled.data.storage import growing
from unrolled.data.storage.growing import Growing

RANDOM = np.random.default_rng(0)
KINDS = {
    "ids": [RANDOM.integers(0, 99, n).astype(np.int32) for n in (3, 0, 70, 1)],
    "ids side by side": [RANDOM.integers(0, 99, (n, 4)) for n in (3, 0, 70, 1)],
    "numbers": [RANDOM.random((n, 2)).astype(np.float32) for n in (3, 0, 70, 1)],
    "classes": [np.array([n]) for n in range(40)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spill", [16, 1 << 20])
def test_what_goes_in_comes_out(kind: str, spill: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(growing, "SPILL", spill)
    field = Growing()
    for values in KINDS[kind]:
        field.add(values)
    found = field.ragged()
    assert len(found) == len(field) == len(KINDS[kind])
    assert isinstance(found.values, np.memmap) == (spill == 16)
    for one, other in zip(found, KINDS[kind], strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)
    left = list((tmp_path / "cache").rglob("*")) if spill == 16 else []
    assert [path for path in left if path.is_file()] == []  # an unnamed file: nothing to clean up


def test_a_disk_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(growing, "SPILL", 16)
    field = Growing()
    with pytest.raises(CannotWrite, match="UNROLLED_CACHE"):
        field.add(np.arange(99))
