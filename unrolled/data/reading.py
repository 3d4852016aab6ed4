"""How examples with targets are found in a source: which columns, what a file name says, how images and sound are read;
and the two sides of pairs.

One schema for the command line, recipes and saved runs. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from numbers import Integral
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field

from unrolled.core.config import Config
from unrolled.data.files.name_pattern import check_pattern
from unrolled.data.files.number_words import LARGEST, english

Kind = Literal["text", "words", "series"]
"""What an input is: a text, a list of words, or numbers [T, D]."""
Answers = Literal["class", "classes", "numbers", "tags", "series", "none"]
"""What an answer is: one class, several, numbers, a tag for each word, numbers for each step, or nothing at all."""
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
    """what one step is: a row of pixels, one pixel, or a square patch"""

    patch: int = Field(4, ge=1)
    """the side of a patch in pixels; it must divide height and width"""

    grey: bool = True
    """one brightness a pixel; otherwise red, green and blue"""

    permutation: int | None = Field(None, ge=0)
    """the seed of one random order of the steps, the same for all images; none: from the top left"""


class SoundReading(Config):
    """A clip as a sequence: its samples, or the logarithm of its spectrum, frame by frame."""

    features: Literal["samples", "spectrum", "mel"] = "mel"
    """what one step is: a sample, a frame of the power spectrum, or the same in mel bands"""

    frame: float = Field(0.032, gt=0, le=10)
    """seconds of sound in a frame"""

    hop: float = Field(0.016, gt=0, le=10)
    """seconds from one frame to the next"""

    bands: int = Field(40, ge=2)
    """mel bands"""


class Noise(Config):
    """Noise that is put on clean series."""

    noise: Literal["white", "pink"] | None = None
    """noise to be put on series that are clean, so that cleaning them is learned; none: noisy and clean are given"""

    snr: float = Field(0.0, ge=-100, le=100)
    """how much stronger than its noise a series is, in decibels"""


class Fold(Config):
    """Cross-validation: all that is not for test is cut into equal parts, of which one is for validation."""

    of: int | None = Field(None, ge=2, le=100)
    """how many parts; none: no cross-validation"""

    number: int | None = Field(None, ge=0)
    """which of them is for validation, counted from 0; none: nothing is, and training has all"""


class Reading(Config):
    """Where inputs and answers are in a source; what is not said is chosen by name and reported."""

    column: Names | None = None
    """the column of the input: text, a list of words, or a list of numbers; for series several names with commas, or
    a list of names"""

    target: Names | None = None
    """the column of the answer; several names with commas, or a list of names, for several numbers"""

    separator: str | None = Field(None, min_length=1)
    """what stands between the classes of one example that has several, such as `,` or `|`"""

    group: Name | None = None
    """a column of groups (documents, speakers) that stay together in the split; `file` for files, or a group of
    `pattern` by name"""

    part: Name | None = None
    """a column that says which part a row is for: train, valid or test"""

    layout: Literal["auto", "cells", "wide", "long"] = "auto"
    """how a table holds inputs: one in a cell, a series along each row, or a series down the rows of one id"""

    id: Name | None = None
    """the column that tells the series of a long table apart"""

    time: Name | None = None
    """the column by which a series of a long table is put in order; none: as they stand"""

    missing: Literal["error", "zero", "previous", "line"] = "error"
    """what to do where a series has no value: refuse, zero, the value before, or a straight line between neighbours"""

    window: int | None = Field(None, ge=2)
    """cut series with an answer at each step into pieces of this many steps"""

    tag_column: int = -1
    """which column of CoNLL-style lines is the tag, counted from 0, or from the end with -1"""

    untagged: Literal["error", "join", "skip"] = "error"
    """what to do with a word without a tag in word_TAG lines: refuse, join it to the next word, or leave it out"""

    pattern: NamePattern = None
    """a regular expression for file names with the named groups `answer` and perhaps `group`, `part`; for instance
    `(?P<answer>\\d)_(?P<speaker>\\w+)_\\d+`; without look-around and back-references"""

    fold: Fold = Fold()
    images: ImageReading = ImageReading()
    sound: SoundReading = SoundReading()

    def uses(self) -> dict[str, str]:
        """What the columns that are named are used for."""
        named = {"input": self.column, "target": self.target, "group": self.group, "split": self.part,
                 "series": self.id, "time": self.time}  # fmt: skip
        return {name: use for use, wanted in named.items() for name in names_of(wanted)}


class PairReading(Config):
    """Where the two sides of a pair are; what is not said is chosen by name and reported."""

    source_column: Name | None = None
    """the column of the source; of a folder of line-aligned files, their ending, such as `de` for train.de"""

    target_column: Name | None = None
    """the column of the target; of a folder of line-aligned files, their ending, such as `en` for train.en"""

    target_file: str | None = None
    """a file whose line n is the target of line n of DATA"""

    part_column: Name | None = None
    """a column that says which part a pair is for: train, valid or test"""

    test_set: str | None = None
    """which test files of a folder that has several are the test part, such as `test_2016_flickr`"""

    lower: bool = False
    """make all letters small, on both sides and in what is read later"""

    vocabularies: Literal["auto", "joint", "separate"] = "auto"
    """one vocabulary for both sides, or one for each; auto: joint for bpe, otherwise separate"""

    skip_bad: bool = False
    """leave out pairs that cannot be used (a side is missing, or too long), count and list them; otherwise refuse"""

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
    """only the targets have one"""

    size: int | None = Field(None, ge=4, le=1024)
    """bring every image to this many pixels a side, with white beside it where it is not square; none: as they are"""

    grey: bool = False
    """one brightness a pixel; otherwise red, green and blue"""


class RecognitionReading(PairReading):
    """Where sounds or strokes and their texts are: `source_column` names a clip or holds strokes, `target_column` the
    text, `target_file` is a table of the clips of a folder."""

    vocabularies: Literal["separate"] = "separate"  # type: ignore[assignment]
    """only the targets have one"""

    spell: bool = False
    """write a text that is a whole number in English words: 7 as seven"""

    pattern: NamePattern = None
    """a regular expression for the names of clips with the named group `answer`, the text: `(?P<answer>\\d)_.*`"""

    sound: SoundReading = SoundReading()

    def said(self, text: Any) -> Any:
        """A target as it is to be written."""
        if isinstance(text, Integral) and not isinstance(text, bool):
            text = str(text)
        if self.spell and isinstance(text, str) and text.strip().isdecimal() and int(text) <= LARGEST:
            return english(int(text))
        return text
