"""The fixed list of operators: what is changed in a function, one small thing at a time.

Left alone are docstrings, annotations, default values, error sentences (`raise`, f-strings), `assert`,
`zip(strict=..)`, and the axis of a tensor where it is counted from the end, because 1 may be another name of -1.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "amin": "amax", "amax": "amin", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any", "zeros": "ones", "ones": "zeros", "zeros_like": "ones_like", "ones_like": "zeros_like",
    "maximum": "minimum", "minimum": "maximum",
}  # fmt: skip

AXES = {
    "sum", "mean", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "any", "all", "softmax", "log_softmax",
    "logsumexp", "cumsum", "cummax", "sort", "argsort", "topk", "chunk", "split", "size", "squeeze", "unsqueeze",
    "flatten", "unflatten", "gather", "scatter", "scatter_", "index_select", "norm", "movedim", "repeat_interleave",
    "concatenate", "take_along_axis", "cat", "stack", "diff", "unbind", "var", "std",
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The name of each operator that fits a node, and the node after it."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARISONS:
        new.ops[0] = COMPARISONS[type(new.ops[0])]()
        yield "comparison", new
    elif isinstance(new, ast.BinOp | ast.AugAssign) and type(new.op) in ARITHMETIC:
        new.op = ARITHMETIC[type(new.op)]()
        yield "arithmetic", new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield "and, or", new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub | ast.Invert):
        yield "sign or not dropped", new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        yield "constant", ast.copy_location(ast.Constant(not new.value), new)
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        value = new.value + 1 if isinstance(new.value, int) else (new.value * 1.5 or 1.0)
        yield "constant", ast.copy_location(ast.Constant(value), new)
    elif isinstance(new, ast.Call):
        called = new.func
        if isinstance(called, ast.Name) and called.id in NAMES:
            called.id = NAMES[called.id]
            yield "other function", new
        elif isinstance(called, ast.Attribute) and called.attr in NAMES:
            called.attr = NAMES[called.attr]
            yield "other function", new
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        new = copy.deepcopy(node)
        new.test = ast.copy_location(ast.UnaryOp(ast.Not(), new.test), new.test)
        yield "condition negated", new
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "statement deleted", ast.copy_location(ast.Pass(), node)


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    file: str  # below the package
    function: str  # outermost, by its qualified name
    line: int
    operator: str
    before: str
    after: str
    number: int  # among equal changes of the function

    @property
    def key(self) -> str:
        """The same as long as the function keeps the changed place, wherever it moves."""
        return f"{self.file} {self.function}: {self.before} -> {self.after} ({self.number})"


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The outermost functions and methods of a file, by their qualified names."""

    def inside(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, node
            elif isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{prefix}{node.name}.")

    yield from inside(tree.body, "")


Place = tuple[ast.AST, str, int | None]  # a parent, its field, and the index where that is a list


def places(function: ast.AST) -> Iterator[Place]:
    """Where the nodes of a function's body stand that may be changed, in the order of the text."""

    def walk(parent: ast.AST) -> Iterator[Place]:
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list", "args", "type_comment") and _is_signature(parent):
                continue
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if _is_axis(parent, child) or (isinstance(parent, ast.keyword) and parent.arg == "strict"):
                    continue
                if not isinstance(child, ast.AST) or isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
                    continue
                if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                    continue  # a docstring
                yield parent, name, index if isinstance(value, list) else None
                yield from walk(child)

    yield from walk(function)


def _is_signature(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign | ast.arg | ast.Lambda)


def _is_axis(parent: ast.AST, child: object) -> bool:
    """-1 as an axis: `dim=-1`, `y.sum(-1)`, `y.shape[-1]`."""
    if not (isinstance(child, ast.UnaryOp) and isinstance(child.op, ast.USub)):
        return False
    if isinstance(parent, ast.keyword):
        return parent.arg in ("dim", "axis")
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.value, ast.Attribute) and parent.value.attr == "shape"
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in AXES


def mutants_of(path: Path, name: str) -> Iterator[tuple[Mutant, ast.Module]]:
    """Every mutant of a file, with the tree of the whole file after it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function, node in functions(tree):
        seen: dict[tuple[str, str], int] = {}
        for parent, field, index in places(node):
            held = getattr(parent, field)
            old = held if index is None else held[index]
            for operator, new in changes(old):
                before, after = first_line(old), first_line(new)
                number = seen[before, after] = seen.get((before, after), -1) + 1
                mutant = Mutant(name, function, old.lineno, operator, before, after, number)
                _put(parent, field, index, new)
                yield mutant, tree  # changed only until the next one is asked for
                _put(parent, field, index, old)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]
