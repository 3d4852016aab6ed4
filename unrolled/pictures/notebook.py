"""What a notebook shows: pieces of HTML that stand in an output cell, and output that is drawn again in its place.

rich's own live display needs ipywidgets in a notebook; a display that is updated needs nothing but the kernel.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.pictures.draw import html
from unrolled.pictures.kinds import Picture
from unrolled.pictures.markup import STYLE, text

if TYPE_CHECKING:
    from rich.console import RenderableType

EVERY = 0.25  # seconds between two drawings
TABLES = """\
table { border-collapse: collapse; margin: 0; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; white-space: nowrap; max-width: none; }
td.number { text-align: right; }
"""
WIDTH = 100  # columns
PLACE = '<pre style="margin: 0; font-family: ui-monospace, monospace; line-height: 1.2">{code}</pre>'


def fragment(words: Iterable[str], pictures: Sequence[Picture]) -> str:
    """Paragraphs and pictures as one piece of HTML with its own style, which holds for nothing else on the page.

    The class is named twice in its style, so that it counts for more than the style of a notebook's own tables.
    """
    said = "".join(f'<p style="white-space: pre-line">{text(each)}</p>\n' for each in words if each)
    figures = "".join(html(picture) for picture in pictures)
    return f'<div class="unrolled">\n<style>\n.unrolled.unrolled {{\n{STYLE}{TABLES}}}\n</style>\n{said}{figures}</div>'


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


class InPlace:
    """What `draw` gives, in one output of a notebook: shown by `start`, and drawn again by `refresh`."""

    def __init__(self, draw: Callable[[], RenderableType]) -> None:
        self.draw = draw
        self.handle: Any = None
        self.drawn = 0.0

    def start(self) -> None:
        from IPython.display import display

        self.handle = display(self._drawn(), raw=True, display_id=True)

    def refresh(self) -> None:
        """At most some times a second, because every drawing is sent to the browser."""
        if self.handle is not None and time.monotonic() - self.drawn > EVERY:
            self.stop()

    def stop(self) -> None:
        """The last drawing stays."""
        if self.handle is not None:
            self.handle.update(self._drawn(), raw=True)

    def _drawn(self) -> dict[str, str]:
        from unrolled.pictures.screen import Screen

        self.drawn = time.monotonic()
        screen = Screen(file=io.StringIO(), record=True, force_jupyter=False, force_terminal=True, width=WIDTH)
        screen.print(self.draw())
        plain = screen.export_text(clear=False)
        return {
            "text/plain": plain,
            "text/html": screen.export_html(inline_styles=True, code_format=PLACE),
        }
