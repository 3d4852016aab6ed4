"""The cache under kills, full disks and several processes at once: what is used is whole, nothing is left behind."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import threading
from pathlib import Path
from types import ModuleType

import pytest

TEXT = "the quick brown fox jumps over the lazy dog. " * 40
LOOK = ("data", "text.txt", "--json")


def folder_of(place: Path) -> Path:
    place.mkdir()
    (place / "text.txt").write_text(TEXT)
    return place


def around(folder: Path) -> dict[str, str]:
    return {"UNROLLED_CACHE": str(folder / "cache")}


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "cache" / "tokens").iterdir())


def sweep(server: ModuleType, tmp_path: Path, every: int) -> None:
    """The command is killed before its k-th file call and given again."""
    fine = server.run(*LOOK, cwd=folder_of(tmp_path / "fine"), env=around(tmp_path / "fine"))
    assert fine.code == 0, fine.err
    expected = json.loads(fine.out)
    assert fine.calls > 10
    for k in range(1, fine.calls + 1, every):
        folder = folder_of(tmp_path / f"{k}")
        killed = server.run(*LOOK, cwd=folder, env=around(folder), kill_at=k)
        assert killed.code == -signal.SIGKILL, (k, killed.err)
        again = server.run(*LOOK, cwd=folder, env=around(folder))
        assert again.code == 0, (k, again.err)
        assert json.loads(again.out) == expected, k  # without a note of damage too
        assert entries(folder) == entries(tmp_path / "fine"), k  # what was left is swept at once


def test_a_kill_leaves_nothing_that_is_used(server: ModuleType, tmp_path: Path) -> None:
    sweep(server, tmp_path, every=5)


@pytest.mark.long
def test_a_kill_at_any_file_call_leaves_nothing_that_is_used(server: ModuleType, tmp_path: Path) -> None:
    sweep(server, tmp_path, every=1)


@pytest.mark.long
def test_a_full_disk_at_any_file_call(server: ModuleType, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "full")
    calls = server.run(*LOOK, cwd=folder_of(tmp_path / "fine"), env=around(tmp_path / "fine")).calls
    for k in range(1, calls + 1):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        full = server.run(*LOOK, cwd=folder, env=around(folder), full_at=k)
        assert full.code in (0, 5), (k, full.err)
        assert full.code == 0 or "No space left on device" in full.err, (k, full.err)
        again = server.run(*LOOK, cwd=folder, env=around(folder))
        assert again.code == 0 and len(entries(folder)) == 1, (k, again.err)


def test_clearing_tells_how_much_and_where(server: ModuleType, tmp_path: Path) -> None:
    folder, env = folder_of(tmp_path / "a"), around(tmp_path / "a")
    nothing = server.run("data", "--clear-cache", cwd=folder, env=env)
    assert (nothing.code, "deleted 0 entries of prepared data (0 B)" in nothing.out) == (0, True)
    assert server.run(*LOOK, cwd=folder, env=env).code == 0
    assert stat.S_IMODE((folder / "cache" / "tokens").stat().st_mode) == 0o700
    size = sum(path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file())
    listed = server.run("data", cwd=folder, env=env)
    assert f"in {folder / 'cache'} (at most 2 GB); --clear-cache deletes it" in listed.out
    cleared = server.run("data", "--clear-cache", "--json", cwd=folder, env=env)
    told = {"place": str(folder / "cache"), "removed": 1, "bytes": size, "in_use": 0}
    assert (cleared.code, json.loads(cleared.out)) == (0, told)
    assert entries(folder) == []
    wrong = server.run("data", "text.txt", "--clear-cache", cwd=folder, env=env)
    assert (wrong.code, "takes no other argument" in wrong.err) == (2, True)
    bad = server.run(*LOOK, cwd=folder, env={**env, "UNROLLED_CACHE_LIMIT": "much"})
    assert (bad.code, "UNROLLED_CACHE_LIMIT" in bad.err) == (2, True)


@pytest.mark.long
def test_many_processes_prepare_while_others_clear(server: ModuleType, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "shared")
    env = {**around(folder), "UNROLLED_CACHE_LIMIT": "1 B"}
    expected = server.run(*LOOK, cwd=folder, env=env).out
    ended = []

    def work(number: int) -> None:
        for _ in range(6):
            words = ("data", "--clear-cache") if number == 0 else LOOK
            ended.append((number, server.run(*words, cwd=folder, env=env)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each.code == 0 for _, each in ended), [each.err for _, each in ended]
    assert {each.out for number, each in ended if number} == {expected}
    assert len(entries(folder)) <= 1
