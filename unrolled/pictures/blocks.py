"""A plot in the letters of a terminal: lines of dots (Braille, two by four to a letter) over shaded bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from unrolled.pictures.kinds import Plot, Series
from unrolled.pictures.letters import clean, rounded_number, shortened

if TYPE_CHECKING:
    from rich.text import Text

SHADES = "░▒▓"
COLOURS = ("cyan", "yellow", "green", "magenta")
HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a letter
Grid = list[list[str]]
Place = Callable[[float], float]

MARGIN = 10  # letters beside the plot, for its numbers


def plotted(picture: Plot, width: int = 78, height: int = 16) -> Text:
    """What rich prints; empty where there is nothing to draw."""
    from rich.text import Text

    across, down = max(width - MARGIN, 20), max(height, 4)
    numbers = [v for s in picture.series for part in (s.y, s.low or [], s.high or []) for v in part if v is not None]
    places = [x for s in picture.series for x in s.x]
    numbers = [value for value in numbers if math.isfinite(value)]
    if not numbers or not places:
        return Text()
    left, right, low, high = min(places), max(places), min(numbers), max(numbers)
    right, high = right + (right == left), high + (high == low)

    def column(x: float) -> float:
        return (x - left) / (right - left) * (across - 1)

    def row(y: float) -> float:
        return (high - y) / (high - low) * (down - 1)

    letters = [[" "] * across for _ in range(down)]
    styles = [[""] * across for _ in range(down)]
    shade = 0
    for series in picture.series:
        if series.style == "band":
            _shade(letters, styles, series, column, row, SHADES[shade % len(SHADES)])
            shade += 1
    number = 0
    for series in picture.series:
        if series.style != "band":
            _draw(letters, styles, series, column, row, COLOURS[number % len(COLOURS)])
            number += 1
    said = Text().append(f"{clean(picture.title)}\n", style="bold")
    for i, (line, tints) in enumerate(zip(letters, styles)):
        at = high - (high - low) * i / (down - 1)
        mark = rounded_number(at, 4) if i in (0, down // 2, down - 1) else ""
        said.append(f"{mark:>{MARGIN - 2}} │", style="dim")
        for letter, tint in zip(line, tints):
            said.append(letter, style=tint)
        said.append("\n")
    said.append(_axis(picture, left, right, across), style="dim")
    return said.append_text(_legend(picture))


def _shade(letters: Grid, styles: Grid, series: Series, column: Place, row: Place, shade: str) -> None:
    for k, x in enumerate(series.x):
        low, high = (series.low or series.y)[k], (series.high or series.y)[k]
        if low is None or high is None:
            continue
        end = column(series.x[k + 1]) if k + 1 < len(series.x) else column(x) + 1
        for c in range(math.floor(column(x)), max(math.ceil(end), math.floor(column(x)) + 1)):
            for r in range(round(row(high)), round(row(low)) + 1):
                if 0 <= c < len(letters[0]) and 0 <= r < len(letters):
                    letters[r][c], styles[r][c] = shade, "yellow dim"


def _draw(letters: Grid, styles: Grid, series: Series, column: Place, row: Place, colour: str) -> None:
    """A line by its dots; a gap where a value is missing."""
    before: tuple[float, float] | None = None
    for x, y in zip(series.x, series.y):
        if y is None or not math.isfinite(y):
            before = None
            continue
        here = 2 * column(x), 4 * row(y)
        first = here if before is None else before
        n = max(1, math.ceil(max(abs(here[0] - first[0]), abs(here[1] - first[1]))))
        for k in range(n + 1):
            x_k, y_k = (a + (b - a) * k / n for a, b in zip(first, here))
            _dot(letters, styles, x_k, y_k, colour)
        before = here


def _dot(letters: Grid, styles: Grid, x: float, y: float, colour: str) -> None:
    c, r = divmod(round(x), 2), divmod(round(y), 4)
    if 0 <= c[0] < len(letters[0]) and 0 <= r[0] < len(letters):
        now = letters[r[0]][c[0]]
        bits = ord(now) - 0x2800 if "\u2800" <= now <= "\u28ff" else 0
        letters[r[0]][c[0]] = chr(0x2800 + (bits | DOTS[r[1]][c[1]]))
        styles[r[0]][c[0]] = colour


def _axis(picture: Plot, left: float, right: float, across: int) -> str:
    """The names along the time, as many as there is room for."""
    names = [(t.at, clean(t.name)) for t in picture.x_ticks or ()] or [(x, rounded_number(x, 4)) for x in (left, right)]
    line = [" "] * across
    for at, name in names:
        begin = round((at - left) / (right - left) * (across - 1)) - len(name) // 2
        begin = min(max(begin, 0), across - len(name))
        if begin >= 0 and not "".join(line[max(begin - 1, 0) : begin + len(name) + 1]).strip():
            line[begin : begin + len(name)] = name
    return f"{'':>{MARGIN - 2}} └{'─' * across}\n{'':>{MARGIN}}{''.join(line).rstrip()}\n"


def _legend(picture: Plot) -> Text:
    from rich.text import Text

    said, number, shade = Text(" " * MARGIN), 0, 0
    for series in picture.series:
        name = shortened(clean(series.name), 28)
        if series.style == "band":
            mark, style, shade = SHADES[shade % len(SHADES)] * 2, "yellow dim", shade + 1
        else:
            mark, style, number = "⠒⠒", COLOURS[number % len(COLOURS)], number + 1
        if name:
            said.append(f"{mark} ", style=style).append(f"{name}   ")
    return said


def bits(images: Sequence[Sequence[Sequence[float]]]) -> Text:
    """Images of bits side by side, two pixels to a letter: what is above the middle of all numbers is full.

    >>> print(bits([[[0, 1], [1, 1]], [[1, 0], [0, 0]]]).plain)
    ▄█    ▀
    """
    from rich.text import Text

    numbers = [value for image in images for row in image for value in row]
    middle = (min(numbers, default=0.0) + max(numbers, default=0.0)) / 2
    full = [[[value > middle for value in row] for row in image] for image in images]
    lines = []
    for at in range(0, max(map(len, full), default=0), 2):
        pairs = [(image[at], image[at + 1] if at + 1 < len(image) else [False] * len(image[at])) for image in full]
        lines.append(
            (" " * 4).join("".join(HALVES[pair] for pair in zip(*each, strict=True)) for each in pairs).rstrip()
        )
    return Text("\n".join(lines))
