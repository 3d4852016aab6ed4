"""What text data to read and how to cut it: one schema for the command line, recipes and saved runs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from unrolled.core.config import Config
from unrolled.core.tokens import BYTE_VALUES, SPECIALS
from unrolled.data.files.file_form import FileForm, checked_encoding, checked_separator


class FilesConfig(Config):
    """How text files and tables are written, where that is not to be found out."""

    encoding: Annotated[str, AfterValidator(checked_encoding)] | None = None
    """Encoding of text files and tables, such as cp1251. [default: UTF-8, UTF-16 and Windows-1252 are recognised]"""

    separator: Annotated[str, AfterValidator(checked_separator)] | None = None
    """What separates the columns of .csv and .tsv files: one character, or tab. [default: found in the first lines]"""

    decimal: Literal[".", ","] | None = None
    """Decimal sign of the numbers in .csv and .tsv files. [default: found in the first rows]"""

    def form(self, is_habit: bool = False) -> FileForm:
        """How files are read; as a habit, where they are others than those that it was given for."""
        return FileForm(self.encoding, self.separator, self.decimal, is_habit)


class DataConfig(Config):
    """Text for next-token models: what an example is, what a token is, and how they are split."""

    examples: Literal["auto", "stream", "lines", "rows"] = "auto"
    """What one example is: `stream` reads one long text and carries the state from batch to batch; `lines` and `rows`
    are separate examples that start from the initial state; `auto` reads .txt files and folders as a stream, tables and
    lists as rows."""

    column: str | None = None
    """The column that holds the text. [default: the only column, or the one called `text`]"""

    condition: str | None = None
    """A column of classes that condition the model, or columns of numbers: `age:number,size:number`; for lines of .txt
    files the column `file` is the file name; of sound several names, separated by commas."""

    part: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None
    """A column with the split of each row: train, valid or test."""

    tokens: Literal["char", "byte", "word", "bpe"] = "char"
    """What a token is: a character, a UTF-8 byte, a word, or a subword learned by byte-pair encoding."""

    vocabulary: int = Field(1024, ge=8)
    """Maximum vocabulary size for `word` and `bpe`, special tokens included."""

    ahead: int = Field(1, ge=1)
    """How many tokens ahead to predict."""

    split: str = "90/5/5"
    """Percentages of training, validation and test data; `90/10` has no test split."""

    too_long: Literal["error", "truncate", "split"] = "error"
    """What to do with a line or row of more than `max_length` tokens."""

    max_length: int | None = Field(None, ge=1)
    """Maximum number of tokens in a line or row, without <start> and <stop>; none: no limit."""

    fraction: float = Field(1.0, gt=0, le=1)
    """Share of the training data to train on; the vocabulary is still that of all training data."""

    held_out: int | None = Field(None, ge=1)
    """Maximum number of tokens used from the validation and from the test split; none: all."""

    seed: int = Field(0, ge=0, json_schema_extra={"flag": "--split-seed"})
    """Random seed of the split into training, validation and test data."""

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
        """The share of the data that each split gets: {'train': 0.9, 'valid': 0.05, 'test': 0.05}."""
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
        raise ValueError(f"'{text}' is not a split: expected two or three percentages that sum to 100, such as 90/5/5")
    return [share / 100 for share in shares]
