"""What the file of a data set and that of a reader declare. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from unrolled.core.config import Config
from unrolled.core.declared import WrongField


class Made(NamedTuple):
    """An example of a data set that is not text: what is read, what is to be predicted, and where in the set it is."""

    input: Any
    target: Any
    place: str
    part: str = "all"
    """train, valid or test where the set says so"""
    kind: str = ""
    """what sort of held-out example it is, where metrics are also computed by sort"""


@dataclass(frozen=True, kw_only=True)
class BuiltinSpec:
    """A built-in data set, `builtin:NAME,setting=value`."""

    summary: str
    """what it is, and what it is for"""
    licence: str
    size: str
    """about how large it is, in words"""
    holds: Literal["text", "rows", "labelled", "bags", "pairs", "pictures", "series", "drawings", "sounds"]
    """what `read` gives: one text or the paths of texts; rows with named values, of texts or of series along time;
    otherwise an iterator of `Made`, of series [T, D] or bags (lists of texts) with their targets, texts with their
    translations, pictures [H, W, 3] with their captions, pen strokes with their texts, or samples [T] of sound with a
    dict of what is known of them, their `rate` among it"""
    use: str
    """the tasks that it is for, as the end of a sentence: use it with .."""
    read: Callable[[Any], Any]
    """from the settings to the data, the same every time"""
    settings: type[Config] = Config
    """what may follow the name; `examples` and `length` say how much is made"""
    columns: Mapping[str, str] = field(default_factory=dict)
    """of rows: the names of the column of text and, as `target`, of the class; of bags the same and, as `bag`, of the
    bag, by which other data is then read"""
    answers: Literal["class", "numbers", "series"] | None = None
    """of series: what their targets are; None: they have none"""


@dataclass(frozen=True, kw_only=True)
class ReaderSpec:
    """A format of files, claimed by how their names end."""

    summary: str
    """what such a file holds"""
    suffixes: tuple[str, ...]
    """suffixes of file names, in lower case: (".csv",); compressed files (.csv.gz, .bz2, .xz) are claimed with them"""
    gives: Literal["table", "examples"]
    """what `read` gives: rows with named values, for every task that reads tables; or series and words with targets"""
    read: Callable[..., Any]
    """of a table: from a TextFile (`path`, `lines()`, `open()` for bytes) to a Table, or to a list of dicts; of
    examples: from `(paths, folder, name, reading, answers)` to a LabelledSource"""
    many: bool = False
    """of examples: whether a folder of such files is read as one source"""

    def __post_init__(self) -> None:
        wrong = [each for each in self.suffixes if not each.startswith(".") or each != each.lower()]
        if wrong or not self.suffixes:
            raise WrongField(ReaderSpec, "suffixes", f"'suffixes' must be like (\".csv\",), found {self.suffixes!r}")
