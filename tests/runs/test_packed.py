"""A run as bytes: the same run again wherever it is unpacked; and files that need not outlast a power cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.storage import atomic
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.packed import pack, unpack

SAVED = Path(__file__).parents[1] / "fixtures" / "runs" / "classify"


def test_a_run_is_the_same_where_it_is_unpacked(tmp_path: Path) -> None:
    files = pack(RunDirectory.open(SAVED))
    assert {"config.json", "model.safetensors", "metrics.jsonl", "MANIFEST.json"} <= set(files)
    unpack(files, tmp_path / "run")
    RunDirectory.open(tmp_path / "run").verify()
    assert pack(RunDirectory.open(tmp_path / "run")) == files
    texts = ["tick state", "layer"]
    assert unrolled.load(tmp_path / "run").predict(texts) == unrolled.load(SAVED).predict(texts)


def test_only_the_files_of_a_run_are_packed_and_only_whole_ones(tmp_path: Path) -> None:
    unpack(pack(RunDirectory.open(SAVED)), tmp_path / "run")
    for name in ("checkpoints/1.safetensors", "tensorboard/events", "notes.txt"):
        (tmp_path / "run" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text("mine")
    assert set(pack(RunDirectory.open(tmp_path / "run"))) == set(pack(RunDirectory.open(SAVED)))
    (tmp_path / "run" / "model.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match=r"model\.safetensors is damaged"):
        pack(RunDirectory.open(tmp_path / "run"))


def test_a_run_is_unpacked_where_nothing_is_and_stays_there(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        unpack({"config.json": b"{}"}, tmp_path)
    for name in ("../config.json", "/config.json", "codec/../../config.json"):
        with pytest.raises(DataError, match="not a path inside a run directory"):
            unpack({name: b"{}"}, tmp_path / "run")


def test_temporary_files_are_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with atomic.temporary():
        atomic.write_text(tmp_path / "a.txt", "a")
    assert synced == []
    assert (tmp_path / "a.txt").read_text() == "a"
    with pytest.raises(ValueError, match="out of it"), atomic.temporary():
        raise ValueError("out of it")
    atomic.write_text(tmp_path / "b.txt", "b")
    assert len(synced) == 2  # the file and its directory
