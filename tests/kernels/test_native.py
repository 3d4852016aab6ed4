"""Which library is chosen, and what is said where none is."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import unrolled
from unrolled.core.errors import UsageError
from unrolled.kernels import native

HERE = Path(unrolled.__file__).parents[1]
ALL = ["v2", "v3", "v4"]


@pytest.mark.parametrize(
    ("asked", "can", "there", "level"),
    [
        (None, ["v2", "v3"], ALL, "v3"),
        (None, ALL, ALL, "v4"),
        (None, ALL, ["v2"], "v2"),
        (None, [], ALL, "off"),
        (None, ALL, [], "off"),
        ("", ["v2"], ALL, "v2"),
        ("off", ALL, ALL, "off"),
        ("v2", ALL, ALL, "v2"),
        ("neon", ["neon"], ["neon"], "neon"),
    ],
)
def test_the_level(asked: str | None, can: list[str], there: list[str], level: str) -> None:
    assert native.choose(asked, can, "torch reports it", there)[0] == level


@pytest.mark.parametrize(
    ("asked", "can", "there", "sentence"),
    [
        ("avx2", ALL, ALL, "invalid value UNROLLED_NATIVE='avx2': expected off, v2, v3, v4, neon"),
        (
            "v4",
            ["v2", "v3"],
            ALL,
            r"UNROLLED_NATIVE=v4 needs a processor with AVX-512 \(so it is\); expected off, v2, v3",
        ),
        ("v3", ALL, ["v2"], r"UNROLLED_NATIVE=v3, but the library kernels_v3\.\w+ was not built"),
    ],
)
def test_a_level_that_cannot_be(asked: str, can: list[str], there: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        native.choose(asked, can, "so it is", there)


def test_the_environment_and_a_block_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_NATIVE", "off")
    assert native.loaded().library is None
    assert native.loaded().why == "UNROLLED_NATIVE=off"
    monkeypatch.setenv("UNROLLED_NATIVE", "fast")
    with pytest.raises(UsageError, match="invalid value UNROLLED_NATIVE='fast'"):
        native.loaded()
    with native.using("off") as loaded:
        assert loaded.level == "off"


def test_the_version_of_the_library_is_that_of_the_sources() -> None:
    assert f"#define UNROLLED_ABI {native.ABI} " in (HERE / "native" / "api.h").read_text(encoding="utf-8")


def test_a_library_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if not native.loaded().library:
        pytest.skip("no library was built here")
    native.opened.cache_clear()
    native._loaded.cache_clear()
    monkeypatch.setattr(native, "ABI", -1)
    try:
        found = native.loaded()
        assert found.level == "off"
        assert re.search(r"kernels_\w+\.\w+ has ABI \d+, expected -1: install again", found.why)
        with pytest.raises(UsageError, match=r"UNROLLED_NATIVE=v2, but kernels_v2\.\w+ cannot be used: .*ABI"):
            native._loaded("v2")
    finally:
        monkeypatch.undo()
        native.opened.cache_clear()
        native._loaded.cache_clear()


def test_a_file_that_is_no_library_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for level in native.NEEDS:
        (tmp_path / f"kernels_{level}{native.SUFFIX}").write_bytes(b"no library")
    native.opened.cache_clear()
    native._loaded.cache_clear()
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    try:
        assert "cannot be used" in native.loaded().why
    finally:
        monkeypatch.undo()
        native.opened.cache_clear()
        native._loaded.cache_clear()


def test_a_fault_is_an_error() -> None:
    library = native.loaded().library
    if library is None:
        pytest.skip("no library was built here")
    a = torch.zeros(8)
    with pytest.raises(RuntimeError, match="the kernel diagonal_forward met impossible sizes"):
        native.call(library, "diagonal_forward", 1, 0, 8, a, a, a, a)
    with pytest.raises(RuntimeError, match="the kernel elman_forward met too little room"):
        native.call(library, "elman_forward", 1, 1, 8, 0, a, a, a, a, 1, 1)
    with pytest.raises(RuntimeError, match="the kernel diagonal_forward met a missing array"):
        native.call(library, "diagonal_forward", 1, 1, 8, a, a, None, a)
    assert isinstance(library, ctypes.CDLL)


def test_the_capability_that_torch_is_told_counts() -> None:
    """ATEN_CPU_CAPABILITY=default takes torch's vector code away, and ours with it: the level is not above SSE."""
    code = "from unrolled.kernels import native; print(native.loaded().level)"
    env = {"ATEN_CPU_CAPABILITY": "default", "PYTHONPATH": str(HERE), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() in ("v2", "neon", "off")
