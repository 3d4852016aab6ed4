"""What all drawings share: the settings of matplotlib, and how its SVG is made fit to stand inside a page.

Text stays text in the reader's own font; black becomes the colour of the page's text, so that one picture serves a
light page, a dark one and paper; identifiers are those of this picture alone. The same picture gives the same bytes.
"""

from __future__ import annotations

import hashlib
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from unrolled.pictures.kinds import Number, Picture
from unrolled.pictures.letters import clean, phrase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008), told apart by colour-blind readers, without their black and yellow, which a page may be itself.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#7a5cc0")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK = "#010203"  # stands for the colour of the page's text until the drawing is done
FONT = "system-ui, sans-serif"
TITLE, LETTER = 15.0, 6.8  # height of a line of a title and about the width of a letter, in units
POINTS = 72  # units of an inch
WIDTH, HEIGHT = 5.6, 3.6  # inches; shown about as wide as a phone is
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "unrolled",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that every machine measures alike
    "font.size": 10.0,
    "text.parse_math": False,  # a dollar in the data is a dollar
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.8,
    "path.simplify": True,
}


@contextmanager
def quietly() -> Iterator[None]:
    """Our settings, and no complaint about letters that the measuring font does not have: the reader's font will."""
    from matplotlib import rc_context

    with rc_context(SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def frame(width: float = WIDTH, height: float = HEIGHT) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def floats(values: Sequence[Number]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


# After the drawing ----------------------------------------------------------------------------------------------------


def heading_lines(heading: str, width: float) -> list[str]:
    """A heading in lines of bold text that are at most so many units wide."""
    return textwrap.wrap(phrase(heading, 500), max(int(width / LETTER), 12))


def settle(drawn: str, picture: Picture, salt: str, heading: str = "") -> str:
    """matplotlib's file as one <svg> element with a title, a description and identifiers of its own.

    A heading is written above the drawing, in as many lines as it needs.
    """
    opened = re.search(r"<svg [^>]*?viewBox=\"0 0 ([\d.]+) ([\d.]+)\"[^>]*>", drawn, re.DOTALL)
    assert opened is not None
    body = drawn[opened.end() :]
    body = re.sub(r"\s*<style type=\"text/css\">.*?</style>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r"<defs>\s*</defs>", "", body)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = body.replace("xlink:href", "href").replace(INK, "currentColor")
    body = re.sub(r"(font(?:-family)?: [^;\"]*?)('DejaVu Sans'|DejaVu Sans)[^;\"]*", rf"\1{FONT}", body)
    body = re.sub(r"\n\s*", "\n", body)
    own = "p" + hashlib.sha256(f"{salt} {picture!r}".encode("utf-8", "replace")).hexdigest()[:10]
    body = _own_names(body, own)
    width, height = (float(number) for number in opened.groups())
    lines = heading_lines(heading, width)
    if lines:
        body, height = _below(lines, body), height + TITLE * len(lines) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{own}t" aria-describedby="{own}d" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:g} {height:g}" '
        'stroke-linejoin="round" stroke-linecap="butt">\n'
        f'<title id="{own}t">{escape(clean(picture.title))}</title>\n'
        f'<desc id="{own}d">{escape(clean(picture.alt or picture.title))}</desc>{body}'.rstrip()
    )


def _below(lines: list[str], body: str) -> str:
    """A drawing moved down, with lines of bold text above it."""
    drawing, _, end = body.rpartition("</svg>")
    style = f'font-family="{FONT}" font-size="12" font-weight="bold" fill="currentColor"'
    texts = [f'<text x="2" y="{TITLE * n - 3:g}" {style}>{escape(line)}</text>' for n, line in enumerate(lines, 1)]
    moved = f'<g transform="translate(0 {TITLE * len(lines) + 4:g})">{drawing}</g>'
    return "\n" + "\n".join([*texts, moved, "</svg>"]) + end


def _own_names(body: str, own: str) -> str:
    """Identifiers that nothing refers to are dropped, the others are made this picture's."""
    used = sorted(set(re.findall(r'(?:url\(#|href="#)([^)"]+)', body)))
    names = {name: f"{own}{number}" for number, name in enumerate(used)}
    body = re.sub(r'\s+id="([^"]*)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", body)
    return re.sub(r'(url\(#|href="#)([^)"]+)', lambda found: found[1] + names[found[2]], body)
