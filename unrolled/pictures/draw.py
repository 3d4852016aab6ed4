"""How pictures are shown: as SVG or PNG files, as HTML inside a page, and in the terminal.

    svg(picture)                   Plot, Heatmap, Bars, Images and Drawings as a drawing (`is_drawn` says which are)
    png(picture)                   the same as dots
    html(picture)                  any kind as a <figure>; `STYLE` is the style sheet that it expects
    terminal(picture)              any kind for rich; drawings as their sentence

Text from data is escaped everywhere. matplotlib and rich are imported when they are needed.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from unrolled.pictures import markup
from unrolled.pictures.kinds import Bars, Drawings, Heatmap, Images, Picture, Plot, Sounds, Table, Texts, Tokens
from unrolled.pictures.markup import STYLE
from unrolled.pictures.terminal import terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STYLE", "html", "is_drawn", "png", "svg", "terminal"]

DOTS = 160  # to an inch
WIDER = 0.9  # letters of a page as a share of those that come with matplotlib


def is_drawn(picture: Picture) -> bool:
    """Whether a picture is a drawing rather than words."""
    return isinstance(picture, Plot | Heatmap | Bars | Images | Drawings)


def svg(picture: Picture) -> str:
    """A whole file by itself, with the title above the drawing; the same picture gives the same bytes."""
    return _element(picture, heading=picture.title)


def png(picture: Picture) -> bytes:
    """A drawing as dots on white, with its title."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.image import imsave

    from unrolled.pictures.canvas import POINTS, TITLE, heading_lines, quietly

    with quietly():
        drawing = _figure(picture)
        width = float(drawing.get_size_inches()[0])
        lines = heading_lines(picture.title, WIDER * POINTS * width)
        heading = Figure((width, (TITLE * len(lines) + 4) / POINTS))  # above the legend, which is at the drawing's top
        for n, line in enumerate(lines):
            heading.text(0.01, 1 - n / len(lines), line, va="top", fontweight="bold", fontsize=11)
        parts = []
        for figure in (heading, drawing) if lines else (drawing,):
            figure.set_dpi(DOTS)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            parts.append(np.asarray(canvas.buffer_rgba()))
        buffer = io.BytesIO()
        imsave(buffer, np.concatenate(parts), format="png", dpi=DOTS, metadata={"Software": "unrolled"})
    return buffer.getvalue()


def _element(picture: Picture, salt: str = "", heading: str = "") -> str:
    """One <svg> element; different `salt`s keep the identifiers of one picture apart that stands twice on a page."""
    from unrolled.pictures.canvas import quietly, settle

    buffer = io.StringIO()
    with quietly():
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        _figure(picture).savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return settle(buffer.getvalue(), picture, salt, heading)


def _figure(picture: Picture) -> Figure:
    from unrolled.pictures.grid import draw_bars, draw_heatmap
    from unrolled.pictures.images import draw_images
    from unrolled.pictures.pen import draw_drawings
    from unrolled.pictures.plot import draw_plot

    if isinstance(picture, Plot):
        return draw_plot(picture)
    if isinstance(picture, Heatmap):
        return draw_heatmap(picture)
    if isinstance(picture, Bars):
        return draw_bars(picture)
    if isinstance(picture, Images):
        return draw_images(picture)
    if isinstance(picture, Drawings):
        return draw_drawings(picture)
    raise TypeError(f"a picture of kind {picture.kind} is text: show it with html() or terminal()")


def html(picture: Picture, salt: str = "") -> str:
    """A <figure> to put into a page."""
    if isinstance(picture, Tokens):
        return markup.tokens(picture)
    if isinstance(picture, Table):
        return markup.table(picture)
    if isinstance(picture, Texts):
        return markup.texts(picture)
    if isinstance(picture, Sounds):
        return markup.sounds(picture)
    return markup.drawing(picture, _element(picture, salt))
