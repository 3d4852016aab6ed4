"""What a person sees: lines in a log, a live screen in a terminal."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from unrolled.comparison import view as views
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.engine import Inline
from unrolled.comparison.plan import Job, Plan
from unrolled.comparison.view import InNotebook, Lines, Live, Silent, for_python, sparkline
from unrolled.training.signals import StopFlag

PLAN = Plan(
    data="poems.txt", task="next-token", guessed="text can always be continued", asked=CompareConfig(), settings={},
    at_once=1, threads=1,
    jobs=[Job(folder=f"{name}-0", label=name, kind="model", model=name) for name in ("lstm", "gru")],
)  # fmt: skip
EVENTS = [
    {"event": "begin", "folder": "lstm-0"},
    {"event": "evaluation", "folder": "lstm-0", "step": 0, "figures": {"nats": 3.0}},
    {"event": "step", "folder": "lstm-0", "share": 0.4, "loss": 2.5, "speed": 12345.0},
    {"event": "step", "folder": "lstm-0", "share": 0.5, "loss": 2.0, "speed": 12345.0},
    {"event": "evaluation", "folder": "lstm-0", "step": 9, "figures": {"nats": 1.5}},
    {"event": "begin", "folder": "gru-0"},
    {"event": "failed", "folder": "gru-0", "why": "memory ran out"},
]


def test_a_sparkline_keeps_first_and_last():
    line = sparkline([float(100 - i) for i in range(100)], width=10)
    assert len(line) == 10 and line[0] == "█" and line[-1] == "▁"
    assert sparkline([]) == "" and sparkline([1.0, 1.0]) == "▁▁"


def test_lines_tell_what_was_guessed_and_how_runs_end():
    out = io.StringIO()
    view = Lines(out)
    view.begin(PLAN, Path("comparisons/poems"))
    for event in [*EVENTS, {"event": "done", "folder": "lstm-0"}]:
        view.event(event)
    text = out.getvalue()
    assert 'guessed because text can always be continued; override with task="NAME"' in text
    assert "gru-0: memory ran out" in text
    assert "lstm-0: done  valid 1.5000" in text


@pytest.mark.parametrize("live", [False, True])
def test_what_every_run_notes_is_told_once(live, capsys):
    view = Live() if live else Lines()
    view.begin(PLAN, Path("comparisons/poems"))
    for folder in ("lstm-0", "gru-0"):
        view.event({"event": "said", "folder": folder, "text": "note: the input is column text"})
    view.end()
    assert capsys.readouterr().err.count("note: the input is column text") == 1


def test_the_live_screen_shows_a_bar_and_a_line_for_each_run():
    view = Live()
    view.begin(PLAN, Path("comparisons/poems"))
    for event in EVENTS:
        view.event(event)
    view.end()
    screen = Console(width=100, file=io.StringIO(), record=True)
    screen.print(view._draw())
    text = screen.export_text()
    assert "comparison" in text and "left" in text
    assert "lstm-0" in text and "50%" in text and "█▁" in text and "12 k positions/s" in text
    assert "memory ran out" in text


def test_a_notebook_shows_the_same_in_its_place(monkeypatch, capsys):
    assert isinstance(for_python(), Silent)
    monkeypatch.setattr(views, "in_notebook", lambda: True)
    view, seen = for_python(), []
    assert isinstance(view, InNotebook)
    place = {name: lambda name=name: seen.append(name) for name in ("start", "refresh", "stop")}
    monkeypatch.setattr(views, "InPlace", lambda draw: SimpleNamespace(draw=draw, **place))
    view.begin(PLAN, Path("comparisons/poems"))
    for event in EVENTS:
        view.event(event)
    view.end()
    assert seen == ["start", *["refresh"] * len(EVENTS), "stop"]
    assert view.live.draw() is not None
    out = capsys.readouterr().out
    assert out.startswith("comparisons/poems: poems.txt") and "gru-0: memory ran out" in out


def test_what_happens_in_this_process_is_seen_at_once(monkeypatch):
    seen = []

    def perform(order, data, tell):
        tell({"event": "step", "share": 0.5})
        seen.append(f"{order['folder']} works on {data}")
        tell({"event": "done", "rest": 0.0})

    monkeypatch.setattr("unrolled.comparison.engine.perform", perform)
    engine = Inline("rows", lambda event: seen.append((event["folder"], event["event"])))
    for event in engine.events([{"folder": "a"}, {"folder": "b"}], StopFlag()):
        seen.append((event["folder"], event["event"]))
    assert seen == [
        each for run in "ab" for each in ((run, "begin"), (run, "step"), f"{run} works on rows", (run, "done"))
    ]
