"""What stands in a cell, checked: a class, several classes, a number, a list of words, a series of numbers."""

from __future__ import annotations

import json
import math
import numbers
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option

SHOWN = 40  # characters of a cell
LARGEST = float(np.finfo(np.float32).max)
UNREAL = np.complexfloating | np.datetime64 | np.timedelta64
GAPS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
PANDAS_GAPS = ("NAType", "NaTType")  # types of its missing values; it need not be installed


def check_text(text: Any) -> None:
    """Half a surrogate pair is in no encoding of text; every other text is."""
    if not isinstance(text, str):
        raise DataError(f"expected a text, found {type(text).__name__}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"character {error.start + 1} is the lone surrogate U+{ord(text[error.start]):04X}, which is not a "
            "valid character; remove it or decode the text again"
        ) from None


class LocalNumber(str):
    """A number in a table with a decimal comma, such as 1,5; `float` reads it where it can mean one number only."""

    plain: str | None
    """with a decimal point; None: the sign may also separate thousands"""

    @classmethod
    def of(cls, cell: str, plain: str | None) -> LocalNumber:
        found = cls(cell)
        found.plain = plain
        return found

    def __float__(self) -> float:
        if self.plain is None:
            raise ValueError(f"{self} may be two numbers")
        return float(self.plain)


def is_number(cell: Any) -> bool:
    """Whether a cell holds a number, be it as text."""
    if isinstance(cell, LocalNumber):
        return True
    if isinstance(cell, str):
        try:
            float(cell)
        except ValueError:
            return False
        return "_" not in cell  # which Python leaves out between digits
    return isinstance(cell, numbers.Real | np.number) and not isinstance(cell, bool | UNREAL)


def is_gap(cell: Any) -> bool:
    """Whether a cell says that there is no value."""
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in GAPS):
        return True
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    if isinstance(cell, float | np.floating):
        return bool(np.isnan(cell))
    return type(cell).__name__ in PANDAS_GAPS


def as_number(cell: Any, place: str) -> float:
    """A finite number."""
    if is_gap(cell):
        raise DataError(f"{place}: found {shown(cell)}, expected a number; fill it in or remove the row")
    if isinstance(cell, bool | np.bool_):
        return float(cell)
    if isinstance(cell, UNREAL):
        raise DataError(f"{place}: found {shown(cell)} of {cell.dtype}, expected a real number; convert it")
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        value = None
    if value is None or (isinstance(cell, str) and "_" in cell):
        raise DataError(f"{place}: found {shown(cell)}, expected a number; {_number_hint(cell)}")
    if not math.isfinite(value):
        raise DataError(f"{place}: found {shown(cell)}, expected a finite number; fix it or remove the row")
    if abs(value) > LARGEST:
        raise DataError(f"{place}: found {shown(cell)}, which is too large for single precision; scale the numbers")
    return value


def _number_hint(cell: Any) -> str:
    """What to do about a text that is no number, but may have been meant as one."""
    if isinstance(cell, LocalNumber):
        sign = "," if "," in cell else "."
        return f"'{sign}' may be the decimal sign or separate thousands; name the decimal sign with {option('decimal')}"
    if isinstance(cell, str) and cell.count(",") == 1 and is_number(cell.replace(",", ".")):
        return "write the decimal point as '.', and do not use thousands separators"
    if isinstance(cell, str) and is_number(re.sub(r"(?<=\d)[.,'_ \u00a0\u202f](?=\d{3})", "", cell).replace(",", ".")):
        return "do not use thousands separators"
    return "fill in a number, or remove the row"


def as_text(cell: str, place: str) -> str:
    """A text that can be written."""
    try:
        check_text(cell)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    return cell


class Typed(str):
    """The name of a class that came as a number or a truth value, which `value` is."""

    value: bool | int | float

    @classmethod
    def of(cls, value: bool | int | float) -> Typed:
        name = cls(str(value).lower() if isinstance(value, bool) else str(int(value)))
        name.value = value
        return name


def as_class(cell: Any, place: str) -> str:
    """The name of a class; whole numbers and true/false are names too (see Typed), 3.0 is the class 3."""
    if is_gap(cell) and not (isinstance(cell, str) and cell.strip()):  # 'NA' and 'none' may be names
        raise DataError(f"{place}: found {shown(cell)}, expected a class; fill it in or remove the row")
    if isinstance(cell, LocalNumber):
        return cell
    if isinstance(cell, str):
        return as_text(cell, place).strip()
    if isinstance(cell, bool | np.bool_):
        return Typed.of(bool(cell))
    if isinstance(cell, numbers.Integral) and not isinstance(cell, UNREAL):
        return Typed.of(int(cell))
    if is_number(cell) and float(cell).is_integer():
        return Typed.of(float(cell))
    raise DataError(f"{place}: found {shown(cell)}, expected a class: a name or an integer")


NO_JSON = (ValueError, RecursionError)  # what `json.loads` raises: also for numbers of thousands of digits


def no_json(error: Exception) -> str:
    """Why a text is not JSON, in a few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error).split(";")[0]


def as_classes(cell: Any, separator: str | None, place: str) -> tuple[str, ...]:
    """The classes of one example, sorted: a list, a JSON list, or names with a separator; none at all is possible."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = json.loads(cell)
        except NO_JSON as error:
            raise DataError(f"{place}: found {shown(cell)}, which is not a JSON list ({no_json(error)})") from None
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, str):
        cell = [name for name in (cell.split(separator) if separator else [cell]) if name.strip()]
    elif cell is None:
        cell = []
    elif not isinstance(cell, list | tuple | set | frozenset):
        cell = [cell]
    return tuple(sorted({as_class(name, place) for name in cell}))


def as_words(cell: Any, place: str) -> list[str]:
    """Words: a list of texts (or of numbers, as names), or a text with white space between them."""
    if isinstance(cell, str):
        return cell.split()
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if not isinstance(cell, list | tuple):
        raise DataError(f"{place}: found {shown(cell)}, expected a list of words")
    return [as_class(word, place) for word in cell]


def as_series(cell: Any, place: str) -> NDArray[np.float64]:
    """A list of numbers, or of equally long lists of numbers, as [T, D]; in double precision until they are scaled, so
    that an offset that all values share costs no digits."""
    values = as_numbers(cell, place).astype(np.float64, copy=False)
    if values.ndim not in (1, 2):
        raise DataError(f"{place}: found {values.ndim} axes, expected numbers [time] or [time, channels]")
    return values[:, None] if values.ndim == 1 else values  # [T, D]


def as_numbers(value: Any, place: str) -> NDArray[Any]:
    """Numbers that a user gave, in the type that they have; others that can be read as numbers in double precision."""
    try:
        found = np.asarray(value)
        if found.dtype.kind in "cmMV":
            raise DataError(f"{place}: found values of {found.dtype}, expected real numbers; convert them")
        return found if found.dtype.kind in "iuf" else found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{place}: expected numbers, or lists of numbers of equal length") from None


def narrowed(values: NDArray[Any], place: str) -> NDArray[np.float32]:
    """Numbers in single precision, for which none may be too large."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    if np.isinf(found).any():
        raise DataError(f"{place}: there are numbers that are too large or infinite; check the values")
    return found


def shown(cell: Any) -> str:
    """A cell as a sentence shows it.

    >>> shown(" "), shown("a" * 50), shown(None)
    ('an empty cell', "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'", 'an empty cell')
    """
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return "an empty cell"
    try:
        text = str(cell)
    except ValueError:  # a whole number of thousands of digits
        text = "a number with thousands of digits"
    text = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return f"'{text}'" if isinstance(cell, str) else text


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null",
             int: "a number", float: "a number"}  # fmt: skip
    return names.get(type(value), f"a value of type {type(value).__name__}")


def in_brief(value: Any, most: int = 200) -> str:
    """A value of an example as a line shows it: the beginning of a text, or the shape of numbers and the first of them.

    >>> in_brief("a" * 300, 5), in_brief(["a", "b"]), in_brief(np.ones((2, 3))), in_brief(None)
    ('aaaaa…', 'a b', 'numbers [2, 3]: 1 1 1 1 1 1', '')
    """
    if isinstance(value, np.ndarray):
        few = " ".join(f"{each:.4g}" for each in value.flat[:8])
        return few if value.size == 1 else f"numbers {list(value.shape)}: {few}{' …' if value.size > 8 else ''}"
    text = "" if value is None else " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= most else f"{text[:most]}…"
