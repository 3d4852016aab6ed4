"""What text data to read and how to cut it: one schema for the command line, recipes and saved runs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from unrolled.core.config import Config
from unrolled.core.tokens import BYTE_VALUES, SPECIALS


class DataConfig(Config):
    """Text for next-token models: what an example is, what a token is, and who sees which part."""

    examples: Literal["auto", "stream", "lines", "rows"] = "auto"
    """what one example is: `stream` is one long text whose state is carried, `lines` and `rows` are separate examples
    from the initial state; `auto` reads .txt files and folders as a stream, tables and lists as rows"""

    column: str | None = None
    """the column that holds the text; without it the only column, or the one called `text`"""

    condition: str | None = None
    """a column of classes to start the model from; for lines of .txt files the column `file` is the file's name"""

    part: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None
    """a column that says which split a row is for: train, valid or test"""

    tokens: Literal["char", "byte", "word", "bpe"] = "char"
    """what a token is: a character, a byte of UTF-8, a word, or a piece learned by byte-pair encoding"""

    vocabulary: int = Field(1024, ge=8)
    """the largest number of different tokens for `word` and `bpe`, special tokens included"""

    ahead: int = Field(1, ge=1)
    """how many tokens ahead to predict"""

    split: str = "90/5/5"
    """shares in percent for training, validation and test; `90/10` has no test part"""

    too_long: Literal["error", "truncate", "split"] = "error"
    """what to do with a line or row of more than `max_length` tokens"""

    max_length: int | None = Field(None, ge=1)
    """the most tokens a line or row may have, <start> and <stop> not counted; none: any length"""

    fraction: float = Field(1.0, gt=0, le=1)
    """the share of the training part that is trained on; tokens are still those of the whole part"""

    held_out: int | None = Field(None, ge=1)
    """the most tokens of the validation and of the test part that are used; none: all"""

    seed: int = Field(0, ge=0, json_schema_extra={"flag": "--split-seed"})
    """decides which lines or rows go to which part"""

    @field_validator("split")
    @classmethod
    def _check_split(cls, text: str) -> str:
        split_shares(text)
        return text

    @model_validator(mode="after")
    def _check_vocabulary(self) -> Self:
        if self.tokens == "bpe" and self.vocabulary < BYTE_VALUES + len(SPECIALS):
            raise ValueError(
                f"vocabulary = {self.vocabulary} is too small for bpe: "
                f"{BYTE_VALUES} bytes and {len(SPECIALS)} special tokens are always in it"
            )
        return self

    def shares(self) -> dict[str, float]:
        """The part of the data that each section gets: {'train': 0.9, 'valid': 0.05, 'test': 0.05}."""
        return dict(zip(("train", "valid", "test"), split_shares(self.split)))


def split_shares(text: str) -> list[float]:
    """`"90/5/5"` as fractions of one.

    >>> split_shares("90/10")
    [0.9, 0.1]
    """
    try:
        shares = [float(part) for part in text.split("/")]
    except ValueError:
        shares = []
    if len(shares) not in (2, 3) or not all(0 < share < 100 for share in shares) or abs(sum(shares) - 100) > 1e-6:
        raise ValueError(f"'{text}' is not a split: write two or three percentages that sum to 100, such as 90/5/5")
    return [share / 100 for share in shares]
