"""Trees of tensors as a flat table and a JSON structure, and back: optimiser states, carried model states.

    flatten((h, {"c": c}))  ->  {"0": h, "1/c": c},  {"tuple": [{"tensor": "0"}, {"dict": [["c", {"tensor": "1/c"}]]}]}

Leaves are tensors, numbers, text and None; inner nodes are tuples, named tuples, lists, dicts and `Fixed`. A saved tree
never names a class to import: a named tuple comes back only where a template shows its class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from unrolled.core.errors import DataError
from unrolled.core.state import Fixed


def flatten(tree: Any, prefix: str = "") -> tuple[dict[str, Tensor], Any]:
    """The tensors of a tree under readable names (each begins with `prefix`), and the structure as JSON."""
    tensors: dict[str, Tensor] = {}
    return tensors, _flatten(tree, prefix, tensors)


def _flatten(tree: Any, place: str, tensors: dict[str, Tensor]) -> Any:
    def part(key: Any, value: Any) -> Any:
        return _flatten(value, f"{place}/{key}" if place else str(key), tensors)

    if isinstance(tree, Tensor):
        name, n = place or "value", 1
        while name in tensors:  # the keys "a/b" and a -> b meet
            n += 1
            name = f"{place}#{n}"
        tensors[name] = tree
        return {"tensor": name}
    if tree is None or isinstance(tree, bool | int | str):
        return tree
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else {"float": repr(tree)}
    if isinstance(tree, Fixed):
        return {"fixed": _flatten(tree.tree, place, tensors)}
    if isinstance(tree, Mapping):
        for key in tree:
            if not isinstance(key, str | int):
                raise TypeError(f"{place or 'tree'}: the key {key!r} is neither a string nor an integer")
        return {"dict": [[key, part(key, value)] for key, value in tree.items()]}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return {"named": [[key, part(key, value)] for key, value in zip(tree._fields, tree, strict=True)]}
    if isinstance(tree, tuple | list):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {kind: [part(i, value) for i, value in enumerate(tree)]}
    raise TypeError(f"{place or 'tree'}: a {type(tree).__name__} cannot be saved; keep tensors, numbers and text")


def unflatten(tensors: Mapping[str, Tensor], structure: Any, template: Any = None) -> Any:
    """The tree that was flattened.

    A `template` of the same form (a state of the same model; None where it is not known) gives named tuples their
    class, and a saved tree of another form is refused, as is a named tuple whose class is not known.
    """
    return _unflatten(tensors, structure, template, "state")


def _unflatten(tensors: Mapping[str, Tensor], node: Any, template: Any, place: str) -> Any:
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise DataError(f"{place}: the structure of a saved tree is damaged")
        other = isinstance(template, Tensor | Fixed | tuple | list | Mapping)
        _expect(node is None or not other, place, repr(node), template)  # None is the initial state of any layer
        return node
    kind, content = next(iter(node.items())) if len(node) == 1 else ("", None)
    if kind == "tensor" and isinstance(content, str):
        if content not in tensors:
            raise DataError(f"{place}: the tensor '{content}' is missing from the saved tensors")
        _expect(template is None or isinstance(template, Tensor), place, "a tensor", template)
        return tensors[content]
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if kind == "fixed":
        _expect(template is None or isinstance(template, Fixed), place, "a fixed part", template)
        return Fixed(_unflatten(tensors, content, template.tree if template is not None else None, place))
    if kind in ("dict", "named") and isinstance(content, list) and all(_is_pair(pair) for pair in content):
        return _keyed(tensors, kind, content, template, place)
    if kind in ("tuple", "list") and isinstance(content, list):
        of = tuple if kind == "tuple" else list
        fits = template is None or (isinstance(template, of) and len(template) == len(content))
        _expect(fits, place, f"a {kind} of {len(content)}", template)
        inner = template if template is not None else [None] * len(content)
        parts = [_unflatten(tensors, value, inner[i], f"{place}/{i}") for i, value in enumerate(content)]
        return parts if kind == "list" else tuple(parts)
    raise DataError(f"{place}: the structure of a saved tree is damaged")


def _keyed(tensors: Mapping[str, Tensor], kind: str, content: list[Any], template: Any, place: str) -> Any:
    keys = [key for key, _ in content]
    if kind == "dict":
        fits = template is None or (isinstance(template, Mapping) and set(template) == set(keys))
        inner = [template[key] for key in keys] if template is not None and fits else [None] * len(keys)
    else:
        fits = getattr(template, "_fields", None) == tuple(keys)
        inner = list(template) if fits else [None] * len(keys)
    _expect(fits, place, f"the fields {', '.join(map(str, keys))}", template)
    parts = [_unflatten(tensors, value, inner[i], f"{place}/{key}") for i, (key, value) in enumerate(content)]
    if kind == "dict":
        return dict(zip(keys, parts, strict=True))
    return type(template)(*parts)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int)


def _expect(fits: bool, place: str, found: str, template: Any) -> None:
    if not fits:
        wanted = "nothing" if template is None else f"a {type(template).__name__}"
        raise DataError(
            f"{place}: the saved state has {found} where the model has {wanted}; it belongs to another model"
        )
