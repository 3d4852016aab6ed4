"""How examples with targets are found in a source: which columns, what a file name says, how images and sound are read;
and the two sides of pairs.

One schema for the command line, recipes and saved runs. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from unrolled.core.config import Config
from unrolled.data.config import DataConfig
from unrolled.data.files.name_pattern import check_pattern
from unrolled.data.files.number_words import LARGEST, english

Kind = Literal["text", "words", "series"]
"""What an input is: a text, a list of words, or numbers [T, D]."""
Answers = Literal["class", "classes", "numbers", "tags", "series", "none"]
"""What a target is: one class, several, numbers, a tag for each word, numbers for each step, or nothing at all."""
Name = Annotated[str, Field(coerce_numbers_to_str=True)]
Names = Name | tuple[Name, ...]
"""One name, several in a text with commas between them, or a list of them, whose names may contain commas."""

NamePattern = Annotated[str | None, AfterValidator(check_pattern)]


def names_of(wanted: Names | None, known: Collection[str] = ()) -> list[str]:
    """The names that are meant; a text is one name where that is known.

    >>> names_of("a, b"), names_of("a, b", ["a, b", "c"]), names_of(("a, b", "c")), names_of(None)
    (['a', 'b'], ['a, b'], ['a, b', 'c'], [])
    """
    if not isinstance(wanted, str):
        return list(wanted or ())
    return [wanted] if wanted in known else [name.strip() for name in wanted.split(",")]


def as_names(found: Sequence[str]) -> Names | None:
    """Names to be saved, so that `names_of` gives the same again; None where there is none.

    >>> as_names(["a"]), as_names(["a", "b"]), as_names(["a, b"]), as_names([])
    ('a', ('a', 'b'), ('a, b',), None)
    """
    return found[0] if len(found) == 1 and "," not in found[0] else tuple(found) or None


class ImageReading(Config):
    """An image as a sequence."""

    order: Literal["rows", "pixels", "patches"] = "rows"
    """What one step is: a row of pixels, one pixel, or a square patch."""

    patch: int = Field(4, ge=1)
    """Side of a patch in pixels; height and width must be divisible by it."""

    grey: bool = True
    """Convert images to grey; otherwise red, green and blue."""

    permutation: int | None = Field(None, ge=0)
    """Random seed of a permutation of the steps, the same for all images; none: in order from the top left."""


class SoundReading(Config):
    """A clip as a sequence: its samples, or the logarithm of its spectrum, frame by frame."""

    features: Literal["samples", "spectrum", "mel"] = "mel"
    """What one step is: a sample, a frame of the log power spectrum, or a frame in mel bands."""

    frame: float = Field(0.032, gt=0, le=10)
    """Length of a frame in seconds."""

    hop: float = Field(0.016, gt=0, le=10)
    """Seconds from one frame to the next."""

    bands: int = Field(40, ge=2)
    """Number of mel bands."""


class Noise(Config):
    """Noise that is put on clean series."""

    noise: Literal["white", "pink"] | None = None
    """Noise to add to clean series, to learn how to remove it; none: the data has noisy and clean series."""

    snr: float = Field(0.0, ge=-100, le=100)
    """Signal-to-noise ratio in decibels."""


class Fold(Config):
    """Cross-validation: all data outside the test split is divided into equal folds, one of which is for validation."""

    of: int | None = Field(None, ge=2, le=100)
    """Number of folds; none: no cross-validation."""

    number: int | None = Field(None, ge=0)
    """Which fold is for validation, counted from 0; none: no fold is, and all are trained on."""


class Reading(Config):
    """Where inputs and targets are in a source; what is not given is chosen by name and reported."""

    column: Names | None = None
    """The column of the input: text, a list of words, or a list of numbers; for series several names separated by
    commas, or a list of names."""

    target: Names | None = None
    """The column of the target; for several numbers, several names separated by commas, or a list of names."""

    class_separator: str | None = Field(None, min_length=1)
    """The separator between the classes of an example that has several, such as `,` or `|`."""

    group: Name | None = None
    """A column of groups (documents, speakers) that are not divided by the split; `file` for files, or a named group of
    `pattern`."""

    part: Name | None = None
    """A column with the split of each row: train, valid or test."""

    layout: Literal["auto", "cells", "wide", "long", "vector", "file"] = "auto"
    """How a table holds inputs: one input per cell, one series per row (wide), one series in the rows of each id
    (long) or of each file (file), or one step per row with a channel per column (vector)."""

    bag: Name | None = None
    """Examples are bags: the column that says in which bag the instance of each row is, or one whose cells are lists of
    instances; of arrays the same, or the offsets of bags."""

    id: Name | None = None
    """The column that identifies the series of a long table."""

    time: Name | None = None
    """The column that orders the rows of a series in a long table; none: the order of the table."""

    missing: Literal["error", "zero", "previous", "line"] = "error"
    """What to do with missing values in a series: report an error, use zero, use the previous value, or interpolate
    linearly."""

    window: int | None = Field(None, ge=2)
    """Cut series with a target at each step into windows of this many steps."""

    tag_column: int = -1
    """The column of the tag in CoNLL-style lines, counted from 0, or from the end with -1."""

    untagged: Literal["error", "join", "skip"] = "error"
    """What to do with a word without a tag in word_TAG lines: report an error, join it to the next word, or leave it
    out."""

    pattern: NamePattern = None
    """A regular expression for file names with the named groups `answer` (the target) and optionally `group` and
    `part`; for instance `(?P<answer>\\d)_(?P<speaker>\\w+)_\\d+`; without look-around and back-references"""

    fold: Fold = Fold()
    images: ImageReading = ImageReading()
    sound: SoundReading = SoundReading()

    @model_validator(mode="before")
    @classmethod
    def called_before(cls, values: Any) -> Any:
        """`separator` is what runs saved earlier call it."""
        if not isinstance(values, Mapping) or "separator" not in values:
            return values
        return {"class_separator" if key == "separator" else key: value for key, value in values.items()}

    def completed(self, data: DataConfig) -> Reading:
        """With the column and the part that are given for any data, where this says none: `--column` means both."""
        own = {name: getattr(data, name) for name in ("column", "part") if getattr(self, name) is None}
        return self.updated({name: value for name, value in own.items() if value is not None})

    def uses(self) -> dict[str, str]:
        """What the columns that are named are used for."""
        named = {"input": self.column, "target": self.target, "group": self.group, "split": self.part,
                 "series": self.id, "time": self.time, "bag": self.bag}  # fmt: skip
        return {name: use for use, wanted in named.items() for name in names_of(wanted)}


class PairReading(Config):
    """Where the two sides of a pair are; what is not given is chosen by name and reported."""

    source_column: Name | None = None
    """The column of the source; for a folder of line-aligned files their suffix, such as `de` for train.de."""

    target_column: Name | None = None
    """The column of the target; for a folder of line-aligned files their suffix, such as `en` for train.en."""

    target_file: str | None = None
    """A file whose line n is the target of line n of DATA."""

    part_column: Name | None = None
    """A column with the split of each pair: train, valid or test."""

    test_set: str | None = None
    """Which test files to use if a folder has several, such as `test_2016_flickr`."""

    lower: bool = False
    """Convert both sides to lower case, also later inputs."""

    vocabularies: Literal["auto", "joint", "separate"] = "auto"
    """One vocabulary for both sides, or one for each; auto: joint for bpe, otherwise separate."""

    skip_bad: bool = False
    """Skip pairs that cannot be used (a side is missing or too long), count and list them; otherwise they are an
    error."""

    def with_part(self, column: str | None) -> Self:
        """The same with a column of splits, where that is named as for data of any kind."""
        return self if column is None or self.part_column is not None else self.updated({"part_column": column})

    def uses(self) -> dict[str, str]:
        """What the columns that are named are used for."""
        named = {self.source_column: "source", self.target_column: "target", self.part_column: "split"}
        return {name: use for name, use in named.items() if name is not None}


class CaptionReading(PairReading):
    """Where images and captions are: `source_column` names the image, `target_column` its caption, `target_file` the
    file of captions."""

    vocabularies: Literal["separate"] = "separate"  # type: ignore[assignment]
    """Only targets have a vocabulary."""

    size: int | None = Field(None, ge=4, le=1024)
    """Resize every image to this many pixels per side, padded with white if it is not square; none: keep the size."""

    grey: bool = False
    """Convert images to grey; otherwise red, green and blue."""


class RecognitionReading(PairReading):
    """Where sounds or strokes and their texts are: `source_column` names a clip or holds strokes, `target_column` the
    text, `target_file` is a table of the clips of a folder."""

    vocabularies: Literal["separate"] = "separate"  # type: ignore[assignment]
    """Only targets have a vocabulary."""

    spell: bool = False
    """Spell texts that are integers in English words: 7 as seven."""

    pattern: NamePattern = None
    """A regular expression for the names of clips with the named group `answer`, the text: `(?P<answer>\\d)_.*`"""

    sound: SoundReading = SoundReading()

    def said(self, text: Any) -> Any:
        """A target as it is to be written."""
        if isinstance(text, Integral) and not isinstance(text, bool):
            text = str(text)
        if self.spell and isinstance(text, str) and text.strip().isdecimal() and int(text) <= LARGEST:
            return english(int(text))
        return text
