"""What a person sees while models are compared: live lines with sparklines in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from unrolled.comparison.worker import ENDS
from unrolled.pictures.notebook import InPlace, in_notebook
from unrolled.runs.guess import Guessed
from unrolled.training.progress import clock, short_number

if TYPE_CHECKING:
    from unrolled.comparison.plan import Plan

BLOCKS = "▁▂▃▄▅▆▇█"
BUSY = ("running", "evaluating")
WIDTH = 24  # of a sparkline


class View(Protocol):
    """The moments of a comparison that somebody may want to show."""

    def begin(self, plan: Plan, folder: Path, started: float | None = None) -> None: ...
    def event(self, event: dict[str, Any]) -> None: ...
    def say(self, text: str) -> None: ...
    def end(self) -> None: ...


class Silent:
    """Shows nothing."""

    def begin(self, plan: Plan, folder: Path, started: float | None = None) -> None: ...

    def event(self, event: dict[str, Any]) -> None: ...

    def say(self, text: str) -> None: ...

    def end(self) -> None: ...


def sparkline(values: list[float], width: int = WIDTH) -> str:
    """
    >>> sparkline([3.0, 2.0, 1.5, 1.4])
    '█▃▁▁'
    """
    if not values:
        return ""
    n = min(width, len(values))
    shown = [values[i * len(values) // n] for i in range(n - 1)] + [values[-1]]
    low, high = min(shown), max(shown)
    steps = (len(BLOCKS) - 1) / ((high - low) or 1.0)
    return "".join(BLOCKS[int((value - low) * steps)] for value in shown)


@dataclass
class Line:
    """One run as it goes."""

    label: str
    state: str = "waiting"
    share: float = 0.0
    speed: float = 0.0
    curve: list[float] = field(default_factory=list)  # validation scores
    losses: list[float] = field(default_factory=list)  # of training, more often

    def take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "begin":
            self.state = "running"
        elif kind == "step":
            self.share, self.speed = event["share"], event["speed"]
            self.losses.append(event["loss"])
        elif kind == "closing":
            self.state = "evaluating"
        elif kind == "evaluation":
            self.curve.append(next(iter(event["figures"].values())))
        elif kind in ENDS:
            self.state = "not trained: no time for a training step" if kind == "untrained" else event.get("why", kind)
            self.share = 1.0 if kind == "done" else 0.5 if kind == "paused" else self.share


class Lines:
    """Plain lines for logs and pipes: one when a run begins and one when it ends."""

    def __init__(self, to: TextIO | None = None) -> None:
        self.to = to or sys.stderr
        self.lines: dict[str, Line] = {}
        self.noted = set[str]()

    def begin(self, plan: Plan, folder: Path, started: float | None = None) -> None:
        self.lines = {job.folder: Line(job.folder) for job in plan.jobs}
        self.say(headline(plan, folder))

    def _line(self, event: dict[str, Any]) -> Line:
        """The line of a run, which may not have been planned from the beginning."""
        line = self.lines.setdefault(event["folder"], Line(event["folder"]))
        line.take(event)
        return line

    def event(self, event: dict[str, Any]) -> None:
        line = self._line(event)
        if event["event"] == "said" and not self._note(event["text"]):
            self.say(f"{line.label}: {event['text']}")
        elif event["event"] in ENDS:
            score = f"  valid {min(line.curve):.4f}" if line.curve and event["event"] != "untrained" else ""
            self.say(f"{line.label}: {line.state}{score}")

    def _note(self, text: str) -> bool:
        """Whether this is a note, such as one about the data; what every run notes is shown once."""
        if text.startswith("note: ") and text not in self.noted:
            self.noted.add(text)
            self.say(text)
        return text.startswith("note: ")

    def say(self, text: str) -> None:
        print(text, file=self.to, flush=True)

    def end(self) -> None: ...


class Live(Lines):
    """One bar for the whole and a line for every run, in place."""

    def begin(self, plan: Plan, folder: Path, started: float | None = None) -> None:
        from unrolled.pictures.screen import Screen

        self.console = Screen(stderr=True)
        self.lines = {job.folder: Line(job.folder) for job in plan.jobs}
        self.started = time.monotonic() if started is None else started
        self.time = plan.asked.time if plan.asked.steps is None else None
        self.say(headline(plan, folder))
        self.live = self._place()
        self.live.start()

    def _place(self) -> Any:
        """Where it is drawn, again and again."""
        from rich.live import Live as RichLive

        return RichLive(console=self.console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def event(self, event: dict[str, Any]) -> None:
        line = self._line(event)
        if event["event"] in ("failed", "untrained"):
            self.say(f"{line.label}: {line.state}")
        elif event["event"] == "said":
            self._note(event["text"])

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def end(self) -> None:
        self.live.stop()

    def _draw(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        done = sum(line.share for line in self.lines.values()) / len(self.lines)
        passed = time.monotonic() - self.started
        left = self.time - passed if self.time else passed * (1 - done) / done if done > 0.01 else None
        whole = Table.grid(padding=(0, 1))
        rest = f"{clock(left)} left" if left is None or left >= 0 else f"{clock(-left)} over budget, finishing"
        whole.add_row("comparison", ProgressBar(total=1.0, completed=done, width=30), f"{done:.0%}  {rest}")
        table = Table.grid(padding=(0, 2))
        for line in self._shown():
            best = f"{min(line.curve):.4f}" if line.curve else ""
            speed = f"{short_number(line.speed)} positions/s" if line.speed and line.state == "running" else ""
            table.add_row(
                line.label, f"{line.share:>4.0%}", sparkline(line.losses or line.curve), best, speed or line.state[:60]
            )
        return Group(whole, table)

    def _shown(self) -> list[Line]:
        """All runs where they fit, otherwise those at work and the last that ended."""
        room = max(4, self.console.height - 6)
        lines = list(self.lines.values())
        if len(lines) <= room:
            return lines
        busy = [line for line in lines if line.state in BUSY]
        ended = [line for line in lines if line.state not in (*BUSY, "waiting")]
        return [*ended[-(room - len(busy)) :], *busy]


class InNotebook(Live):
    """The same in an output of a notebook, and lines below it."""

    def _place(self) -> Any:
        return InPlace(self._draw)

    def event(self, event: dict[str, Any]) -> None:
        super().event(event)
        self.live.refresh()

    def say(self, text: str) -> None:
        print(text, flush=True)


def headline(plan: Plan, folder: Path) -> str:
    models = list(dict.fromkeys(job.model for job in plan.jobs if job.kind == "model"))
    task = f"task {Guessed(plan.task, plan.guessed) if plan.guessed else plan.task}"
    told = [*(f"recipe: {line}" for line in plan.recipe), *(f"note: {note}" for note in plan.notes)]
    return "\n".join([f"{folder}: {plan.data}, {task}; {', '.join(models)}", *told])


def for_python() -> View:
    """In a notebook somebody watches, in a script nobody may."""
    return InNotebook() if in_notebook() else Silent()


def for_terminal() -> View:
    """Live where somebody watches, lines where a file does."""
    return Live() if sys.stderr.isatty() else Lines()
