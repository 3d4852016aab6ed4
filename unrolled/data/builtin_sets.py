"""Built-in data by its name and settings, `builtin:adding,length=50`; each set is one file of builtin/."""

from __future__ import annotations

from typing import Any, NamedTuple

from unrolled.core import discover
from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec
from unrolled.core.errors import Misused, UsageError, nearest
from unrolled.core.opening import shortened

BUILTIN = "builtin:"
HOLDS = {
    "text": "text", "rows": "rows of texts", "labelled": "series with targets, no text", "pairs": "pairs of texts",
    "bags": "bags of texts with classes", "pictures": "pictures with captions",
    "drawings": "pen strokes with their texts", "sounds": "clips of sound",
    "series": "series along time, one row for each time",
}  # fmt: skip


class Asked(NamedTuple):
    """A set and its settings."""

    source: str
    spec: BuiltinSpec
    settings: Config

    def read(self) -> Any:
        """What the set holds, made or loaded now."""
        return self.spec.read(self.settings)


def names() -> list[str]:
    return discover.builtins.names()


def known(name: str) -> BuiltinSpec | None:
    """The set of that name; None: there is none."""
    spec: BuiltinSpec | None = discover.builtins.declaration(name) if name in names() else None
    return spec


def builtin_holds(name: str, what: str) -> bool:
    """Whether the set of that name is there and holds that."""
    spec = known(name)
    return spec is not None and spec.holds == what


def about(name: str) -> dict[str, Any]:
    """Description, licence, size, what it holds and columns of one set; loads nothing."""
    spec = _find(name)
    told = {"description": spec.summary, "licence": spec.licence, "size": spec.size, "examples": spec.holds}
    return {"name": f"{BUILTIN}{name}", **told, "columns": list(spec.columns.values())}


def asked(source: str, *holds: str) -> Asked:
    """`builtin:NAME,setting=value,..` with its settings checked; a set that holds something else is refused."""
    name, *words = source.removeprefix(BUILTIN).split(",")
    spec = _find(name)
    if holds and spec.holds not in holds:
        raise UsageError(f"{BUILTIN}{name}: this built-in data is {HOLDS[spec.holds]}; use it with {spec.use}")
    if words and not spec.settings.model_fields:
        raise Misused(f"{shortened(source)}: {name} has no settings")
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in values:
            raise Misused(f"{shortened(source)}: found '{shortened(word)}', expected name=value, each name once")
        values[key] = value
    try:
        return Asked(source, spec, spec.settings.parse(values))
    except UsageError as error:
        raise Misused(f"{BUILTIN}{name}: {error}") from None


def is_usual(source: str) -> bool:
    """Whether `builtin:NAME,setting=value` is no more work to make than `builtin:NAME`, whose sizes we chose."""
    try:
        found = asked(source)
    except UsageError:
        return False
    return all(have <= most for have, most in zip(_work(found.settings), _work(found.spec.settings()), strict=True))


def _work(settings: Config) -> tuple[int, int]:
    """Examples, and steps of all of them."""
    told = settings.model_dump()
    examples = told.get("examples", 1)
    return examples, examples * told.get("length", 1)


def _find(name: str) -> BuiltinSpec:
    spec = known(name)
    if spec is None:
        raise Misused(f"there is no built-in data '{shortened(name)}'; {nearest(name, names())}")
    return spec
