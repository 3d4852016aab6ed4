"""Claims on runs: one process makes each, an expired one is taken over by one process, and its owner notices."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from unrolled.comparison import claims
from unrolled.comparison.claims import DEATHS, PLACE, Claims, Ended, Held
from unrolled.core.errors import CannotWrite, Diverged, OutOfMemory
from unrolled.runs.storage import atomic
from unrolled.runs.storage.locks import in_use


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of claims, moved by hand."""
    now = [100.0]
    monkeypatch.setattr(claims, "time", type("clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    return now


def taken(seen: Claims, run: str = "gru-0") -> Held | None:
    return seen.take(run, seen.look().get(run))


def is_free_after(seconds: int, seen: Claims, clock: list[float]) -> bool:
    """As a process sees it that looks every second."""
    for _ in range(seconds):
        seen.is_free("gru-0", seen.look()["gru-0"])
        clock[0] += 1
    return seen.is_free("gru-0", seen.look()["gru-0"])


def test_one_of_many_has_a_claim(tmp_path: Path) -> None:
    everybody = [Claims(tmp_path, 60.0) for _ in range(16)]
    ready = threading.Barrier(16)

    def take(each: Claims) -> bool:
        ready.wait()
        return each.take("gru-0", None) is not None

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(take, everybody)) == 1
    assert [path.name for path in (tmp_path / PLACE).iterdir()] == ["gru-0.1"]


def test_a_link_whose_reply_was_lost_was_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = atomic.os.link

    def lost(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError

    monkeypatch.setattr(atomic.os, "link", lost)
    assert atomic.write_once(tmp_path / "a", b"mine")
    monkeypatch.setattr(atomic.os, "link", link)
    assert not atomic.write_once(tmp_path / "a", b"theirs") and (tmp_path / "a").read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_system_without_links_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(atomic.os, "link", none)
    with pytest.raises(CannotWrite, match="use a file system that has hard links"):
        Claims(tmp_path, 60.0).take("gru-0", None)


def test_a_claim_expires_by_the_clock_of_who_waits(tmp_path: Path, clock: list[float]) -> None:
    """Not by time stamps, for the clocks of machines differ."""
    owner, other = Claims(tmp_path, 60.0), Claims(tmp_path, 60.0)
    assert taken(owner) is not None
    beat = tmp_path / PLACE / "gru-0.1.beat"
    beat.write_bytes(b"1")
    assert not is_free_after(59, other, clock)
    beat.write_bytes(b"2")
    assert not is_free_after(2, other, clock)
    assert not is_free_after(58, other, clock)
    assert is_free_after(3, other, clock)
    late = Claims(tmp_path, 60.0)  # it has not waited yet
    assert not late.is_free("gru-0", late.look()["gru-0"])


def test_who_was_asleep_looks_on_before_a_claim_has_expired(tmp_path: Path, clock: list[float]) -> None:
    """The owner may have slept too, as on a machine that was suspended, and be about to beat."""
    owner, other = Claims(tmp_path, 90.0), Claims(tmp_path, 90.0)
    assert taken(owner) is not None
    beat = tmp_path / PLACE / "gru-0.1.beat"
    beat.write_bytes(b"1")
    assert not is_free_after(5, other, clock)
    clock[0] += 3600
    assert not is_free_after(29, other, clock)
    beat.write_bytes(b"2")
    assert not is_free_after(89, other, clock)
    clock[0] += 3600
    assert not is_free_after(5, other, clock)
    assert is_free_after(26, other, clock)  # it is gone


def test_an_expired_claim_has_one_heir_and_its_owner_notices(tmp_path: Path, clock: list[float]) -> None:
    owner, others = Claims(tmp_path, 0.2), [Claims(tmp_path, 60.0) for _ in range(8)]
    held, lost = taken(owner), threading.Event()
    assert held is not None
    looks = [each.look()["gru-0"] for each in others]
    assert sum(each.take("gru-0", look) is not None for each, look in zip(others, looks)) == 1
    with held.beating(lost.set):
        assert lost.wait(10.0) and held.lost
    assert not (tmp_path / PLACE / "gru-0.2.beat").exists()


def test_a_claim_beats(tmp_path: Path) -> None:
    held = taken(Claims(tmp_path, 0.2))
    assert held is not None
    seen = set()
    with held.beating(lambda: None):
        until = time.monotonic() + 10.0
        while len(seen) < 3 and time.monotonic() < until:
            with_beat = tmp_path / PLACE / "gru-0.1.beat"
            seen |= {with_beat.read_bytes()} if with_beat.exists() else set()
    assert len(seen) == 3 and not held.lost


def test_a_run_whose_process_lives_is_not_taken_over(tmp_path: Path, clock: list[float]) -> None:
    """It was not heard of, but it has the lock of its run."""
    owner, other = Claims(tmp_path, 60.0), Claims(tmp_path, 60.0)
    assert taken(owner) is not None
    with in_use(tmp_path / "gru-0"):
        assert not is_free_after(59, other, clock) and not other.silent
        assert not is_free_after(3, other, clock) and other.silent == {"gru-0": 1}
    assert other.is_free("gru-0", other.look()["gru-0"])


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_run_that_is_given_back_is_free_at_once(tmp_path: Path, end: str) -> None:
    seen = Claims(tmp_path, 60.0)
    held = taken(seen)
    assert held is not None
    held.end(Ended(event=end))
    last = seen.look()["gru-0"]
    assert seen.outcome("gru-0", last) is None and seen.is_free("gru-0", last)
    again = taken(seen)
    assert again is not None and again.claim.deaths == (1 if end == "killed" else 0)


def test_a_run_that_no_process_survives_is_given_up(tmp_path: Path) -> None:
    """Unless it comes further each time."""
    seen = Claims(tmp_path, 60.0)
    for death in range(DEATHS + 1):
        held = taken(seen)
        assert held is not None and held.is_hopeless == (death >= DEATHS)
        held.end(Ended(event="killed"))
    place = tmp_path / "gru-0" / "checkpoints"
    place.mkdir(parents=True)
    (place / "latest").write_text('{"checkpoint": "step-00000100"}')
    held = taken(seen)
    assert held is not None and not held.is_hopeless


def test_what_is_kept_of_an_end(tmp_path: Path) -> None:
    assert claims.kept({"event": "done", "rest": 0.5, "folder": "gru-0"}) == Ended(event="done")
    event = {"event": "failed", "why": "NaN", "folder": "gru-0"}
    assert claims.kept({**event, "code": Diverged.exit_code}).is_final
    assert claims.kept({**event, "code": OutOfMemory.exit_code}).event == "killed"
    assert claims.kept({**event, "code": CannotWrite.exit_code}).event == "stopped"
    seen = Claims(tmp_path, 60.0)
    held = taken(seen)
    assert held is not None
    held.end(Ended(event="failed", why="NaN", code=4))
    assert seen.outcome("gru-0", seen.look()["gru-0"]) == Ended(event="failed", why="NaN", code=4)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"event": "step"}', '{"event": ["done"]}', "\x00" * 100])
def test_files_that_are_no_claims_make_nothing_wrong(tmp_path: Path, text: str) -> None:
    """A run is done again where its end cannot be read; nothing of it is shown."""
    seen = Claims(tmp_path, 60.0)
    for name in ("gru-0.1", "gru-0.1.end", "gru-0.1.beat", "other", "gru-0.x", "gru-0.99999999999.end"):
        (tmp_path / PLACE / name).write_text(text)
    last = seen.look()["gru-0"]
    assert set(seen.look()) == {"gru-0"} and last.number == 1
    assert seen.outcome("gru-0", last) is None and seen.is_free("gru-0", last)
    assert taken(seen) is not None
    assert "process" in seen.owner("gru-0", last)
