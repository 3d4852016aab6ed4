"""Lines and points in one frame, with words beside points that keep out of each other's way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.pictures.canvas import COLOURS, INK, MARKERS, floats, frame
from unrolled.pictures.kinds import Number, Plot, Series
from unrolled.pictures.letters import name_of, phrase, plain_number, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHTEST = 0.18  # of a band
SIDES = ((5, 4), (-5, 4), (5, -4), (-5, -4), (7, 0), (-7, 0), (0, 7), (0, -7))  # where a word may stand by its point


def draw_plot(picture: Plot) -> Figure:
    figure, axes = frame()
    axes.grid(color=INK, alpha=0.12, linewidth=0.6)
    labelled: list[tuple[float, float, str]] = []
    number = bands = 0  # a band has the colour of the line that follows it, and is darker than the band before
    for series in picture.series:
        if series.style == "band":
            _draw_band(axes, series, COLOURS[number % len(COLOURS)], min(LIGHTEST * (1 + bands / 2), 0.5))
            bands += 1
            continue
        _draw_series(axes, series, COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
        number += 1
        if series.labels:
            labelled += [
                (x, y, shortened(name_of(label)))
                for x, y, label in zip(floats(series.x), floats(series.y), series.labels)
                if math.isfinite(x) and math.isfinite(y)
            ]
    _scale(axes.xaxis, axes.set_xscale, picture.log_x, [x for series in picture.series for x in series.x])
    _scale(axes.yaxis, axes.set_yscale, picture.log_y, [y for series in picture.series for y in series.y])
    if picture.x_ticks:
        names = [shortened(name_of(tick.name), 20) for tick in picture.x_ticks]
        axes.set_xticks([tick.at for tick in picture.x_ticks], names)
    axes.set_xlabel(phrase(picture.x_label))
    axes.set_ylabel(phrase(picture.y_label))
    if len(picture.series) > 1 or (picture.series and not picture.series[0].labels and picture.series[0].name):
        _legend(figure, len(picture.series))
    _place_labels(figure, axes, labelled)
    return figure


def _draw_band(axes: Axes, series: Series, colour: str, alpha: float) -> None:
    low, high = (floats(series.y if part is None else part) for part in (series.low, series.high))
    name = shortened(name_of(series.name), 28)
    axes.fill_between(floats(series.x), low, high, color=colour, alpha=alpha, linewidth=0, label=name)


def _draw_series(axes: Axes, series: Series, colour: str, marker: str) -> None:
    name = shortened(name_of(series.name), 28)
    x, y = floats(series.x), floats(series.y)
    low = floats(series.low) if series.low is not None else None
    high = floats(series.high) if series.high is not None else None
    if series.style == "points":
        axes.plot(x, y, linestyle="none", marker=marker, markersize=6, color=colour, label=name)
        if low and high:
            axes.vlines(x, low, high, color=colour, linewidth=1.2)
        return
    few = marker if len(x) <= 12 and series.style == "line" else None
    dashes = {"dashed": (0, (5, 3))}.get(series.style, "-")
    steps = "steps-post" if series.style == "steps" else "default"
    axes.plot(x, y, linestyle=dashes, drawstyle=steps, marker=few, markersize=4.5, color=colour, label=name)
    if low and high:
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def _scale(axis: Any, set_scale: Callable[..., None], is_log: bool, values: Sequence[Number]) -> None:
    """Ticks in plain numbers; on a logarithmic axis also between the powers of ten where the range is short."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    positive = [value for value in values if value is not None and value > 0]
    if not is_log or not positive:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(lambda value, _: plain_number(float(f"{value:.9g}")).replace("-", "−"))
        return
    set_scale("log", nonpositive="mask")
    decades = math.log10(max(positive) / min(positive))
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=9))
    axis.set_major_formatter(lambda value, _: _short_number(value))
    axis.set_minor_locator(NullLocator())


def _short_number(value: float) -> str:
    """1200000 as 1.2M, for beside an axis."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}".replace("e-0", "e-").replace("-", "−")


def _legend(figure: Figure, n: int) -> None:
    """Above the frame, where no line runs through it."""
    figure.legend(loc="outside upper left", ncols=min(n, 3), handlelength=1.6, columnspacing=1.2, borderaxespad=0.1)


def _place_labels(figure: Figure, axes: Axes, labelled: list[tuple[float, float, str]]) -> None:
    """Each word on that side of its point where it covers least of the points, the frame's edge and earlier words."""
    if not labelled:
        return
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it is laid out now; words must not move what they were placed beside
    points = axes.transData.transform([(x, y) for x, y, _ in labelled])
    taken = [Bbox.from_bounds(px - 5, py - 5, 10, 10) for px, py in points]
    for (x, y, word), (px, py) in zip(labelled, points):
        text = axes.annotate(word, (x, y), (0, 0), textcoords="offset points", fontsize=9)
        size, unit = text.get_window_extent(), figure.dpi / 72
        places = []
        for right, up in SIDES:
            left = px + right * unit - size.width * (1 - (right > 0) - 0.5 * (right == 0))
            foot = py + up * unit - size.height * (1 - (up > 0) - 0.5 * (up == 0))
            box = Bbox.from_bounds(left, foot, size.width, size.height)
            covered = sum(_overlap(box, other) for other in taken)
            outside = 5 * size.width * size.height - _overlap(box, axes.bbox) - 4 * _overlap(box, figure.bbox)
            places.append((covered + outside, right, up, box))
        _, right, up, box = min(places, key=lambda place: place[0])
        text.set_position((right, up))
        text.set_horizontalalignment("left" if right > 0 else "right" if right < 0 else "center")
        text.set_verticalalignment("bottom" if up > 0 else "top" if up < 0 else "center")
        taken.append(box)


def _overlap(a: Any, b: Any) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(width, 0.0) * max(height, 0.0)
