"""What a model says must be finite: NaN and infinity are never passed on as if they were predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from unrolled.core.errors import DataError


def require_finite(value: Any, where: str = "") -> None:
    """Refuse a value (numbers in lists and mappings, or one) that holds NaN or infinity; `where` says of what it is.

    >>> require_finite({"p": [0.5, 1.0], "text": "nan"})
    """
    found = _odd(value)
    if found is not None:
        raise not_finite(found, where)


def not_finite(found: object, where: str = "") -> DataError:
    return DataError(
        f"{f'{where}: ' if where else ''}the model's output is not finite ({found}): its weights are damaged or "
        "have diverged, or the input is far outside the range of the training data"
    )


def _odd(value: Any) -> float | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else value
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((found for each in value if (found := _odd(each)) is not None), None)
    return None
