"""Drawings of a pen beside each other: every stroke as a line whose colour tells when it was drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from unrolled.pictures.canvas import quietly
from unrolled.pictures.kinds import Drawings
from unrolled.pictures.letters import phrase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 1.5  # inches of a drawing
WIDEST = 6.0  # how many times as wide as high a frame is at most
SHEET = 10.0  # inches that a sheet is wide at most
LETTERS = 22  # of a caption in a line
SHADES = 24  # colours of a drawing, from its first point to its last
MAP = "viridis"

Stroke = Sequence[tuple[float, float]]


def draw_drawings(picture: Drawings) -> Figure:
    """As many rows as are needed, all at one scale of x and y each; y grows downwards, as in the data."""
    from matplotlib.figure import Figure

    n = len(picture.drawings)
    width = SIDE * min(max(median(map(_shape, picture.drawings)) if n else 1.0, 1.0), WIDEST)
    across = min(max(n, 1), picture.across, max(1, int(SHEET / width)))
    down = -(-n // across) or 1
    captions = ["\n".join(textwrap.wrap(phrase(each, 4 * LETTERS), LETTERS)[:2]) for each in picture.captions]
    with quietly():
        figure = Figure(figsize=(across * width, down * (SIDE + 0.3 * any(captions))), layout="constrained")
        frames: Any = figure.subplots(down, across, squeeze=False)
        for i, axes in enumerate(frames.flat):
            axes.set_axis_off()
            if i < n:
                _draw(axes, picture.drawings[i])
                axes.set_title(captions[i] if i < len(captions) else "", fontsize=8.5)
    return figure


def _shape(strokes: Sequence[Stroke]) -> float:
    """How many times as wide as high a drawing is."""
    x, y = ([place[axis] for stroke in strokes for place in stroke] or [0.0] for axis in (0, 1))
    return (max(x) - min(x)) / max(max(y) - min(y), 1e-9) if max(x) > min(x) else 1.0


def _draw(axes: Any, strokes: Sequence[Stroke]) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    lines = list(shaded(strokes))
    colours = colormaps[MAP]
    axes.add_collection(
        LineCollection(
            [line for _, line in lines], colors=[colours(0.9 * share) for share, _ in lines], capstyle="round"
        )
    )
    for share, (x, y) in ((share, line[0]) for share, line in lines if len(line) == 1):
        axes.plot([x], [y], ".", color=colours(0.9 * share), markersize=3)
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    axes.margins(0.08)
    axes.invert_yaxis()


def shaded(strokes: Sequence[Stroke]) -> Iterator[tuple[float, list[tuple[float, float]]]]:
    """Pieces of strokes, each with the share of the drawing that was there before it; a dot is a piece of one place.

    >>> list(shaded([[(0, 0), (1, 0)], [(5, 5)]]))
    [(0.0, [(0, 0), (1, 0)]), (0.6666666666666666, [(5, 5)])]
    """
    total, before = max(sum(map(len, strokes)), 1), 0
    length = max(2, -(-total // SHADES) + 1)  # places of a piece; the last of one is the first of the next
    for stroke in filter(len, strokes):
        for first in range(0, max(len(stroke) - 1, 1), length - 1):
            yield (before + first) / total, list(stroke[first : first + length])
        before += len(stroke)
