"""What is wrong with a request is one sentence; of an export that fails nothing stays."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from unrolled.core import discover
from unrolled.core.declared import WrongField
from unrolled.core.errors import CannotWrite, DataError, UsageError
from unrolled.core.export import ExportSpec
from unrolled.core.outside import cannot_write
from unrolled.exports.tools.exporting import export
from unrolled.exports.tools.files import write_together
from unrolled.runs.storage import atomic


def test_the_targets_are_found() -> None:
    assert discover.exports.names() == ["onnx", "page", "torch"]
    assert {discover.export(name).suffix for name in discover.exports.names()} == {".onnx", ".html", ".py"}


def test_a_misspelt_target_is_corrected(run_of: Any) -> None:
    with pytest.raises(UsageError, match="there is no export target 'onx'; did you mean 'onnx'"):
        export(run_of("next-token"), "onx")
    with pytest.raises(UsageError, match="did you mean 'page'"):
        export(run_of("next-token"), "html")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        export(tmp_path, "onnx")


def test_a_file_of_another_kind_is_refused(run_of: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.onnx"):
        export(run_of("next-token"), "onnx", tmp_path / "model.html")


def test_an_unknown_setting_is_refused(run_of: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="precision"):
        export(run_of("next-token"), "page", tmp_path / "a.html", {"precision": "int4"})


def test_a_folder_is_not_replaced(run_of: Any, tmp_path: Path) -> None:
    (tmp_path / "a.onnx").mkdir()
    with pytest.raises(CannotWrite, match="is a folder and cannot be replaced"):
        export(run_of("next-token"), "onnx", tmp_path / "a.onnx")


def test_files_that_belong_together_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that is full at the second file neither is there, and an old one stays."""
    (tmp_path / "a").write_text("old")
    store, before = atomic.store, iter([True])

    def full(path: Path, chunks: Any, size: int | None, target: Path) -> Any:
        if next(before, False):
            return store(path, chunks, size, target)
        raise cannot_write(target, size, OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(atomic, "store", full)
    with pytest.raises(CannotWrite) as failed:
        write_together({tmp_path / "a": b"new", tmp_path / "b": b"new"})
    assert failed.value.exit_code == 5
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_wrong_declaration_is_named() -> None:
    good = vars(discover.export("onnx"))
    for name, value in {"summary": 1, "suffix": "onnx", "request": str, "write": print, "why_not": 3}.items():
        if name == "write":
            value = lambda run: None  # noqa: E731
        with pytest.raises(WrongField):
            ExportSpec(**{**good, name: value})
