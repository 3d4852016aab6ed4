"""A graph as a list of named operations, which other languages than torch's can express: values, no code."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload

from unrolled.core.export import Refused
from unrolled.exports.tools.graphs import Graph


class Ref(NamedTuple):
    """The result of an operation before, an input, or a weight."""

    name: str


class Operation(NamedTuple):
    """name = op(args): `op` is the name of an ATen operation with its overload, "scan", or one of integers below."""

    name: str
    op: str
    args: tuple[Any, ...]  # numbers, texts, None, Refs, and lists of them, in the order of the operation's schema
    given: tuple[tuple[Any, ...], Mapping[str, Any]]  # the same as it was called


class Program(NamedTuple):
    """A function: its outputs are made of inputs and weights by operations, in their order."""

    inputs: tuple[str, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[str, ...]
    bodies: dict[str, Program]  # of scans: functions of what is carried, the elements, and constants


SIZES = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.neg: "neg",
    operator.mod: "%", torch.sym_max: "max", torch.sym_min: "min", operator.getitem: "item",
}  # fmt: skip
"""Operations of integers, and of what holds several results, by their names in a program."""

WRAPPED = {"wrap_with_autocast": 4, "wrap_with_set_grad_enabled": 1}
"""Operations that call a body under a setting which changes no value here, and the place of the body among their
arguments."""

NOTHING = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}  # operations that only check


def program_of(graph: Graph) -> Program:
    """The function of a graph; its weights are inputs too, in front."""
    module = graph.program.graph_module
    inner = {name: each.graph for name, each in module.named_children() if isinstance(each, fx.GraphModule)}
    return _program(module.graph, inner)


def _program(graph: fx.Graph, inner: Mapping[str, fx.Graph]) -> Program:
    inputs, operations, outputs = [], [], ()
    bodies: dict[str, Program] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "get_attr":
            if str(node.target) not in inner:
                raise Refused(f"its graph holds {node.target}, which is no tensor")
            bodies[node.name] = _program(inner[str(node.target)], inner)
        elif node.op == "output":
            outputs = tuple(each.name for each in node.args[0])
        elif not _only_checks(node):
            operations.append(_operation(node))
    return Program(tuple(inputs), tuple(_needed(operations, outputs)), outputs, bodies)


def _only_checks(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target.overloadpacket.__name__ in NOTHING


def _operation(node: fx.Node) -> Operation:
    target = node.target
    given = tuple(map(_value, node.args)), {name: _value(each) for name, each in node.kwargs.items()}
    if isinstance(target, OpOverload):
        return Operation(node.name, str(target).removeprefix("aten.").removesuffix(".default"), _in_order(node), given)
    if isinstance(target, HigherOrderOperator) and target.name() == "scan":
        return Operation(node.name, "scan", given[0], given)
    if isinstance(target, HigherOrderOperator) and target.name() in WRAPPED:
        body, *rest = given[0][WRAPPED[target.name()] :]
        return Operation(node.name, "call", (body, rest), ((body, *rest), {}))
    if target in SIZES:
        return Operation(node.name, SIZES[target], given[0], given)
    raise Refused(f"its graph has the operation {target}")


def _in_order(node: fx.Node) -> tuple[Any, ...]:
    """All arguments in the order of the schema, those that were not given by their defaults."""
    assert isinstance(node.target, OpOverload)
    found = []
    for at, argument in enumerate(node.target._schema.arguments):
        if at < len(node.args) and not argument.kwarg_only:
            found.append(_value(node.args[at]))
        else:
            found.append(_value(node.kwargs.get(argument.name, argument.default_value)))
    return tuple(found)


def _value(value: Any) -> Any:
    if isinstance(value, fx.Node):
        return Ref(value.name)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.device | torch.memory_format | torch.layout):
        return None
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    return value


def refs(value: Any) -> Iterator[str]:
    """The names that an argument refers to."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, list | tuple):
        for each in value:
            yield from refs(each)


def _needed(operations: list[Operation], outputs: tuple[str, ...]) -> list[Operation]:
    """Those that outputs depend on."""
    wanted, kept = {*outputs}, []
    for each in reversed(operations):
        if each.name in wanted:
            wanted |= {*refs(each.args)}
            kept.append(each)
    return kept[::-1]
