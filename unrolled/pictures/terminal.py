"""Pictures for the terminal: words and tables as they are, bars of blocks, and a sentence for what must be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unrolled.pictures import markup
from unrolled.pictures.kinds import Bars, Picture, Table, Texts, Tokens
from unrolled.pictures.letters import clean, name_of, plain_number, rounded_number, shortened, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

PAPER, WARM, COLD = (250, 246, 240), (213, 94, 0), (0, 114, 178)
LONGEST_BAR = 40


def terminal(picture: Picture) -> RenderableType:
    """What rich prints."""
    from rich.text import Text

    if isinstance(picture, Tokens):
        return _tokens(picture)
    if isinstance(picture, Table):
        return _table(picture)
    if isinstance(picture, Bars):
        return _bars(picture)
    said = Text(clean(picture.title), style="bold")
    if isinstance(picture, Texts):
        for i, piece in enumerate(picture.texts):
            caption = picture.captions[i] if i < len(picture.captions) else ""
            said.append(f"\n{clean(caption)}\n" if caption else "\n", style="not bold dim")
            said.append(clean(piece), style="not bold")
        return said
    return said.append(f"\n{clean(picture.alt)}" if picture.alt else "", style="not bold")


def _tokens(picture: Tokens) -> RenderableType:
    """Each piece on its own colour; the pieces are black or white on it, whatever the terminal's own colours are."""
    from rich.text import Text

    low, high = markup.ends(picture)
    said = Text(clean(picture.title) + "\n", style="bold")
    for i, token in enumerate(picture.tokens):
        value = picture.values[i] if i < len(picture.values) else None
        shown = "".join("↵\n" if letter == "\n" else visible(letter) if letter != " " else " " for letter in token)
        if token and not token.strip(" "):
            shown = "·" * len(token)
        style = "not bold" if value is None else f"not bold {_style(markup.strength(value, low, high))}"
        for line in shown.splitlines(keepends=True):  # a colour that runs over a line end fills the line
            said.append(line.rstrip("\n"), style=style)
            said.append("\n" if line.endswith("\n") else "")
    unit = f" {clean(picture.unit)}" if picture.unit else ""
    said.append("\n")
    for step in range(-4 if low < 0 else 0, 5):
        said.append("  ", style=f"not bold {_style(step / 4)}")
    return said.append(f" {rounded_number(low, 3)} to {rounded_number(high, 3)}{unit}", "not bold")


def _style(place: float) -> str:
    """Text and background for -1 (cold) .. 0 (paper) .. 1 (warm)."""
    end = WARM if place >= 0 else COLD
    red, green, blue = (round(a + (b - a) * abs(place)) for a, b in zip(PAPER, end, strict=True))
    ink = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 128 else "black"
    return f"{ink} on rgb({red},{green},{blue})"


def _table(picture: Table) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(title=Text(clean(picture.title)), title_justify="left")
    for number, column in enumerate(picture.columns):
        cells = [row[number] for row in picture.rows if number < len(row)]
        words = any(isinstance(cell, str) for cell in cells)
        made.add_column(Text(clean(column)), justify="left" if words else "right")
    for row in picture.rows:
        made.add_row(*(Text(clean(cell) if isinstance(cell, str) else plain_number(cell)) for cell in row))
    return made


def _bars(picture: Bars) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(title=Text(clean(picture.title)), title_justify="left", box=None, show_header=False)
    largest = max((abs(value) for value in picture.values if value is not None), default=0.0) or 1.0
    for name, value in zip(picture.names, picture.values):
        length = 0 if value is None else max(round(LONGEST_BAR * abs(value) / largest), int(value != 0))
        made.add_row(
            Text(shortened(name_of(name), 24)),
            Text(plain_number(value), justify="right"),
            Text("█" * length, style="blue" if (value or 0) >= 0 else "red"),
        )
    return made
