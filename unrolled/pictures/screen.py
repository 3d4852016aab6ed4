"""The console that draws for a terminal: rich, with all text from data made safe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from unrolled.pictures.letters import UNSAFE, clean


class Screen(Console):
    """A console on which only its own codes steer the terminal, never those within a text; no text is markup."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of what is to be shown; those that are text are cleaned, wherever they come from."""
        for segment in super().render(renderable, options):
            unsafe = not segment.control and UNSAFE.search(segment.text)
            yield Segment(clean(segment.text), segment.style) if unsafe else segment

    def render_str(self, text: str, **settings: Any) -> Text:  # type: ignore[override]
        """Text of a table or a line, cleaned before its width is measured."""
        return super().render_str(clean(text), **{**settings, "markup": False, "emoji": False})
