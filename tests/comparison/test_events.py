"""What happens in a comparison, as a file that others read while it grows."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

import unrolled
from unrolled.comparison import events
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.events import EVENTS, Recorded, read_events, retold
from unrolled.comparison.plan import Job, Plan
from unrolled.comparison.view import Silent
from unrolled.comparison.worker import ENDS, Reporter
from unrolled.training import loop

TINY = {
    "models": "lstm", "steps": 4, "evaluate_every": 2, "d_state": 8, "d_embedding": 4, "batch_size": 4, "threads": 1,
}  # fmt: skip
WORDS = (("cat", "dog", "bird"), ("sees", "likes"), "abcdefgh")
LINES = [f"{who} {what} the {whom}" for who in WORDS[0] for what in WORDS[1] for whom in WORDS[2]]
PLAN = Plan(
    data="/home/somebody/lines.txt", task="next-token", guessed=None, asked=CompareConfig(), settings={}, at_once=1,
    threads=1, jobs=[Job(folder="lstm-0", label="lstm", kind="model", model="lstm")],
)  # fmt: skip


class Noted(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def compared(folder: Path) -> list[dict[str, Any]]:
    unrolled.compare(LINES, "next-token", out=folder, settings=TINY, view=Silent())
    return read_events(folder)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("comparisons") / "lines"
    compared(place)
    return place


def test_every_run_of_the_plan_begins_and_ends(folder: Path) -> None:
    found, place = read_events(folder)
    plan = found[0]
    runs = {run["folder"] for run in plan["runs"]}
    assert plan["event"] == "plan" and plan["task"] == "next-token" and plan["steps"] == 4 and plan["budget"] is None
    assert runs == {event["folder"] for event in found if event["event"] == "begin"}
    assert runs == {event["folder"] for event in found if event["event"] in ENDS}
    assert place == (folder / EVENTS).stat().st_size
    assert [event["at"] for event in found] == sorted(event["at"] for event in found)


def test_scores_are_those_of_the_table(folder: Path) -> None:
    table = json.loads((folder / "table.json").read_text())
    told = {event["folder"]: event["valid"] for event in read_events(folder)[0] if event["event"] == "done"}
    rows = {row["runs"][0]: row["valid"] for row in table["rows"] if row["runs"]}
    assert rows and rows == {run: told[run] for run in rows}
    curve = [event["figures"]["nats"] for event in read_events(folder)[0] if event["event"] == "evaluation"]
    assert min(curve) == pytest.approx(told["lstm-0"])


def test_models_that_write_are_heard_at_evaluations(folder: Path) -> None:
    texts = [event for event in read_events(folder)[0] if event["event"] == "sample"]
    assert {event["folder"] for event in texts} == {"lstm-0", "memoryless-0"}  # no baseline
    assert all(0 < len(event["text"]) <= 60 for event in texts)


def test_writing_changes_nothing_of_the_training(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "written", lambda task, model: None)
    found = compared(tmp_path / "silent")
    assert not [event for event in found if event["event"] == "sample"]
    lines = [
        [json.loads(line) for line in (place / "lstm-0" / "metrics.jsonl").read_text().splitlines()]
        for place in (folder, tmp_path / "silent")
    ]
    one, other = [[{**line, "seconds": 0} for line in each] for each in lines]
    assert one == other


def test_texts_have_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("unrolled.comparison.worker.time.monotonic", lambda: now[0])
    told: list[dict[str, Any]] = []
    reporter = Reporter(told.append)

    def write() -> str:
        now[0] += 1.0
        return "text"

    for second in range(1000):
        now[0] = max(now[0], float(second))
        reporter.sample(write)
    assert 15 <= len(told) <= 22  # 2 % of 1000 seconds


def test_a_place_in_the_file_is_where_a_later_look_begins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, end = read_events(folder)
    monkeypatch.setattr(events, "AT_ONCE", 700)
    found, place = [], 0
    while place < end:
        some, place = read_events(folder, place)
        assert some
        found += some
    assert found == whole and read_events(folder, end) == ([], end)
    assert read_events(folder / "nowhere") == ([], 0)


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / EVENTS
    file.write_bytes(b'{"event": "note", "text": "a"}\n[1]\n{"no": 1}\n\xff\n{"event": "no')
    found, place = read_events(tmp_path)
    assert [event["text"] for event in found] == ["a"]
    with file.open("ab") as more:
        more.write(b'te", "text": "b"}\n')
    assert [event["text"] for event in read_events(tmp_path, place)[0]] == ["b"]


def test_a_comparison_that_is_resumed_adds_behind_a_line_that_was_cut(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_bytes(b'{"event": "note", "text": "a"}\n{"event": "no')
    view = Recorded(Silent())
    view.begin(PLAN, tmp_path)
    view.end()
    assert [event["event"] for event in read_events(tmp_path)[0]] == ["note", "plan"]
    assert read_events(tmp_path)[0][1]["data"] == "lines.txt"  # and not its place


def test_a_comparison_that_kept_no_events_is_retold_from_its_runs(folder: Path, tmp_path: Path) -> None:
    told = retold(folder)
    kept = read_events(folder)[0]
    assert told[0]["runs"] == kept[0]["runs"]
    for kind in ("evaluation", "done"):
        assert [_figures(event) for event in told if event["event"] == kind and "lstm" in event["folder"]] == [
            _figures(event) for event in kept if event["event"] == kind and "lstm" in event["folder"]
        ]
    assert retold(tmp_path) == []


def _figures(event: dict[str, Any]) -> Any:
    return {"nats": event["figures"]["nats"]} if event["event"] == "evaluation" else event["valid"]


def test_steps_are_thinned_and_a_full_disk_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Noted()
    view = Recorded(noted)
    view.folder, view.file = tmp_path, os.open(tmp_path / EVENTS, os.O_WRONLY | os.O_CREAT)
    for _ in range(100):
        view.event({"event": "step", "folder": "lstm-0", "share": 0.1, "loss": 1.0, "speed": 1.0})
    assert len(read_events(tmp_path)[0]) == 1
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if data.endswith(b"\n") and b"note" in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(events.os, "write", full)
    view.say("one")
    view.say("two")
    view.end()
    assert noted.said == [f"note: {EVENTS} is no longer written (No space left on device)", "one", "two"]
