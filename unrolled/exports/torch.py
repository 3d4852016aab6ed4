"""torch: a Python file with one plain module, and its weights beside it, which need torch and safetensors alone.

    model.py            class Model(nn.Module): step, condition or read, and the loop along a sequence
    model.safetensors   its weights, under the names that they have in the run

The functions are the operations that the model's own code traces to, one on a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from unrolled.core.config import Config
from unrolled.core.export import ExportSpec, Refused, Written
from unrolled.exports.tools.code import bodies, function
from unrolled.exports.tools.examples import examples_of
from unrolled.exports.tools.facts import facts_of
from unrolled.exports.tools.files import write_together
from unrolled.exports.tools.parity import CHECKED, Arrays, by_calls, largest_difference
from unrolled.exports.tools.program import program_of
from unrolled.exports.tools.traced import Carried, carried


class Request(Config):
    """Nothing to choose."""


def why_not(run: Any) -> str | None:
    try:
        _text(carried(run.model, examples_of(run)), {}, "")
    except Refused as refused:
        return str(refused)
    return None


def write(run: Any, out: Path, _: Request) -> Written:
    """The module and its weights."""
    examples = examples_of(run)
    found = carried(run.model, examples)
    weights = out.with_suffix(".safetensors")
    text = _text(found, facts_of(run, found), weights.name)
    tensors = {name: value.contiguous().clone() for name, value in weights_of(found).items()}
    difference = largest_difference(run.model, examples, by_calls(found, _Module(text, tensors, found)))
    return Written(write_together({weights: save(tensors), out: text.encode()}), difference, CHECKED)


def weights_of(found: Carried) -> dict[str, Tensor]:
    """All weights by their names in the model."""
    return {name: value for graph in found.graphs.values() for name, value in graph.weights.values()}


# ---- the text

HEAD = '''"""A sequence model as one plain module, written by unrolled. It needs torch and safetensors alone.

    model = Model.load()                     # reads the weights beside this file
{usage}
A state is a dict of tensors with one row for each sequence. FACTS says what inputs and outputs mean.
"""

import json
from pathlib import Path

import torch
from torch import nn

aten = torch.ops.aten
FACTS = json.loads({facts})
WEIGHTS = Path(__file__).with_name({weights}) if "__file__" in globals() else None


def along(tick, carried, inputs, constants):
    """Run a tick along the first axis of some inputs; what is carried at the end, and all outputs."""
    outputs = []
    for elements in zip(*(each.unbind(0) for each in inputs)):
        found = tick(*carried, *elements, *constants)
        carried, y = found[: len(carried)], found[len(carried) :]
        outputs.append(y)
    return [*carried, *(torch.stack(each) for each in zip(*outputs))]


'''

USAGE = {
    "causal": """    y, state = model(x)                      # x [B, T]: tokens, or [B, T, D]: numbers
    y, state = model(more, state)            # continues; model.step takes a single tick [B]
""",
    "conditional": """    state = model.condition(source, mask)    # mask True = real
    y, state = model(x, state)               # x [B, T]; model.step takes a single tick [B]
""",
    "encoder": """    y = model(x, mask)                       # x [B, S] or [B, S, D], mask [B, S] True = real
""",
}

CLASS = '''class Model(nn.Module):
    """{kind}: see the top of this file."""

    def __init__(self):
        super().__init__()
        for name, dtype, shape, trained in PARTS:
            *path, last = name.split(".")
            part = self
            for each in path:
                if each not in part._modules:
                    part.add_module(each, nn.Module())
                part = part._modules[each]
            value = torch.zeros(shape, dtype=getattr(torch, dtype))
            if trained:
                part.register_parameter(last, nn.Parameter(value))
            else:
                part.register_buffer(last, value)

    @classmethod
    def load(cls, path=WEIGHTS):
        """The model with its weights."""
        from safetensors.torch import load_file

        model = cls().eval()
        model.load_state_dict(load_file(path))
        return model
'''

STATEFUL = '''
    def initial(self, rows, device=None):
        """What is known of the state before the first tick."""
        state = {}
        for name, first in FACTS["initial"].items():
            state[name] = torch.zeros([rows, *first["shape"]], dtype=getattr(torch, first["dtype"]), device=device)
            state[name][:] = torch.tensor(first["values"], dtype=state[name].dtype)
        return state

    def step(self, x, state):
        """One tick: x [B] or [B, D] -> y [B, D'] and the state after it."""
        y, *after = self._step(x, *(state[name] for name in STATE))
        return y, {**state, **dict(zip(MOVING, after))}

    def forward(self, x, state=None):
        """Tick by tick: x [B, T] or [B, T, D] -> y [B, T, D'] and the state after the last."""
        state = self.initial(len(x), x.device) if state is None else state
        outputs = []
        for x_t in x.unbind(1):
            y, state = self.step(x_t, state)
            outputs.append(y)
        return torch.stack(outputs, 1), state
'''

CONDITION = '''
    def condition(self, source{mask}):
        """The state that a source starts."""
        return {{**self.initial(len(source), source.device), **dict(zip(GIVEN, self._condition(source{mask})))}}
'''

READ = '''
    def forward(self, x, mask):
        """y [B, D'], or [B, S', D'] and which of its positions are real where these are not those of x."""
        found = self._read(x, mask)
        return found[0] if len(found) == 1 else tuple(found)
'''


def _text(found: Carried, facts: Mapping[str, Any], weights: str) -> str:
    literal = repr(json.dumps(facts, ensure_ascii=True))
    usage = USAGE[found.kind]
    lines = [HEAD.replace("{usage}", usage).replace("{facts}", literal).replace("{weights}", repr(weights))]
    lines += [f"{name} = {value!r}\n" for name, value in _names(found)]
    programs = {name: program_of(graph) for name, graph in found.graphs.items()}
    lines += ["PARTS = [  # name, type, shape, whether it is trained", *_parts(found), "]", "", ""]
    lines += [line for program in programs.values() for line in bodies(program)]
    lines.append(CLASS.replace("{kind}", found.kind.capitalize()))
    for name, program in programs.items():
        graph = found.graphs[name]
        known = {local: (_kind(value), path) for local, (path, value) in graph.weights.items()}
        lines += ["", *function(f"_{name}", program, known, "    ")]
    if found.kind == "encoder":
        return "\n".join(lines) + READ
    mask = ", mask" if found.kind == "conditional" and len(found.graphs["condition"].inputs) > 1 else ""
    return "\n".join(lines) + STATEFUL + (CONDITION.format(mask=mask) if found.kind == "conditional" else "")


def _names(found: Carried) -> Iterator[tuple[str, list[str]]]:
    """Names of the tensors of the state: those that a tick takes, those that it gives back, those of a source."""
    if "step" in found.graphs:
        step = found.graphs["step"]
        yield "STATE", [port.name for port in step.inputs[1:]]
        yield "MOVING", [port.name.removesuffix(".next") for port in step.outputs[1:]]
    if "condition" in found.graphs:
        yield "GIVEN", [port.name for port in found.graphs["condition"].outputs]


def _parts(found: Carried) -> Iterator[str]:
    for name, value in weights_of(found).items():
        dtype = str(value.dtype).removeprefix("torch.")
        yield f"    ({name!r}, {dtype!r}, {[*value.shape]}, {_kind(value) == 'parameter'}),"


def _kind(value: Tensor) -> str:
    return "parameter" if value.is_floating_point() else "buffer"


class _Module:
    """The text, run."""

    def __init__(self, text: str, tensors: Mapping[str, Tensor], found: Carried) -> None:
        module = ModuleType("exported")
        exec(compile(text, "exported.py", "exec"), vars(module))
        self.model: nn.Module = vars(module)["Model"]()
        self.model.load_state_dict(dict(tensors))
        self.found = found

    def __call__(self, graph: str, inputs: Arrays) -> Arrays:
        ports = self.found.graphs[graph]
        given = {name: torch.from_numpy(value.copy()) for name, value in inputs.items()}
        first, rest = (given[port.name] for port in ports.inputs[:1]), {p.name: given[p.name] for p in ports.inputs[1:]}
        named: Any = self.model
        with torch.no_grad():
            if graph == "step":
                y, after = named.step(*first, rest)
                moved = {
                    f"{name}.next": after[name] for name in (p.name.removesuffix(".next") for p in ports.outputs[1:])
                }
                found = {ports.outputs[0].name: y, **moved}
            elif graph == "condition":
                found = named.condition(*first, *rest.values())
            else:
                y = named(*first, *rest.values())
                found = dict(zip((port.name for port in ports.outputs), y if isinstance(y, tuple) else (y,)))
        return {name: value.numpy() for name, value in found.items()}


EXPORT = ExportSpec(
    summary="a Python file with a plain torch.nn.Module, and its weights in safetensors",
    suffix=".py",
    request=Request,
    write=write,
    why_not=why_not,
    aliases=("pytorch", "module"),
)
