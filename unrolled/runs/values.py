"""Values of settings as people write them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def seconds(value: Any) -> Any:
    """`90`, `"90s"`, `"5m"`, `"1.5h"` as seconds.

    >>> seconds("5m"), seconds("1.5h"), seconds(20)
    (300.0, 5400.0, 20)
    """
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", value)
    if not found:
        raise ValueError(f"'{value}' is not a time: expected a value such as 90s, 5m or 1.5h")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def decays(values: tuple[float, float]) -> tuple[float, float]:
    """Two shares that a running mean keeps at each step."""
    if not all(0 <= value < 1 for value in values):
        raise ValueError(f"invalid value {list(values)}: expected two numbers, each >= 0 and < 1")
    return values


def words(value: Any) -> Any:
    """`"encoder,embedding"` as a list; any other value as it is.

    >>> words("encoder, embedding")
    ['encoder', 'embedding']
    """
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(seconds), Field(gt=0)]
