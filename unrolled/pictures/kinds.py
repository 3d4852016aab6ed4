"""What can be drawn: pictures as plain values that are saved as JSON and drawn later.

Tasks and inspectors say *what* is to be seen; `unrolled.pictures.draw` knows how. Every picture carries a title and
`alt`, the sentence that says what it shows to those who cannot see it. Imports neither torch nor a plotting library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from unrolled.core.config import Record
from unrolled.pictures.png import PATTERN, checked

WAV = r"^data:audio/wav;base64,[A-Za-z0-9+/]+={0,2}$"
MOST_SOUND = 1 << 23  # letters of one recording: three minutes of 16,000 samples a second

Whole = Annotated[int, Field(gt=-(2**63), lt=2**63)]  # that a float can be made of
Number = float | Whole | None  # None: nothing there (JSON knows no NaN)


def _alike(*lists: Sequence[Any] | None) -> None:
    """What is drawn at one place has one length; lists that are not given have none."""
    if len({len(each) for each in lists if each is not None}) > 1:
        raise ValueError("the lists of a picture are of different lengths")


class Base(Record):
    """What all pictures have."""

    title: str
    alt: str = ""
    """What the picture shows, in a sentence."""


class Series(Record):
    """One line or cloud of points of a plot."""

    name: str
    x: list[float]
    y: list[Number]
    low: list[Number] | None = None
    """The lower edge of a band (or of whiskers) around y."""
    high: list[Number] | None = None
    style: Literal["line", "points", "steps", "dashed", "band"] = "line"
    """A band is the area between low and high alone, in the colour of the next line."""
    labels: list[str] | None = None
    """A word beside each point."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _alike(self.x, self.y, self.low, self.high, self.labels)
        return self


class Tick(Record):
    """A name at a place of an axis, instead of its number."""

    at: float
    name: str


class Plot(Base):
    """Lines and points in one frame."""

    kind: Literal["plot"] = "plot"
    series: list[Series]
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    x_ticks: list[Tick] | None = None


class Heatmap(Base):
    """A matrix as colours: attention, confusion, causality, positions."""

    kind: Literal["heatmap"] = "heatmap"
    values: list[list[Number]]
    rows: list[str] = []
    """A name per row, from the top; empty: numbers."""
    columns: list[str] = []
    x_label: str = ""
    y_label: str = ""
    low: float | None = None
    high: float | None = None
    scale: Literal["sequential", "diverging", "log"] = "sequential"
    write_values: bool = False
    """Write each number into its cell."""


class Bars(Base):
    """A number per name."""

    kind: Literal["bars"] = "bars"
    names: list[str]
    values: list[Number]
    low: list[Number] | None = None
    high: list[Number] | None = None
    x_label: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _alike(self.names, self.values, self.low, self.high)
        return self


class Tokens(Base):
    """A text whose pieces are coloured by a number each."""

    kind: Literal["tokens"] = "tokens"
    tokens: list[str]
    values: list[Number]
    hints: list[str] = []
    """The tooltip of the token."""
    low: float | None = None
    high: float | None = None
    unit: str = ""


class Table(Base):
    """Rows of words and numbers."""

    kind: Literal["table"] = "table"
    columns: list[str]
    rows: list[list[str | float | Whole | None]]


class Texts(Base):
    """Pieces of text, such as samples, each under a caption."""

    kind: Literal["texts"] = "texts"
    captions: list[str]
    texts: list[str]


class Images(Base):
    """Images, each under a caption."""

    kind: Literal["images"] = "images"
    captions: list[str]
    images: Annotated[list[Annotated[str, Field(pattern=PATTERN)]], AfterValidator(checked)]
    """Each image as a data URI (`unrolled.pictures.png`); empty: no image."""
    across: int = Field(5, ge=1, le=20)
    """How many are in a row."""


class Drawings(Base):
    """Pen strokes, each drawing under a caption; colours go from the first point to the last."""

    kind: Literal["drawings"] = "drawings"
    captions: list[str]
    drawings: list[list[list[tuple[float, float]]]]
    """Each drawing as its strokes, each stroke as its places [x, y], y downwards."""
    across: int = Field(4, ge=1, le=20)
    """How many are in a row."""


class Sounds(Base):
    """Recordings to listen to, each under a caption."""

    kind: Literal["sounds"] = "sounds"
    captions: list[str]
    sounds: list[Annotated[str, Field(pattern=WAV, max_length=MOST_SOUND)]]
    """Each recording as the data URI of a .wav file."""


Picture = Plot | Heatmap | Bars | Tokens | Table | Texts | Images | Drawings | Sounds

_reader: TypeAdapter[Picture] = TypeAdapter(Annotated[Picture, Field(discriminator="kind")])


def read_picture(value: Any) -> Picture:
    """The picture that `picture.model_dump(mode="json")` gave.

    >>> read_picture({"kind": "bars", "title": "t", "names": ["a"], "values": [1.0]}).names
    ['a']
    """
    return _reader.validate_python(value)
