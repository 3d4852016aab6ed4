"""What is given to predict for, in memory: a table of rows, or bare values in a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrolled.core.errors import Misused
from unrolled.data.files.tables import FrameTable, ListTable, Table

VALUE = "value"  # the name of a column that has none
TIMES = ("datetime64", "datetime", "date", "period")  # kinds of values of an index of pandas


def table_of(source: Any) -> Table | None:
    """Rows in memory as a table: a list of dicts, or a data frame, of which an index of times is a column, or values
    with such an index; None: it is no table."""
    import narwhals

    if isinstance(source, list | tuple):
        return ListTable(source) if source and isinstance(source[0], Mapping) else None
    found = narwhals.from_native(source, eager_only=True, allow_series=True, pass_through=True)
    if not isinstance(found, narwhals.DataFrame | narwhals.Series):
        return None
    index = narwhals.maybe_get_index(found)
    timed = index is not None and _holds_times(index)
    if isinstance(found, narwhals.Series):
        if not timed:
            return None
        found = found.alias(found.name or VALUE).to_frame()
    return FrameTable(narwhals.from_native(found.to_native().reset_index(), eager_only=True) if timed else found)


def _holds_times(index: Any) -> bool:
    """Whether an index of pandas, or one of its levels, holds times, as a column would."""
    levels = (index.get_level_values(k) for k in range(index.nlevels))
    return any(level.inferred_type in TIMES for level in levels)


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
