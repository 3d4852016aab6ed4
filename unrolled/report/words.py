"""Numbers, times and facts in words, as tables and sentences need them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from unrolled.pictures.letters import plain_number


def score_words(value: Any, digits: int = 4) -> str:
    """A score with the digits that distinguish scores.

    >>> score_words(1.5), score_words(None)
    ('1.5000', '')
    """
    return f"{value:.{digits}f}" if isinstance(value, int | float) else ""


def time_words(seconds: Any) -> str:
    """A stretch of time.

    >>> [time_words(value) for value in (None, 0.42, 12.3, 75, 3600, 90000)]
    ['', '0.42 s', '12.3 s', '1 min 15 s', '1 h', '25 h']
    """
    if not isinstance(seconds, int | float):
        return ""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"


def rounded_up(seconds: float) -> float:
    """A time that was estimated: to the next 10 seconds, minute or 10 minutes.

    >>> [rounded_up(value) for value in (3, 62, 700, 4000)]
    [10.0, 70.0, 720.0, 4200.0]
    """
    size = next((size for most, size in ((120, 10), (3600, 60)) if seconds <= most), 600)
    return float(math.ceil(seconds / size) * size)


def age_words(seconds: float) -> str:
    """How long ago, roughly.

    >>> [age_words(value) for value in (5, 200, 7300, 260000, 4e7)]
    ['5 s', '3 min', '2 h', '3 d', '462 d']
    """
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {word}"
    return f"{max(int(seconds), 0)} s"


def count_words(value: float | None) -> str:
    """A count in few letters.

    >>> [count_words(value) for value in (None, 999, 45_344, 501_024, 3_150_336)]
    ['', '999', '45.3k', '501k', '3.15M']
    """
    if value is None:
        return ""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:g}"


def size_words(n_bytes: float) -> str:
    """Bytes in thousands.

    >>> size_words(999), size_words(12_300), size_words(4_560_000)
    ('999 B', '12.3 kB', '4.56 MB')
    """
    for size, word in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {word}"
    return f"{n_bytes:.0f} B"


def fact_words(value: Any) -> str:
    """A fact of any shape on one line.

    >>> fact_words({"min": 6, "mean": 20.77, "kinds": ["a", "b"]})
    'min 6; mean 20.77; kinds a, b'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {fact_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(fact_words(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain_number(value) if isinstance(value, int | float) else str(value)


def interval_words(row: Mapping[str, Any]) -> str:
    """
    >>> interval_words({"interval": [0.1, 0.25]})
    '95 % interval 0.1000 to 0.2500'
    """
    ends = row.get("interval")
    return f"95 % interval {score_words(ends[0])} to {score_words(ends[1])}" if ends else ""


def units_words(table: Mapping[str, Any]) -> str:
    """On how much scores are measured, and by how many seeds.

    >>> units_words({"units": 1200, "unit": "examples", "seeds": [0]}), units_words({"seeds": [0, 1]})
    ('1,200 examples, 1 seed', '2 seeds')
    """
    n, seeds = table.get("units"), len(table.get("seeds") or [])
    known = f"{n:,} {table.get('unit') or 'examples'}" if n else ""
    return ", ".join(filter(None, [known, f"{seeds} seed{'s' if seeds != 1 else ''}" if seeds else ""]))


def setting_words(value: object) -> str:
    """A value of a setting, short.

    >>> setting_words(0.00123456), setting_words("after"), setting_words(None)
    ('0.00123', 'after', '')
    """
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """The last word of each setting, where no other has the same; of a model's or a task's setting then the group too.

    >>> short_names(["optimiser.lr", "ends.dropout", "model.dropout"])
    {'optimiser.lr': 'lr', 'ends.dropout': 'dropout', 'model.dropout': 'model dropout'}
    """
    last = {key: key.split(".")[-1] for key in keys}
    often = [name for name in last.values() if list(last.values()).count(name) > 1]
    own = ("model", "task")
    return {
        key: f"{key.split('.')[0]} {name}" if name in often and key.split(".")[0] in own else name
        for key, name in last.items()
    }
