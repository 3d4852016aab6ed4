"""Which settings are searched, and where: around the defaults and the advice of model and task, within what is allowed.

learning rate, weight decay     a tenth to ten times, evenly on a logarithmic scale
widths, sizes of batches        a quarter to twice, in powers of two
layers, heads, kernels          half to twice
shares such as dropout          0 to 0.5
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from unrolled.core import discover
from unrolled.core.config import is_config
from unrolled.core.errors import UsageError, nearest
from unrolled.core.front import option
from unrolled.runs.config import Batching, Ends, Optimiser, RunConfig
from unrolled.runs.trust import is_path
from unrolled.tuning.config import MOST, Range

USUAL = ("optimiser.lr", "optimiser.weight_decay", "batching.batch_size", "ends.dropout")
TENFOLD, LARGE = 10.0, 8  # of rates; a size from which on powers of two are tried
HALF, ALL = 0.5, 0.99  # the largest share, and of those that are larger by default


def space_of(config: RunConfig, given: frozenset[str], asked: str | None) -> list[Range]:
    """The ranges of what is to be searched for a run; settings that are given stay as they are."""
    fields = dict(_fields(config))
    if asked is None:
        sizes = [key for key in fields if key.startswith("model.") and _is_size(fields[key])]
        ranges = [_around(key, *fields[key]) for key in (*USUAL, *sizes) if _full(key) not in given]
        found = [each for each in ranges if each is not None]
    else:
        found = [each for word in asked.split(",") if word.strip() for each in _asked(word.strip(), fields, given)]
    if not found:
        raise UsageError(f"nothing is left to search: name settings with {option('search')}, or give fewer of them")
    if len(found) > MOST:
        raise UsageError(f"a search has at most {MOST} settings, not {len(found)}")
    return found


def _full(key: str) -> str:
    """A key as configs have it."""
    group, _, name = key.partition(".")
    return f"{group}_settings.{name}" if group in ("model", "task") else key


def _fields(config: RunConfig) -> Iterator[tuple[str, tuple[FieldInfo, Any]]]:
    """Every setting that may be searched, with its field and what it is by default or by advice."""
    groups: dict[str, tuple[Any, Mapping[str, Any]]] = {
        "optimiser": (Optimiser, config.optimiser.model_dump()),
        "batching": (Batching, config.batching.model_dump()),
        "ends": (Ends, config.ends.model_dump()),
        "model": (discover.model(config.model).config, config.model_settings),
        "task": (discover.tasks.load(config.task).Config, config.task_settings),
    }
    for group, (kind, values) in groups.items():
        for name, field in kind.model_fields.items():
            if name in values and not is_config(field.annotation) and not is_path(name):
                yield f"{group}.{name}", (field, values[name])


def _bounds(field: FieldInfo) -> tuple[float | None, float | None, bool, bool]:
    """The smallest and largest value that a field accepts, and whether these are within."""
    low, high, low_in, high_in = None, None, True, True
    for item in field.metadata:
        if isinstance(item, annotated_types.Ge):
            low = float(item.ge)  # type: ignore[arg-type]
        elif isinstance(item, annotated_types.Gt):
            low, low_in = float(item.gt), False  # type: ignore[arg-type]
        elif isinstance(item, annotated_types.Le):
            high = float(item.le)  # type: ignore[arg-type]
        elif isinstance(item, annotated_types.Lt):
            high, high_in = float(item.lt), False  # type: ignore[arg-type]
    return low, high, low_in, high_in


def _is_share(field: FieldInfo) -> bool:
    low, high, low_in, _ = _bounds(field)
    return field.annotation is float and low == 0 and low_in and high == 1


def _is_size(entry: tuple[FieldInfo, Any]) -> bool:
    """Whether a setting of a model is a size of at least one, or a share such as dropout."""
    field, value = entry
    low = _bounds(field)[0]
    return _is_share(field) or (field.annotation is int and value is not None and low is not None and low >= 1)


def _around(key: str, field: FieldInfo, value: Any) -> Range | None:
    """The range of a setting around its default; None: it has none."""
    kind = field.annotation
    low, high, _, _ = _bounds(field)
    if kind is bool:
        return Range(key=key, kind="choice", values=[False, True])
    if get_origin(kind) is Literal:
        return Range(key=key, kind="choice", values=list(get_args(kind)))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if _is_share(field):
        return Range(key=key, kind="number", low=0.0, high=HALF if value <= HALF else ALL)
    if isinstance(value, float):
        if value <= 0:
            return None
        return Range(
            key=key, kind="number", low=value / TENFOLD, high=min(value * TENFOLD, high or float("inf")), log=True
        )
    if value > 1 and value & (value - 1) == 0 and (high is None or 2 * value <= high):
        fewer = 2 if value >= LARGE else 1
        return Range(key=key, kind="power", low=-fewer, high=1, unit=value)
    ends = max(low if low is not None else 1, value // 2), min(2 * value, high if high is not None else 2 * value)
    return Range(key=key, kind="integer", low=ends[0], high=ends[1]) if ends[0] < ends[1] else None


def _asked(word: str, fields: Mapping[str, tuple[FieldInfo, Any]], given: frozenset[str]) -> list[Range]:
    """The ranges of a word of --search: a name, with values of its own if need be."""
    name, equals, values = word.partition("=")
    name = name.strip().replace("-", "_")
    keys = [key for key in fields if name in (key, key.split(".")[-1])]
    if not keys:
        known = {key.split(".")[-1] for key in fields}
        raise UsageError(f"there is no setting '{name}' to search; {nearest(name, known)}")
    found = []
    for key in keys:
        if _full(key) in given:
            raise UsageError(f"{name} is given and searched; leave out one of them")
        made = _of_words(key, values.strip(), fields[key][1]) if equals else _around(key, *fields[key])
        if made is None:
            raise UsageError(f"{name} has no range to search by itself; give one, such as {name}=1..8 or {name}=1|2|4")
        found.append(made)
    return found


def _of_words(key: str, words: str, value: Any) -> Range:
    """A range as it is typed: 0.0001..0.1 or 1|2|4; over a factor of ten numbers are drawn on a logarithmic scale."""
    if ends := re.fullmatch(r"([-+.\deE]+)\.\.([-+.\deE]+)", words):
        try:
            low, high = float(ends[1]), float(ends[2])
        except ValueError:
            low = high = 0.0
        if low < high:
            whole = isinstance(value, int) and not isinstance(value, bool) and low.is_integer() and high.is_integer()
            wide = low > 0 and high >= TENFOLD * low
            return Range(key=key, kind="integer" if whole else "number", low=low, high=high, log=wide)
    elif "|" in words:
        return Range(key=key, kind="choice", values=[_typed(each.strip()) for each in words.split("|")])
    raise UsageError(f"invalid range '{words}' of {key.split('.')[-1]}: expected LOW..HIGH or A|B|C")


def _typed(word: str) -> str | bool | int | float:
    if word in ("true", "false"):
        return word == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def first_of(ranges: list[Range], config: RunConfig) -> dict[str, Any]:
    """What is drawn first: the defaults and the advice, where they are within the ranges."""
    fields = dict(_fields(config))
    drawn: dict[str, Any] = {}
    for each in ranges:
        value = fields[each.key][1]
        if each.kind == "choice":
            drawn |= {each.key: value} if value in each.values else {}
        elif each.kind == "power":
            drawn[each.key] = 0
        elif each.low <= value <= each.high:
            drawn[each.key] = value
    return drawn
