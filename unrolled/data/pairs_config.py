"""How pairs of a source and a target text are found in some data. Imports no torch."""

from __future__ import annotations

from typing import Literal, Self

from unrolled.core.config import Config
from unrolled.data.reading import Name


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
