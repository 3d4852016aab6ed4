"""The graph of one function of a model, by `torch.export`, and why there is none."""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, is_symbolic

from unrolled.core.errors import UnrolledError
from unrolled.core.export import Refused


class Port(NamedTuple):
    """A tensor that goes into a graph or comes out."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]  # a word where the size is open: rows, positions, gathered


class Graph(NamedTuple):
    """A function of a model."""

    program: ExportedProgram
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    weights: dict[str, tuple[str, Tensor]] = {}  # by the names that they have in the graph: their names in the model


def traced(module: nn.Module, inputs: tuple[Any, ...], ports: Sequence[Port]) -> ExportedProgram:
    """The graph of a module; numbers that a port leaves open must be open in it."""
    opened = iter([{axis: Dim.AUTO for axis, size in enumerate(p.shape) if isinstance(size, str)} for p in ports])
    shapes = tuple([next(opened) for _ in each] if isinstance(each, list) else next(opened) for each in inputs)
    try:
        with quiet(), torch.enable_grad():
            program = torch.export.export(module.eval(), inputs, dynamic_shapes=shapes)
    except (UnrolledError, Refused):
        raise
    except LOOKS as error:
        raise Refused(
            f"{_layer(error)} decides by values while it computes, which a graph of fixed operations cannot; "
            "use the run itself, which `unrolled serve` offers over HTTP"
        ) from error
    except Exception as error:
        raise Refused(f"it cannot be traced ({reason(error)})") from error
    _require_open(
        ports, [node.meta["val"] for node in program.graph.nodes if node.name in {*program.graph_signature.user_inputs}]
    )
    return program


def graph_of(program: ExportedProgram, inputs: Sequence[Port], outputs: Sequence[Port]) -> Graph:
    """The function of a traced program."""
    _require_open(outputs, results(program))
    return Graph(program, tuple(inputs), tuple(outputs))


def _require_open(ports: Iterable[Port], values: Iterable[Tensor]) -> None:
    """Refuse a graph that is fixed to the numbers it was traced with."""
    for port, value in zip(ports, values, strict=True):
        for word, size in zip(port.shape, value.shape, strict=True):
            if isinstance(word, str) and not is_symbolic(size):
                raise Refused(f"its graph is fixed to {size} {word} ({port.name})")


LOOKS = (GuardOnDataDependentSymNode, DataDependentOutputException, DynamicOutputShapeException)


def _layer(error: BaseException) -> str:
    """The layer in which an error occurred, and the line."""
    found = "a layer"
    for frame, line in traceback.walk_tb(error.__traceback__):
        owner, code = frame.f_locals.get("self"), frame.f_code
        if isinstance(owner, nn.Module) and not type(owner).__module__.startswith(("torch.", "unrolled.exports.")):
            found = f"its layer {type(owner).__name__} ({Path(code.co_filename).name}, line {line})"
    return found


def reason(error: BaseException) -> str:
    """What an error of a library comes from, in a line."""
    while error.__cause__ is not None:
        error = error.__cause__
    line = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__


def results(program: ExportedProgram) -> list[Tensor]:
    """The outputs, as far as a graph knows them: their types and shapes."""
    (node,) = (node for node in program.graph.nodes if node.op == "output")
    return [each.meta["val"] for each in node.args[0]]


@contextmanager
def quiet() -> Iterator[None]:
    """A block in which the libraries say nothing to users."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
