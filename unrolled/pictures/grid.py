"""Matrices as colours, and numbers as bars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from unrolled.pictures.canvas import COLOURS, INK, WIDTH, floats, frame
from unrolled.pictures.kinds import Bars, Heatmap
from unrolled.pictures.letters import name_of, phrase, plain_number, rounded_number, shortened, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMES = 64  # along one axis; of more, only some are written
# From pale to dark, so that a print without colour reads the same way; dark against light for both signs.
MAPS = {"sequential": "Blues", "log": "Blues", "diverging": "RdBu_r"}


def draw_heatmap(picture: Heatmap) -> Figure:
    """Cells of one size; names where they can be read; the scale beside it."""
    import numpy as np

    n_rows = len(picture.values)
    n_columns = max((len(row) for row in picture.values), default=0)
    width, height, cell = _size(picture, n_rows, n_columns)
    figure, axes = frame(width, height)
    if n_rows == 0 or n_columns == 0:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "nothing to show", ha="center", transform=axes.transAxes)
        return figure
    values = np.full((n_rows, n_columns), np.nan)
    for i, row in enumerate(picture.values):
        values[i, : len(row)] = floats(row)
    norm = _norm(picture, values)
    image = axes.imshow(values, cmap=_colours(picture), norm=norm, aspect="auto", interpolation="none")
    axes.spines[:].set_visible(False)
    _name_cells(axes.xaxis, picture.columns, n_columns, upright=True)
    _name_cells(axes.yaxis, picture.rows, n_rows, upright=False)
    axes.set_xlabel(phrase(picture.x_label))
    axes.set_ylabel(phrase(picture.y_label))
    if picture.write_values:
        _write_values(axes, image, picture, cell)
    _scale_beside(axes, picture, norm)
    return figure


def _size(picture: Heatmap, n_rows: int, n_columns: int) -> tuple[float, float, float]:
    """Inches of the whole, and of a cell, from the number of cells and the room that their names take."""
    named = max(len(picture.columns), len(picture.rows)) > 0
    least = 0.42 if picture.write_values else 0.17 if named and max(n_rows, n_columns) <= MOST_NAMES else 0.02
    cell = min(max(least, 4.2 / max(n_columns, 1)), 0.6)
    if cell * n_columns > 12:
        cell = 12 / n_columns
    width = max(cell * n_columns + 1.7, 0.75 * WIDTH)
    height = min(max(min(cell, 0.5) * n_rows + 1.3, 1.9), 12.0)
    return width, height, cell


def _colours(picture: Heatmap) -> Any:
    from matplotlib import colormaps

    return colormaps[MAPS[picture.scale]].with_extremes(bad=(0.5, 0.5, 0.5, 0.15))


def _norm(picture: Heatmap, values: Any) -> Any:
    """From numbers to the way along the colours; the same ends for all where none are given."""
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize

    there = values[np.isfinite(values)]
    low = picture.low if picture.low is not None else float(there.min()) if there.size else 0.0
    high = picture.high if picture.high is not None else float(there.max()) if there.size else 1.0
    if picture.scale == "diverging":
        reach = max(abs(low), abs(high)) or 1.0
        return Normalize(-reach, reach)
    if picture.scale == "log":
        positive = there[there > 0]
        least = picture.low if picture.low and picture.low > 0 else float(positive.min()) if positive.size else 1e-6
        return LogNorm(least, max(high, least * 10), clip=True)
    return Normalize(low, high if high > low else low + 1.0)


def _name_cells(axis: Any, names: list[str], n: int, upright: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_tick_params(length=0)
    if not names:
        axis.set_major_locator(MaxNLocator(8, integer=True))
        return
    every = math.ceil(n / MOST_NAMES)
    shown = [shortened(visible(name), 14) for name in names[:n:every]]
    axis.set_ticks(range(0, min(n, len(names)), every), shown, fontsize=9)
    if upright and max(map(len, shown), default=0) > 2:
        axis.set_tick_params(rotation=90)


def _write_values(axes: Axes, image: Any, picture: Heatmap, cell: float) -> None:
    """Each number in its cell, light on dark and dark on light, as large as the longest of them allows."""
    words = [[rounded_number(value, 2) for value in row] for row in picture.values]
    longest = max((len(word) for row in words for word in row), default=0)
    size = min(9.0, 19 * cell, 110 * cell / max(longest, 1))
    for i, (row, said) in enumerate(zip(picture.values, words)):
        for j, (value, word) in enumerate(zip(row, said)):
            if value is not None and math.isfinite(value):
                red, green, blue, _ = image.cmap(image.norm(value))
                ink = "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#000000"
                axes.text(j, i, word, ha="center", va="center", fontsize=size, color=ink)


def _scale_beside(axes: Axes, picture: Heatmap, norm: Any) -> None:
    """The colours from low to high: 64 steps of one image instead of as many shapes."""
    import numpy as np

    strip = axes.inset_axes((1.03, 0.0, 0.035, 1.0))
    strip.imshow(
        np.linspace(1, 0, 64)[:, None], cmap=_colours(picture), vmin=0, vmax=1, aspect="auto", interpolation="none",
        extent=(0, 1, 0, 1),
    )  # fmt: skip
    at = [0.0, 0.25, 0.5, 0.75, 1.0] if picture.scale != "log" else [0.0, 0.5, 1.0]
    words = [rounded_number(float(norm.inverse(place)), 2).replace("-", "−") for place in at]
    strip.set_xticks([])
    strip.yaxis.tick_right()
    strip.set_yticks(at, words, fontsize=8.5)
    strip.tick_params(length=0)
    strip.spines[:].set_visible(False)


def draw_bars(picture: Bars) -> Figure:
    """A bar per name, from the top; whiskers where there are ends."""
    n = len(picture.names)
    figure, axes = frame(WIDTH, min(max(0.27 * n + 0.9, 1.6), 14.0))
    values = floats(picture.values)
    axes.barh(range(n), [0.0 if math.isnan(value) else value for value in values], color=COLOURS[0], height=0.72)
    if picture.low and picture.high:
        axes.hlines(range(n), floats(picture.low), floats(picture.high), color=INK, linewidth=1.3)
    axes.set_yticks(range(n), [shortened(name_of(name)) for name in picture.names], fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(n - 0.4, -0.6)
    axes.margins(x=0.12)
    for i, (value, exact) in enumerate(zip(values, picture.values)):
        if math.isfinite(value):
            ends = [value, *(floats([picture.high[i]]) if picture.high else [])]
            beyond = max((end for end in ends if math.isfinite(end)), default=value)
            axes.annotate(
                rounded_number(exact, 4).replace("-", "−"), (max(beyond, 0.0), i), (4, 0),
                textcoords="offset points", va="center", fontsize=9,
            )  # fmt: skip
    if any(value < 0 for value in values):
        axes.axvline(0, color=INK, linewidth=0.7)
    axes.set_xlabel(phrase(picture.x_label))
    axes.xaxis.set_major_formatter(lambda value, _: plain_number(float(f"{value:.9g}")).replace("-", "−"))
    axes.grid(axis="x", color=INK, alpha=0.12, linewidth=0.6)
    return figure
