"""A model as graphs of tensor operations, which its own code gives when it is traced: the contract with named states.

    causal        step:       x_t, state.* -> y_t, state.*.next
    conditional   condition:  source, mask -> state.*          and the same step
    encoder       read:       x, mask -> y

A state goes in and out leaf by leaf, `state.<path>`; what no tick changes (`Fixed`) has no `.next`. Recurrences are
traced through the equation of one tick: along a whole sequence it stands in the graph once, as a scan. Numbers of rows,
of positions and of what a state has gathered stay open.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan as along
from torch.export.graph_signature import InputKind

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.export import Refused
from unrolled.core.state import State, clone, leaves
from unrolled.exports.tools.examples import Examples
from unrolled.exports.tools.graphs import Graph, Port, graph_of, results, traced
from unrolled.layers.recurrent.cells import Cell
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.layers.recurrent.scan import Scan, loop
from unrolled.runs.storage.state_json import flatten, unflatten

ROWS, POSITIONS, GATHERED = 3, 7, 5  # of what is traced; all of them stay open
LONGEST = 1 << 14  # ticks after which a state that does not grow for ever has settled


class Carried(NamedTuple):
    """All that a model is, without its code."""

    kind: str  # causal, conditional or encoder
    graphs: dict[str, Graph]
    initial: dict[str, Tensor]  # by name, what a state is before the first tick: one row; 0 positions where it gathers


class Form:
    """How a state is made of its leaves."""

    def __init__(self, state: State) -> None:
        tensors, self.tree = flatten(state)
        self.template = state
        self.paths = list(tensors)
        fixed = {*_within_fixed(self.tree)}
        self.moves = [path not in fixed for path in self.paths]
        self.names = [f"state.{path.replace('/', '.')}" if path != "value" else "state" for path in self.paths]

    def leaves(self, state: State) -> list[Tensor]:
        tensors, _ = flatten(state)
        if list(tensors) != self.paths:
            raise Refused("its state has another structure after a tick than before")
        return list(tensors.values())

    def join(self, leaves: Sequence[Tensor]) -> State:
        return unflatten(dict(zip(self.paths, leaves, strict=True)), self.tree, self.template)


def _within_fixed(tree: Any, inside: bool = False) -> Iterator[str]:
    """The paths of leaves that no tick changes."""
    if isinstance(tree, list):
        for each in tree:
            yield from _within_fixed(each, inside)
    elif isinstance(tree, dict):
        for kind, content in tree.items():
            if kind == "tensor" and inside:
                yield content
            elif kind in ("named", "dict"):
                yield from _within_fixed([value for _, value in content], inside)
            elif kind in ("tuple", "list", "fixed"):
                yield from _within_fixed(content, inside or kind == "fixed")


# ---- what is traced


class Step(nn.Module):
    """One tick."""

    def __init__(self, decoder: Causal, form: Form) -> None:
        super().__init__()
        self.decoder, self.form = decoder, form

    def forward(self, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        y, after = self.decoder(x.unsqueeze(1), self.form.join(state))
        moved = [leaf for leaf, moves in zip(self.form.leaves(after), self.form.moves, strict=True) if moves]
        return [y.squeeze(1), *moved]


class Condition(nn.Module):
    """What a source makes of the state."""

    def __init__(self, model: Conditional) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        return [*flatten(self.model.condition(source, mask))[0].values()]


class Read(nn.Module):
    """What an encoder puts out; and which of its positions are real, where these are not those of the input."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        y, after = self.model(x, mask)
        if y.shape[1] == 1:
            return [y.squeeze(1)]
        return [y] if after is mask else [y, after]


def scanned(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """A scan (see layers/recurrent/scan.py) that is one operation of a graph, whatever the number of ticks."""
    if x.shape[1] == 1:
        return loop(cell, x, h0)

    def tick(h: Tensor, x_t: Tensor) -> tuple[Tensor, Tensor]:
        h = cell(x_t, h)
        return h, cell.output(h).clone()

    h, y = along(tick, h0, x.transpose(0, 1).contiguous())  # [T, B, D']
    return y.transpose(0, 1), h


class Began:
    """A scan that also keeps what state each run of a cell started from, by the state that it ended in."""

    def __init__(self) -> None:
        self.starts: list[tuple[Tensor, Tensor]] = []

    def __call__(self, cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
        y, h = loop(cell, x, h0)
        self.starts.append((h, h0))
        return y, h

    def start_of(self, h: Tensor) -> Tensor | None:
        return next((before for after, before in self.starts if after is h), None)


# ---- tracing


def carried(model: nn.Module, examples: Examples) -> Carried:
    """The functions of a model as graphs; `Refused` where they are none."""
    plain = _scanning(model, scanned).cpu().eval().requires_grad_(False)
    known = {tensor.data_ptr(): name for name, tensor in [*plain.named_parameters(), *plain.named_buffers()][::-1]}
    if isinstance(plain, Encoder):
        return _named(Carried("encoder", {"read": _read(plain, examples)}, {}), known)
    if isinstance(plain, Conditional):
        first, open_axes, condition = _condition(plain, examples)
        step, initial = _step(plain.decoder, examples, first, open_axes)
        return _named(Carried("conditional", {"condition": condition, "step": step}, initial), known)
    if isinstance(plain, Causal):
        step, initial = _step(plain, examples, None, {})
        return _named(Carried("causal", {"step": step}, initial), known)
    raise Refused(f"it is a {type(model).__name__}, which is no function of a sequence")


Axes = dict[str, dict[int, str]]
"""The axes of leaves, by their names, whose size is open."""


def _step(decoder: Causal, examples: Examples, first: State, open_axes: Axes) -> tuple[Graph, dict[str, Tensor]]:
    form, initial = _states(decoder, examples.input(ROWS, 2), first, open_axes)
    x = examples.input(ROWS, 1)[:, 0]
    ports, before = [], []
    for name, leaf in zip(form.names, form.leaves(form.template), strict=True):
        axes = {0: "rows", **open_axes.get(name, {})}
        ports.append(_port(name, leaf, axes))
        sizes = [GATHERED if axes.get(axis) == "gathered" else size for axis, size in enumerate(leaf.shape)]
        before.append(leaf if sizes == [*leaf.shape] else leaf.new_zeros(sizes))
    inputs = [_port("token" if examples.of_tokens else "x", x, {0: "rows"}), *ports]
    program = traced(Step(decoder, form), (x, before), inputs)
    after = [port._replace(name=f"{port.name}.next") for port, moves in zip(ports, form.moves, strict=True) if moves]
    y = _port("logits" if examples.of_tokens else "y", results(program)[0], {0: "rows"})
    return graph_of(program, inputs, [y, *after]), initial


def _states(decoder: Causal, x: Tensor, first: State, open_axes: Axes) -> tuple[Form, dict[str, Tensor]]:
    """How the state is made of leaves, and what those are before the first tick that no source makes.

    A leaf that is longer after two ticks than after one gathers positions: its axis is added to those that are open.
    Where the state does not grow for ever, it has the size at which it settles from the start, filled up with zeros.
    """
    began = Began()
    watched = _scanning(decoder, began)
    with torch.no_grad():
        one, two = (watched(x[:, :n], clone(first))[1] for n in (1, 2))
    began_with = {path: began.start_of(leaf) for path, leaf in flatten(one)[0].items()}
    form, given = Form(one), {*flatten(first)[0]}
    if not decoder.state_grows and _shapes(one) != _shapes(two):
        one = two = _settled(decoder, x, first)
        form = Form(one)
    initial = {}
    for path, name, leaf, later in zip(form.paths, form.names, form.leaves(one), form.leaves(two), strict=True):
        longer = [axis for axis, (a, b) in enumerate(zip(leaf.shape, later.shape, strict=True)) if a != b]
        if len(longer) > 1:
            raise Refused(f"its state grows along several axes ({name})")
        if longer:
            open_axes.setdefault(name, {})[longer[0]] = "gathered"
        if path not in given:
            start = began_with[path]
            sizes = [0 if axis in longer else size for axis, size in enumerate(leaf.shape)]
            initial[name] = (leaf.new_zeros(sizes) if start is None else start)[:1].clone()
    return form, initial


def _settled(decoder: Causal, x: Tensor, first: State) -> State:
    """The state when it has stopped growing."""
    before, n = None, 2
    with torch.no_grad():
        while n <= LONGEST and (decoder.max_length is None or n <= decoder.max_length):
            _, after = decoder(x[:, :1].repeat(1, n, *[1] * (x.dim() - 2)), clone(first))
            if _shapes(after) == before:
                return after
            before, n = _shapes(after), 2 * n
    raise Refused(f"its state still grows after {n // 2} ticks")


def _shapes(state: State) -> list[torch.Size]:
    return [leaf.shape for leaf in leaves(state)]


def _condition(model: Conditional, examples: Examples) -> tuple[State, Axes, Graph]:
    given, longer = examples.source(ROWS, POSITIONS), examples.source(ROWS, POSITIONS + 2)
    with torch.no_grad():
        first, other = model.condition(*given), model.condition(*longer)
    form = Form(first)
    open_axes = {
        name: {axis: "source" for axis, (a, b) in enumerate(zip(leaf.shape, later.shape, strict=True)) if a != b}
        for name, leaf, later in zip(form.names, form.leaves(first), form.leaves(other), strict=True)
    }
    source, mask = given
    axes = {0: "rows"} | {axis: "source" for axis in (1,) if source.shape[1:2] != longer[0].shape[1:2]}
    inputs = [_port("class" if source.dim() == 1 else "source", source, axes)]
    if mask is not None:
        inputs.append(_port("mask", mask, axes))
    program = traced(Condition(model), (source,) if mask is None else (source, mask), inputs)
    made = zip(form.names, form.leaves(first), strict=True)
    outputs = [_port(name, leaf, {0: "rows", **open_axes[name]}) for name, leaf in made]
    return first, open_axes, graph_of(program, inputs, outputs)


def _read(model: Encoder, examples: Examples) -> Graph:
    x, mask = examples.input(ROWS, POSITIONS), examples.mask(ROWS, POSITIONS)
    axes = {0: "rows", 1: "positions"}
    inputs = [_port("x", x, axes), _port("mask", mask, axes)]
    program = traced(Read(model), (x, mask), inputs)
    found = results(program)
    names = zip(("y", "y.mask"), found)
    each = isinstance(found[0].shape[1], torch.SymInt) if found[0].dim() > 2 else False
    return graph_of(program, inputs, [_port(name, y, axes if each else {0: "rows"}) for name, y in names])


def _named(found: Carried, known: Mapping[int, str]) -> Carried:
    """With the weights of each graph under their names in the model, at whatever place of it they are used."""
    graphs = {}
    for name, graph in found.graphs.items():
        weights = {}
        held = {**graph.program.state_dict, **graph.program.constants}
        for spec in graph.program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT:
                tensor = held[str(spec.target)]
                own = f"constants.{name}.{spec.arg.name}"
                weights[spec.arg.name] = known.get(tensor.data_ptr(), own), tensor.detach()
        graphs[name] = graph._replace(weights=weights)
    return found._replace(graphs=graphs)


def _scanning(model: Any, scan: Scan) -> Any:
    """The same model, in which every recurrence is run by this scan."""
    plain = copy.deepcopy(model)
    for layer in plain.modules():
        if isinstance(layer, Recurrent):
            layer.scan = scan
    return plain


def _port(name: str, value: Tensor, axes: Mapping[int, str]) -> Port:
    shape = tuple(axes[axis] if axis in axes else int(size) for axis, size in enumerate(value.shape))
    return Port(name, str(value.dtype).removeprefix("torch."), shape)
