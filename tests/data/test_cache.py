"""The cache of prepared data: never wrong, private, limited in size, and safe to share and to clear."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unrolled.core.errors import CannotWrite, UsageError
from unrolled.data.config import DataConfig
from unrolled.data.prepare import prepare
from unrolled.data.prepared import Prepared
from unrolled.data.storage import cache, store

ROWS = [f"row {i} of the table" for i in range(60)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tokens"


def held(data: Prepared) -> dict[str, list[object]]:
    """All that training reads of prepared data, as plain values."""
    return {
        name: [section.values("target").tolist(), section.lengths("target").tolist(), section.counts, section.is_stream]
        for name, section in data.sections.items()
    } | {"codec": [data.codecs["text"].to_json()], "labels": list(data.told["labels"])}


def entry_of(home: Path) -> Path:
    (entry,) = home.iterdir()
    return entry


# ---- damage


def damages(entry: Path) -> dict[str, Callable[[], None]]:
    """Ways to damage an entry without a change of its sizes, and with one."""
    tokens, index = entry / "train.target", entry / "index.json"

    def shuffle() -> None:
        values = np.fromfile(tokens, np.uint16)
        np.random.default_rng(0).permutation(values).tofile(tokens)

    def flip(path: Path) -> Callable[[], None]:
        def damage() -> None:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)

        return damage

    def swap() -> None:
        other = entry / "train.rows"
        first, second = tokens.read_bytes(), other.read_bytes()
        tokens.write_bytes(second), other.write_bytes(first)

    def as_link() -> None:
        shutil.copy(tokens, entry.parent.parent / "elsewhere")
        tokens.unlink()
        tokens.symlink_to(entry.parent.parent / "elsewhere")

    def as_file() -> None:
        shutil.rmtree(entry)
        entry.write_text("no directory")

    def as_linked_directory() -> None:
        entry.rename(entry.parent.parent / "moved")
        entry.symlink_to(entry.parent.parent / "moved")

    def pipe() -> None:
        tokens.unlink()
        os.mkfifo(tokens)

    return {
        "shuffled": shuffle,
        **{f"a bit of {path.name}": flip(path) for path in sorted(entry.iterdir()) if path.stat().st_size},
        "swapped": swap,
        "cut": lambda: tokens.write_bytes(b"xx"),
        "emptied": lambda: index.write_bytes(b""),
        "no JSON": lambda: index.write_text("{"),
        "another list": lambda: index.write_text("[1]"),
        "a key less": lambda: index.write_text(json.dumps({"format": store.FORMAT})),
        "missing": tokens.unlink,
        "not an index": index.unlink,
        "no seal": (entry / "index.sha256").unlink,
        "a link": as_link,
        "a pipe": pipe,
        "a file": as_file,
        "a linked directory": as_linked_directory,
    }


def test_a_damaged_entry_is_found_and_prepared_again_with_a_note(home: Path) -> None:
    expected = held(prepare(ROWS, DataConfig()))
    entry = entry_of(home)
    for name in damages(entry):
        damages(entry)[name]()  # anew, because the entry is another one now
        data = prepare(ROWS, DataConfig())
        assert held(data) == expected, name
        assert any("was damaged" in note and "prepared again" in note for note in data.facts["notes"]), name
        again = prepare(ROWS, DataConfig())
        assert (held(again), again.facts["notes"]) == (expected, []), name
    assert [path.name for path in home.iterdir()] == [entry.name]


def test_an_entry_of_an_earlier_version_is_replaced_without_a_note(home: Path) -> None:
    expected = held(prepare(ROWS, DataConfig()))
    entry = entry_of(home)
    (entry / "index.sha256").unlink()
    (entry / "index.json").write_text(json.dumps({"format": 1, "sizes": {}, "sections": {}}))
    data = prepare(ROWS, DataConfig())
    assert (held(data), data.facts["notes"]) == (expected, [])
    assert (entry / "index.sha256").exists()


@pytest.mark.parametrize("number", [1, 2, 4, 10**30, True, "3", None, 3.5, [3]])
def test_an_entry_of_another_format_is_replaced_without_a_note(home: Path, number: object) -> None:
    expected = held(prepare(ROWS, DataConfig()))
    entry = entry_of(home)
    values = json.loads((entry / "index.json").read_text())
    assert values["format"] == store.FORMAT
    (entry / "index.json").write_text(json.dumps({**values, "format": number, "splits": "of another kind"}))
    digest = hashlib.sha256((entry / "index.json").read_bytes()).hexdigest()
    (entry / "index.sha256").write_text(f"{digest}  index.json\n")
    data = prepare(ROWS, DataConfig())
    assert (held(data), data.facts["notes"]) == (expected, [])
    assert json.loads((entry / "index.json").read_text()) == values


def test_what_was_written_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    def worn(self: store.SealedFile, data: bytes) -> None:  # a disk that loses bits
        self._file.write(bytes(len(data)))
        self._digest.update(data)
        self.size += len(data)

    monkeypatch.setattr(store.SealedFile, "write", worn)
    with pytest.raises(CannotWrite, match="cannot be read back"):
        prepare(ROWS, DataConfig())
    assert list(home.iterdir()) == []


# ---- who may look into it


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_the_cache_is_private_whatever_was_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        home.mkdir(parents=True)
        for place in (home, home.parent):
            place.chmod(0o777)
        prepare(ROWS, DataConfig())
    finally:
        os.umask(before)
    for place in (home.parent, home, *home.rglob("*")):
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600), place
    home.chmod(0o755)
    prepare(ROWS, DataConfig())  # what is there is found, and made private again
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_directory_with_other_things_in_it_keeps_its_rights(home: Path) -> None:
    home.parent.mkdir()
    (home.parent / "notes.txt").write_text("mine")
    home.parent.chmod(0o755)
    prepare(ROWS, DataConfig())
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="owners of POSIX")
def test_a_directory_of_another_user_or_a_planted_link_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    home.parent.mkdir()
    home.symlink_to(tmp_path / "theirs")
    with pytest.raises(CannotWrite, match="tokens: this is a link, expected a directory"):
        prepare(ROWS, DataConfig())
    assert list((tmp_path / "theirs").iterdir()) == []
    home.unlink()
    prepare(ROWS, DataConfig())
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(CannotWrite, match="belongs to another user"):
        prepare(ROWS, DataConfig())
    with pytest.raises(CannotWrite, match="belongs to another user"):
        cache.clear()


# ---- its size


def key(number: int) -> str:
    return f"{number:032x}"


def put(number: int, size: int = 1000) -> store.Entry:
    def fill(draft: store.Draft) -> None:
        draft.write("data", bytes(size))
        draft.finish({"number": number})

    return store.write(key(number), fill)


def numbers() -> list[int]:
    return sorted(int(entry.place.name, 16) for entry in cache.kept())


def used_at(number: int, seconds: float) -> None:
    os.utime(cache.place_of(key(number)) / "index.json", (seconds, seconds))


def test_the_least_recently_used_are_evicted_and_never_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_CACHE_LIMIT", "none")
    for number in range(4):
        put(number)
        used_at(number, 1e9 + number)
    assert store.read(key(0)) is not None  # used now
    monkeypatch.setenv("UNROLLED_CACHE_LIMIT", "4 kB")
    put(4)
    assert numbers() == [0, 3, 4]
    monkeypatch.setenv("UNROLLED_CACHE_LIMIT", "0")
    put(5, size=100_000)
    assert numbers() == [5]


def test_what_is_in_use_is_neither_evicted_nor_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_CACHE_LIMIT", "1B")
    mine = put(0)
    used_at(0, 1.0)
    part = mine.array("data", "uint16")[10:]  # a view is enough
    del mine
    put(1)
    assert numbers() == [0, 1]
    assert cache.clear()[::2] == (1, 1)
    assert numbers() == [0]
    assert part.sum() == 0
    del part
    assert cache.clear()[::2] == (1, 0)
    assert numbers() == []


def test_the_limit_is_read_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in (("500 MB", 500 * 10**6), ("2gb", 2 * 10**9), ("1.5k", 1500), ("7", 7), ("none", None),
                           ("", 2 * 10**9)):  # fmt: skip
        monkeypatch.setenv("UNROLLED_CACHE_LIMIT", text)
        assert cache.limit() == expected
    for text in ("much", "-1", "2 GiB", "1e9", "inf", "٣", "\x1b[1m"):
        monkeypatch.setenv("UNROLLED_CACHE_LIMIT", text)
        with pytest.raises(UsageError, match="invalid value UNROLLED_CACHE_LIMIT") as caught:
            prepare(ROWS, DataConfig())
        assert "\x1b" not in str(caught.value)


# ---- clearing


def test_clearing_tells_what_was_removed_and_touches_nothing_else(home: Path) -> None:
    assert cache.clear() == (0, 0, 0)
    assert not home.exists()
    prepare(ROWS, DataConfig())
    prepare(ROWS[1:], DataConfig())
    (home / "my notes").mkdir()
    (home / "my notes" / "a.txt").write_text("kept")
    dead = home / f"{key(1)}.0123.part"
    dead.mkdir()
    (dead / "train.target").write_bytes(b"half")
    size = sum(path.stat().st_size for place in home.glob("?" * 32) for path in place.iterdir())
    assert cache.clear() == (2, size, 0)
    assert [path.name for path in home.iterdir()] == ["my notes"]
    assert (home / "my notes" / "a.txt").exists()


# ---- several processes


def test_the_first_to_finish_wins(home: Path) -> None:
    def fill(draft: store.Draft) -> None:
        draft.write("data", b"the same")
        draft.finish({"by": "fast"})

    def slowly(draft: store.Draft) -> None:
        store.write(key(1), fill)
        draft.write("data", b"the same")
        draft.finish({"by": "slow"})

    assert store.write(key(1), slowly).index["by"] == "fast"
    found = store.read(key(1))
    assert found is not None and found.index["by"] == "fast"
    assert [path.name for path in home.iterdir()] == [key(1)]


def test_what_is_being_written_is_not_swept_and_what_was_left_is(home: Path) -> None:
    def fill(draft: store.Draft) -> None:
        draft.write("data", b"mine")
        left = home / f"{key(2)}.left.part"
        left.mkdir()
        put(3)  # sweeps
        assert not left.exists()
        assert cache.clear().in_use == 0
        assert draft.directory.exists()
        draft.finish({})

    store.write(key(1), fill)
    assert numbers() == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_preparing_while_others_clear_and_evict(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_CACHE_LIMIT", "1 B")
    expected = [held(prepare(ROWS[i:], DataConfig())) for i in range(3)]
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                stop = time.monotonic() + 0.7
                while time.monotonic() < stop:
                    if number == 0:
                        cache.clear()
                    else:
                        data = prepare(ROWS[number - 1 :], DataConfig())
                        assert held(data) == expected[number - 1]
                        assert data.facts["notes"] == []
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    cache.clear()
    assert list(home.iterdir()) == []
