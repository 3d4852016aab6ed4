"""What a person sees while training: a bar in a terminal, one line per evaluation elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, TextIO

from unrolled.pictures.notebook import InPlace, in_notebook


class Progress(Protocol):
    """The moments of a training run that somebody may want to show."""

    def begin(self, total: float | None) -> None: ...
    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None: ...
    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None: ...
    def sample(
        self, write: Callable[[], str | None]
    ) -> None: ...  # `write` where somebody looks at what a model writes
    def say(self, text: str) -> None: ...
    def end(self) -> None: ...


class Quiet:
    """Shows nothing but keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, total: float | None) -> None: ...

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None: ...

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None: ...

    def sample(self, write: Callable[[], str | None]) -> None: ...

    def say(self, text: str) -> None:
        self.said.append(text)

    def end(self) -> None: ...


class Lines:
    """Plain lines for logs and pipes."""

    def __init__(self, to: TextIO | None = None) -> None:
        self.to = to or sys.stderr

    def begin(self, total: float | None) -> None: ...

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None: ...

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None:
        self.say(_evaluation_text(step, figures, best))

    def sample(self, write: Callable[[], str | None]) -> None: ...

    def say(self, text: str) -> None:
        print(text, file=self.to, flush=True)

    def end(self) -> None: ...


class Bar:
    """A bar with loss, speed, time left and the best score so far."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        from unrolled.pictures.screen import Screen

        self.console = Screen(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[facts]}"),
            console=self.console,
            transient=True,
        )
        self.best = ""
        self.task = self.bar.add_task("training", total=1.0, facts="")

    def begin(self, total: float | None) -> None:
        self.bar.start()

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None:
        facts = f"loss {loss:.3f}  {short_number(tokens_per_second)} positions/s  {clock(left)} left{self.best}"
        self.bar.update(self.task, completed=share, facts=facts)

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None:
        if best:
            self.best = f"  best {next(iter(figures.values())):.4f}"
        self.say(_evaluation_text(step, figures, best))

    def sample(self, write: Callable[[], str | None]) -> None: ...

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def end(self) -> None:
        self.bar.stop()


class NotebookBar(Bar):
    """The same bar in an output of a notebook, and lines below it."""

    def __init__(self) -> None:
        super().__init__()
        self.place = InPlace(lambda: self.bar)

    def begin(self, total: float | None) -> None:
        self.place.start()

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None:
        super().step(share, loss, tokens_per_second, left)
        self.place.refresh()

    def say(self, text: str) -> None:
        print(text, flush=True)

    def end(self) -> None:
        self.place.stop()


def for_python() -> Progress:
    """In a notebook somebody watches, in a script nobody may."""
    return NotebookBar() if in_notebook() else Quiet()


def for_terminal() -> Progress:
    """A bar where somebody watches, lines where a file does."""
    return Bar() if sys.stderr.isatty() else Lines()


def _evaluation_text(step: int, figures: dict[str, float], best: bool) -> str:
    words = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
    return f"step {step:>6}  {words}{'  *' if best else ''}"


def short_number(value: float) -> str:
    """
    >>> short_number(1234567), short_number(43210), short_number(87.3)
    ('1.2 M', '43 k', '87')
    """
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    return f"{value / 1e3:.0f} k" if value >= 1e4 else f"{value:.0f}"


def clock(seconds: float | None) -> str:
    """
    >>> clock(75), clock(3700), clock(None)
    ('1:15', '1:01:40', '?')
    """
    if seconds is None:
        return "?"
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
