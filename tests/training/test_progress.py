"""What a person sees while training: lines in a log, a bar in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from unrolled.pictures.screen import Screen
from unrolled.training import progress
from unrolled.training.progress import Bar, Lines, NotebookBar, Quiet, clock, for_python, for_terminal, short_number


class Watched(io.StringIO):
    """A stream that counts how often it was flushed."""

    flushes = 0

    def flush(self) -> None:
        self.flushes += 1


def test_lines_for_a_log_come_at_once() -> None:
    log = Watched()
    lines = Lines(log)
    lines.begin(None)
    lines.step(0.5, 1.0, 10.0, 3.0)
    lines.evaluation(20, {"nats": 1.25, "train": 1.5}, best=True)
    lines.evaluation(1234567, {"nats": 1.5}, best=False)
    lines.say("note: [b]x[/b]")
    lines.end()
    assert log.getvalue().splitlines() == [
        "step     20  nats 1.2500  train 1.5000  *", "step 1234567  nats 1.5000", "note: [b]x[/b]",
    ]  # fmt: skip
    assert log.flushes >= 3


def test_a_bar_shows_where_it_is_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        "unrolled.pictures.screen.Screen", lambda stderr: Screen(file=screen, force_terminal=True, width=100)
    )
    bar = Bar()
    bar.begin(None)
    bar.evaluation(10, {"nats": 2.5}, best=True)
    bar.evaluation(20, {"nats": 3.5}, best=False)
    bar.step(0.25, 2.3456, 43_210.0, 75.0)
    assert bar.bar.tasks[0].percentage == 25
    assert bar.bar.tasks[0].fields["facts"] == "loss 2.346  43 k positions/s  1:15 left  best 2.5000"
    bar.say("note: [b]x[/b]")
    bar.end()
    assert bar.bar.finished is False
    assert bar.bar.live.is_started is False
    shown = screen.getvalue()
    assert "note: [b]x[/b]" in shown
    assert shown.index("nats 2.5000  *") < shown.index("nats 3.5000")


def test_who_watches_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    for watched, kind in ((True, Bar), (False, Lines)):
        monkeypatch.setattr(progress.sys.stderr, "isatty", lambda watched=watched: watched, raising=False)
        assert isinstance(for_terminal(), kind)


def test_a_notebook_shows_a_bar_and_a_script_nothing(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert isinstance(for_python(), Quiet)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    bar = for_python()
    assert isinstance(bar, NotebookBar)
    seen: list[str] = []
    monkeypatch.setattr(bar.place, "start", lambda: seen.append("start"))
    monkeypatch.setattr(bar.place, "refresh", lambda: seen.append("refresh"))
    monkeypatch.setattr(bar.place, "stop", lambda: seen.append("stop"))
    bar.begin(None)
    bar.step(0.25, 2.0, 100.0, 75.0)
    bar.evaluation(10, {"nats": 2.5}, best=True)
    bar.say("note: x")
    bar.end()
    assert seen == ["start", "refresh", "stop"]
    assert bar.bar.tasks[0].percentage == 25
    assert bar.place.draw() is bar.bar
    assert capsys.readouterr().out.splitlines() == ["step     10  nats 2.5000  *", "note: x"]


def test_a_quiet_one_remembers() -> None:
    quiet = Quiet()
    quiet.say("one")
    quiet.evaluation(1, {}, best=True)
    quiet.say("two")
    assert quiet.said == ["one", "two"]


@pytest.mark.parametrize(("seconds", "shown"), [
    (0, "0:00"), (-3, "0:00"), (59.9, "0:59"), (60, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (7384, "2:03:04"),
])  # fmt: skip
def test_clocks(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@pytest.mark.parametrize(("value", "shown"), [
    (0, "0"), (9_999, "9999"), (10_000, "10 k"), (999_499, "999 k"), (1e6, "1.0 M"), (2.55e6, "2.5 M"),
])  # fmt: skip
def test_short_numbers(value: float, shown: str) -> None:
    assert short_number(value) == shown
