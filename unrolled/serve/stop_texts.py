"""Texts that end at given words, while they are written. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence


class StopTexts:
    """What may be the beginning of a stop is held back until it is known.

    >>> text = StopTexts(["END"])
    >>> text.push("one E"), text.push("N"), text.push("other"), text.push("END more"), text.found
    ('one ', '', 'ENother', '', True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._held = list(stops), ""
        self.found = False

    def push(self, piece: str) -> str:
        """What is certain to be part of the text."""
        if self.found:
            return ""
        text = self._held + piece
        places = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            self.found, self._held = True, ""
            return text[: min(places)]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self) -> str:
        """What was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """How many letters at the end of a text are the beginning of a stop."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
