"""From layers to operations, by the exact class of each layer: every file of `families/` says how for its own.

A rule is `rule(layer, x, into) -> value`, in the `RULES` of its file by class. A layer is lowered only where calling it
would be the forward of its class and nothing else: no hook, no parametrisation, no other forward put in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from torch import nn

from unrolled.core import discover
from unrolled.core.bare import bare
from unrolled.core.compose import Serial
from unrolled.engine.builder import Builder, CannotLower, Value

# what every class has of its own, and what makes an instance
OF_ANY_CLASS = {"__init__", "__module__", "__doc__", "__annotations__", "__firstlineno__", "__static_attributes__"}
Found = TypeVar("Found")
Kind = TypeVar("Kind", bound=nn.Module)
Rule = Callable[[Any, Value, Builder], Value]


@cache
def rules() -> Mapping[type[nn.Module], Rule]:
    """Every rule of every family."""
    room = discover.families
    return {kind: rule for name in room.names() for kind, rule in room.declaration(name).items()}


def lower(layer: nn.Module, x: Value, into: Builder) -> Value:
    """The output of a layer that reads x; its state is the next leaves."""
    rule = by_class(layer, rules())
    require_bare(layer)
    return rule(layer, x, into)


def by_class(layer: nn.Module, known: Mapping[type[nn.Module], Found]) -> Found:
    """What is known of the class of a layer."""
    kind = next((kind for kind in type(layer).__mro__ if kind in known), None)
    if kind is None or not _is_all(type(layer), kind):
        raise CannotLower(f"{type(layer).__name__} has no native form")
    return known[kind]


def require_bare(layer: nn.Module) -> None:
    if not bare(layer):
        raise CannotLower(f"{type(layer).__name__} has hooks or computed weights")


def exactly(layer: nn.Module, kind: type[Kind]) -> Kind:
    """A layer of this class, of which a call is nothing else: a part whose equation another rule writes out."""
    if type(layer) is not kind:
        raise CannotLower(f"a {type(layer).__name__} in the place of a {kind.__name__}")
    require_bare(layer)
    return layer


def require_quiet(dropout: nn.Module) -> None:
    """Dropout that does nothing."""
    exactly(dropout, nn.Dropout)
    if dropout.training and dropout.p:
        raise CannotLower("dropout in training")


def _is_all(kind: type[nn.Module], known: type[nn.Module]) -> bool:
    """Whether a class does what a known one does: all of its own is new, or it is layers one after the other under
    another name."""
    if known is Serial:
        return kind.forward is Serial.forward and kind.__call__ is Serial.__call__
    between = kind.__mro__[: kind.__mro__.index(known)]
    return not any(hasattr(known, name) for each in between for name in vars(each).keys() - OF_ANY_CLASS)
