"""What is given to predict for, in memory: a table of rows, or bare values in a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrolled.core.errors import Misused
from unrolled.data.files.tables import FrameTable, ListTable, Table


def table_of(source: Any) -> Table | None:
    """Rows in memory as a table: a list of dicts or a data frame; None: it is no table."""
    import narwhals

    if isinstance(source, list | tuple):
        return ListTable(source) if source and isinstance(source[0], Mapping) else None
    found = narwhals.from_native(source, eager_only=True, pass_through=True)
    return FrameTable(found) if isinstance(found, narwhals.DataFrame) else None


def as_array(values: Any) -> Any:
    """A tensor of torch as an array, without its graph; anything else as it is. Imports no torch."""
    return values.detach().cpu().numpy() if type(values).__module__.split(".")[0] == "torch" else values


def is_standard_input(source: Any) -> bool:
    """Whether data is named `-`; it may be of any type."""
    return isinstance(source, str) and source == "-"


def values_of(source: Any) -> list[Any]:
    """A list, an array or a column of examples as a list; one text alone is no list of them."""
    if isinstance(source, str | bytes | Mapping) or not hasattr(source, "__iter__"):
        raise Misused(f"expected a list of examples, found one {type(source).__name__}")
    return list(source)
