"""A program as the text of Python functions that need torch alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unrolled.exports.tools.program import Operation, Program, Ref, refs

INFIX = {"+", "-", "*", "//", "%"}


def function(name: str, program: Program, weights: Mapping[str, tuple[str, str]], indent: str = "") -> Iterator[str]:
    """The lines of a function of the inputs that are no weights; `weights` are expressions by name, with the kind."""
    own = [each for each in program.inputs if each not in weights]
    first = ["self"] if weights or indent else []
    yield f"{indent}def {name}({', '.join([*first, *own])}):"
    used = {each for operation in program.operations for each in refs(operation.args)} | {*program.outputs}
    for each, (kind, path) in weights.items():
        if each in used:
            yield f'{indent}    {each} = self.get_{kind}("{path}")'
    for operation in program.operations:
        yield f"{indent}    {operation.name} = {expression(operation)}"
    yield f"{indent}    return [{', '.join(program.outputs)}]"


def bodies(program: Program) -> Iterator[str]:
    """The functions of its scans."""
    for name, body in program.bodies.items():
        yield from bodies(body)
        yield from function(name, body, {})
        yield ""
        yield ""


def expression(operation: Operation) -> str:
    args, named = operation.given
    words = [written(each) for each in args]
    if operation.op == "item":
        return f"{words[0]}[{words[1]}]"
    if operation.op in INFIX:
        return f" {operation.op} ".join(words)
    if operation.op == "neg" and not isinstance(args[0], Ref):
        return f"-{words[0]}"
    if operation.op in ("max", "min") and len(args) == 2 and not named:
        return f"{operation.op}({', '.join(words)})"
    if operation.op == "call":
        return f"{words[0]}({', '.join(words[1:])})"
    if operation.op == "scan":
        return f"along({', '.join(words)})"
    words += [
        f"{name}={_option(name, value)}" for name, value in named.items() if value is not None and name != "pin_memory"
    ]
    return f"aten.{operation.op.split('.')[0]}({', '.join(words)})"


def written(value: Any) -> str:
    """A value as Python writes it."""
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    if isinstance(value, str):
        return f"torch.{value}" if value in DTYPES else repr(value)
    return repr(value)


def _option(name: str, value: Any) -> str:
    return f"torch.{value}" if name == "dtype" else written(value)


DTYPES = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"}
