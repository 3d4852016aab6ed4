"""Lines and points in one frame, with words beside points that keep out of each other's way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.pictures.canvas import COLOURS, INK, MARKERS, floats, frame
from unrolled.pictures.kinds import Number, Plot, Series
from unrolled.pictures.letters import clean, name_of, plain_number, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_plot(picture: Plot) -> Figure:
    figure, axes = frame()
    axes.grid(color=INK, alpha=0.12, linewidth=0.6)
    labelled: list[tuple[float, float, str]] = []
    for number, series in enumerate(picture.series):
        _draw_series(axes, series, COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
        if series.labels:
            labelled += [
                (x, y, shortened(name_of(label)))
                for x, y, label in zip(floats(series.x), floats(series.y), series.labels)
                if math.isfinite(x) and math.isfinite(y)
            ]
    _scale(axes.xaxis, axes.set_xscale, picture.log_x, [x for series in picture.series for x in series.x])
    _scale(axes.yaxis, axes.set_yscale, picture.log_y, [y for series in picture.series for y in series.y])
    axes.set_xlabel(clean(picture.x_label))
    axes.set_ylabel(clean(picture.y_label))
    if len(picture.series) > 1 or (picture.series and not picture.series[0].labels and picture.series[0].name):
        _legend(figure, len(picture.series))
    _place_labels(figure, axes, labelled)
    return figure


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
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    positive = [value for value in values if value is not None and value > 0]
    if not is_log or not positive:
        axis.set_major_locator(MaxNLocator(6))
        axis.set_major_formatter(lambda value, _: plain_number(float(f"{value:.9g}")).replace("-", "−"))
        return
    set_scale("log", nonpositive="mask")
    decades = math.log10(max(positive) / min(positive))
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=9))
    axis.set_major_formatter(lambda value, _: _short_number(value))
    axis.set_minor_formatter(NullFormatter())


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
    points = axes.transData.transform([(x, y) for x, y, _ in labelled])
    taken = [Bbox.from_bounds(px - 4, py - 4, 8, 8) for px, py in points]
    edge = figure.bbox
    sides = [(5, 4, "left", "bottom"), (-5, 4, "right", "bottom"), (5, -4, "left", "top"), (-5, -4, "right", "top"),
             (7, 0, "left", "center"), (-7, 0, "right", "center"), (0, 7, "center", "bottom"),
             (0, -7, "center", "top")]  # fmt: skip
    for x, y, word in labelled:
        best = None
        for right, up, horizontal, vertical in sides:
            text = axes.annotate(
                word, (x, y), (right, up), textcoords="offset points", ha=horizontal, va=vertical, fontsize=9
            )
            box = text.get_window_extent()
            inside = Bbox.intersection(box, edge)
            lost = box.width * box.height - (inside.width * inside.height if inside else 0)
            covered = sum(_overlap(box, other) for other in taken) + 4 * lost
            if best is None or covered < best[0] - 1e-6:
                if best:
                    best[1].remove()
                best = (covered, text, box)
            else:
                text.remove()
        assert best is not None
        best[1].set_in_layout(False)
        taken.append(best[2])


def _overlap(a: Any, b: Any) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(width, 0.0) * max(height, 0.0)
