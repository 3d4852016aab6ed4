"""The trials themselves: faults come where they are asked for."""

from __future__ import annotations

import signal
from pathlib import Path
from types import ModuleType

TEXT = "the quick brown fox jumps over the lazy dog. " * 40


def train(folder: Path) -> tuple[object, ...]:
    """A tiny run in a folder of its own."""
    folder.mkdir()
    (folder / "text.txt").write_text(TEXT)
    return "train", "text.txt", "--model", "elman", "--steps", 1, "--set", "d_state=4", "--out", "run"


def test_a_trial_is_counted_killed_and_refused_room(server: ModuleType, tmp_path: Path) -> None:
    fine = server.run(*train(tmp_path / "fine"), cwd=tmp_path / "fine")
    assert fine.code == 0, fine.err
    assert fine.calls > 20
    assert str(tmp_path / "fine" / "text.txt") in fine.opened
    killed = server.run(*train(tmp_path / "killed"), cwd=tmp_path / "killed", kill_at=60)
    assert (killed.code, killed.calls) == (-signal.SIGKILL, 60)
    full = server.run(*train(tmp_path / "full"), cwd=tmp_path / "full", full_at=5)
    assert full.code == 5, full.err
    assert "No space left" in full.err


def test_a_trial_has_a_limit_of_time_and_gets_signals(server: ModuleType, tmp_path: Path) -> None:
    words = [*train(tmp_path / "late")]
    words[words.index("--steps") + 1] = 10**6
    late = server.run(*words, cwd=tmp_path / "late", seconds=2)
    assert late.late and late.code == -signal.SIGKILL
    words[words.index("--out") + 1] = "other"
    asked = server.run(*words, cwd=tmp_path / "late", after=(2, signal.SIGTERM), seconds=30)
    assert (asked.code, asked.late) == (75, False), asked.err
