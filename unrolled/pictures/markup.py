"""Pictures as HTML: a <figure> with an inline drawing, or real text and tables where the picture is words.

Everything that comes from data is escaped. `STYLE` is the style sheet that these figures expect of their page; they can
be read without it.
"""

from __future__ import annotations

import math
import re
from html import escape

from unrolled.pictures.kinds import Number, Picture, Sounds, Table, Texts, Tokens
from unrolled.pictures.letters import clean, plain_number, rounded_number

STYLE = """\
figure { margin: 0 0 1.5rem; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
figure .note { margin: .2rem 0 .5rem; opacity: .8; }
figure svg { display: block; height: auto; }
.scroll { overflow-x: auto; max-width: 100%; }
.scroll:focus-visible { outline: 2px solid; outline-offset: 2px; }
.words { font-family: ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.7; }
.words span { border-radius: .2em; padding: .1em 0; -webkit-print-color-adjust: exact; }
.words .blank { opacity: .45; }
.scale { display: flex; align-items: center; gap: .5rem; margin: .3rem 0; }
.scale span { display: inline-block; width: 8rem; height: .8em; border-radius: .2em;
  -webkit-print-color-adjust: exact; }
"""
WARM, COLD = "213,94,0", "0,114,178"  # two of unrolled.pictures.canvas.COLOURS
STRONGEST = 0.65  # so that the page's own text colour stays readable on it
NUMBER = re.compile(r"[-+]?\d")  # how words begin that are numbers with a unit: 12.3 s
DATE = re.compile(r"\d{4}-\d{2}")
NO_BREAK = "-\u2060"  # a hyphen at which no line ends
BLANKS = {" ": "·", "\t": "⇥", "\n": "↵"}


def text(value: object) -> str:
    """Text from data as HTML."""
    return escape(clean(value))


def figure(picture: Picture, inner: str, note: str = "") -> str:
    """The frame that all pictures share."""
    said = f'<p class="note">{text(note)}</p>\n' if note else ""
    return (
        f'<figure class="picture {picture.kind}">\n<figcaption>{text(picture.title)}</figcaption>\n'
        f"{said}{inner}\n</figure>\n"
    )


def drawing(picture: Picture, drawn: str) -> str:
    """An <svg> that shrinks with the page; a wide one scrolls in its own box rather than become unreadable."""
    start, _, rest = drawn.partition(">")
    width = int(start.partition(' width="')[2].partition('"')[0])
    least = f"min-width:{width * 0.8:.0f}px" if width > 480 else f"width:min(100%,{width * 1.35:.0f}px)"
    inner = f'{start} style="{least}">{rest}'
    if width <= 480:
        return figure(picture, inner)
    return figure(picture, scrolling(picture.title, inner))


def scrolling(name: str, inner: str) -> str:
    """A box that scrolls sideways by itself, also by keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{text(name)}">\n{inner}\n</div>'


def tokens(picture: Tokens) -> str:
    """Coloured pieces of text; what is known of a piece is shown when it is pointed at."""
    low, high = ends(picture)
    pieces = []
    for i, token in enumerate(picture.tokens):
        value = picture.values[i] if i < len(picture.values) else None
        hint = picture.hints[i] if i < len(picture.hints) else plain_number(value)
        title = f' title="{text(hint)}"' if hint else ""
        colour = f' style="background:{background(value, low, high)}"' if value is not None else ""
        pieces.append(f"<span{title}{colour}>{_piece(token)}</span>")
    cold = f"rgba({COLD},{STRONGEST}),transparent," if low < 0 else "transparent,"
    strip = f'<span style="background:linear-gradient(90deg,{cold}rgba({WARM},{STRONGEST}))"></span>'
    unit = f" {text(picture.unit)}" if picture.unit else ""
    scale = f'<p class="scale">{rounded_number(low, 3)} {strip} {rounded_number(high, 3)}{unit}</p>'
    return figure(picture, f'<div class="words">{"".join(pieces)}</div>\n{scale}', picture.alt)


def _piece(token: str) -> str:
    """A token as it stands in a text; one that is only white space gets a sign, and a line end also ends the line."""
    if token and not token.strip(" \t\n"):
        signs = "".join(BLANKS[letter] + ("\n" if letter == "\n" else "") for letter in token)
        return f'<span class="blank">{text(signs)}</span>' if signs else ""
    return text(token)


def ends(picture: Tokens) -> tuple[float, float]:
    """The numbers at which the colours begin and end; about zero where there are numbers of both signs."""
    there = [float(value) for value in picture.values if value is not None]
    low = picture.low if picture.low is not None else min([0.0, *there])
    high = picture.high if picture.high is not None else max([*there, 0.0])
    if low < 0:
        reach = max(-low, high)
        return -reach, reach
    return low, high if high > low else low + max(1.0, 1e-6 * low)  # 1 is lost beside a large number


def strength(value: Number, low: float, high: float) -> float:
    """-1 .. 1 along the colours; 0 is no colour."""
    if value is None or math.isnan(value):
        return 0.0
    place = value / high if low < 0 else (value - low) / (high - low)
    return max(-1.0, min(1.0, place))


def background(value: Number, low: float, high: float) -> str:
    """The page's own background with more or less of a warm colour in it, or of a cold one below zero."""
    place = strength(value, low, high)
    return f"rgba({WARM if place >= 0 else COLD},{STRONGEST * abs(place):.2f})"


def table(picture: Table) -> str:
    """A table that scrolls inside its own box; columns of numbers are aligned right."""
    words = {k for row in picture.rows for k, value in enumerate(row) if _is_word(value)}
    kinds = ["" if k in words else ' class="number"' for k in range(len(picture.columns))]
    head = "".join(f'<th scope="col"{kind}>{text(column)}</th>' for kind, column in zip(kinds, picture.columns))
    lines = []
    for row in picture.rows:
        lines.append("<tr>" + "".join(_cell(value, k in words) for k, value in enumerate(row)) + "</tr>")
    inner = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table>"
    return figure(picture, scrolling(picture.title, inner), picture.alt)


def _is_word(value: str | float | int | None) -> bool:
    return isinstance(value, str) and value != "" and (NUMBER.match(value) is None or DATE.match(value) is not None)


def _cell(value: str | float | int | None, among_words: bool) -> str:
    inner = text(value) if isinstance(value, str) else plain_number(value)
    if among_words and isinstance(value, str) and DATE.match(value):
        return f"<td>{inner.replace('-', NO_BREAK)}</td>"
    return f"<td>{inner}</td>" if among_words else f'<td class="number">{inner}</td>'


def texts(picture: Texts) -> str:
    """Pieces of text, each under its caption, with their lines as they are."""
    parts = []
    for i, piece in enumerate(picture.texts):
        caption = picture.captions[i] if i < len(picture.captions) else ""
        said = f'<p class="note">{text(caption)}</p>\n' if caption else ""
        parts.append(f'{said}<pre class="words">{_kept_first_line(text(piece))}</pre>')
    return figure(picture, "\n".join(parts), picture.alt)


def sounds(picture: Sounds) -> str:
    """Recordings that can be played, each under its caption; the browser's own controls, no script."""
    parts = []
    for i, sound in enumerate(picture.sounds):
        caption = picture.captions[i] if i < len(picture.captions) else f"recording {i + 1}"
        player = f'<audio controls preload="none" aria-label="{text(caption)}" src="{text(sound)}"></audio>'
        parts.append(f'<p class="note">{text(caption)}</p>\n{player}')
    return figure(picture, "\n".join(parts), picture.alt)


def _kept_first_line(inner: str) -> str:
    """HTML drops a line end right after <pre>, so one that belongs to the text is doubled."""
    return "\n" + inner if inner.startswith("\n") else inner
