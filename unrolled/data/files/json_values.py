"""JSON of a user's data: a line or a file, with the place of what is wrong."""

from __future__ import annotations

import json
from typing import Any

from unrolled.core.errors import DataError
from unrolled.data.files.cell_values import NO_JSON, no_json, shown


def json_of(text: str, place: str, line: int | None) -> Any:
    """The value of a JSON text, which is a line of a file or, where `line` is None, all of it."""
    try:
        return json.loads(text, object_pairs_hook=_named_once)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if line else f"line {error.lineno}, column {error.colno}"
        hint = "write one complete JSON object per line" if line else "fix the file"
        raise DataError(f"{place}, {where}: not JSON ({error.msg}); {hint}") from None
    except NO_JSON as error:
        raise DataError(f"{place}: not usable JSON ({no_json(error)})") from None


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that is there twice would lose one of its values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise ValueError(f"the name {shown(twice)} occurs twice in one object")
    return found
