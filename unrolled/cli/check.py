"""`unrolled check`: put a layer of your own through the laws."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, print_json
from unrolled.core.errors import UnrolledError, UsageError, nearest


class CheckFailed(UnrolledError):
    """A law does not hold (exit 1)."""

    exit_code = 1


def command(
    what: Annotated[
        str, typer.Argument(help="package.module:Layer, a model file such as my_model.py, or a model name.")
    ],
    d_in: Annotated[int | None, typer.Option(min=1, help="Input width of a layer that takes vectors.")] = None,
    vocabulary: Annotated[
        int | None, typer.Option(min=1, help="Vocabulary size, for a layer that takes token ids.")
    ] = None,
    json: Json = False,
) -> None:
    """Check a layer, cell, encoder or model file against the laws of the contract.

    Examples:

        unrolled check my_package.layers:MyLayer --d-in 8

        unrolled check my_model.py
    """
    target = _find(what)
    from unrolled import testing

    try:
        passed = testing.check_model(target) if isinstance(target, str) else testing.check_object(
            target, d_in=d_in, vocabulary=vocabulary
        )  # fmt: skip
    except testing.LawBroken as broken:
        if json:
            print_json({"passed": False, "law": broken.law, "position": str(broken.position), "why": str(broken)})
        raise CheckFailed(f"{what}: {broken}") from None
    if json:
        print_json({"passed": True, "laws": passed})
    else:
        print(f"{what}: holds ({', '.join(passed)})")


def _find(what: str) -> Any:
    """A model's name, or the object that `module:name` or `file.py[:name]` means."""
    from unrolled.core import discover

    place, _, name = what.partition(":")
    if place.endswith(".py") and not Path(place).is_file():
        raise UsageError(f"{place}: no such Python file")
    if place.endswith(".py") and not name:
        return discover.models.add_file(place)
    if not name:
        discover.models.require(what)
        return what
    if place.endswith(".py"):
        sys.path.insert(0, str(Path(place).resolve().parent))
        place = Path(place).stem
    else:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(place)
    except ImportError as error:
        raise UsageError(f"{place}: import failed ({error})") from None
    if not hasattr(module, name):
        known = [key for key in vars(module) if not key.startswith("_")]
        raise UsageError(f"{place} has no '{name}'; {nearest(name, known)}")
    return getattr(module, name)
