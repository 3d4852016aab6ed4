"""page: one HTML file with the weights inside, which writes, labels or forecasts offline in any browser.

The model's graphs are in the page as lists of operations, which some hundred lines of JavaScript carry out. No request
is made: a policy in the page forbids them. Where a browser or node is at hand the page is compared with the run.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from unrolled.core.config import Config
from unrolled.core.export import ExportSpec, Refused, Written
from unrolled.exports.tools.examples import examples_of
from unrolled.exports.tools.facts import codec_of, facts_of
from unrolled.exports.tools.files import write_together
from unrolled.exports.tools.known import is_known
from unrolled.exports.tools.modes import Mode, mode_of
from unrolled.exports.tools.parity import CHECKED, Case, largest_difference
from unrolled.exports.tools.program import Program, Ref, program_of
from unrolled.exports.tools.scripts import engine_here, ran
from unrolled.exports.tools.traced import Carried, carried

FOLDER = resources.files("unrolled.exports.tools")
SCRIPTS = ("engine.js", "codecs.js", "page.js")
STORED = ("float32", "float64", "int64", "bool")


class Request(Config):
    precision: Literal["float32", "float16"] = Field("float32")
    """How weights are stored: float16 halves the page, and rounds them."""


def why_not(run: Any) -> str | None:
    try:
        found = carried(run.model, examples_of(run))
        mode_of(run, found.kind, codec_of(run))
        _require_known(found)
    except Refused as refused:
        return str(refused)
    return None


def write(run: Any, out: Path, request: Request) -> Written:
    """The page."""
    examples = examples_of(run)
    found = carried(run.model, examples)
    mode = mode_of(run, found.kind, codec_of(run))
    _require_known(found)
    text = _page(run, found, mode, request)
    difference, checked = None, "not compared with the run, because there is neither a browser nor node on this machine"
    if (engine := engine_here()) is not None:
        checked = f"{CHECKED}, in {engine}"
        model = run.model if request.precision == "float32" else rounded(run.model)
        difference = largest_difference(model, examples, _outputs(engine, text))
    return Written(write_together({out: text.encode()}), difference, checked)


def rounded(model: Any) -> Any:
    """The same model with the weights that a page of half precision has."""
    copied = copy.deepcopy(model)
    with torch.no_grad():
        for tensor in [*copied.parameters(), *copied.buffers()]:
            if tensor.dtype is torch.float32:
                tensor.copy_(tensor.half().float())
    return copied


# ---- the text


def _page(run: Any, found: Carried, mode: Mode, request: Request) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    listed, blob = _weights(found, request.precision)
    facts = {**facts_of(run, found), "mode": mode.name, **mode.facts}
    graphs = {
        name: {
            "program": as_json(program_of(graph)),
            "weights": {local: path for local, (path, _) in graph.weights.items()},
            "inputs": [port._asdict() for port in graph.inputs],
            "outputs": [port._asdict() for port in graph.outputs],
        } for name, graph in found.graphs.items()
    }  # fmt: skip
    model = json.dumps({"facts": facts, "graphs": graphs, "weights": listed}, ensure_ascii=False).replace(
        "<", "\\u003c"
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_own("page.html.jinja")).render(
        title=run.path.resolve().name, about=mode.about, mode=mode.name, words=mode, example=_example(run, mode),
        style=Markup(_own("page.css")), model=Markup(model), weights=Markup(base64.b64encode(blob).decode()),
        code=Markup("\n".join(_own(name) for name in SCRIPTS)),
    )  # fmt: skip


def _own(name: str) -> str:
    return FOLDER.joinpath(name).read_text(encoding="utf-8")


def _weights(found: Carried, precision: str) -> tuple[list[dict[str, Any]], bytes]:
    """What there is where in the bytes, and the bytes."""
    listed, blob = [], bytearray()
    values = {name: value for graph in found.graphs.values() for name, value in graph.weights.values()}
    for name, value in values.items():
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in STORED:
            raise Refused(f"a page has no numbers of the type {dtype}")
        stored = precision if dtype == "float32" else dtype
        data = value.to(torch.float16 if stored == "float16" else value.dtype).contiguous().numpy().tobytes()
        listed.append(
            {
                "name": name,
                "dtype": dtype,
                "shape": [*value.shape],
                "at": len(blob),
                "size": len(data),
                "stored": stored,
            }
        )
        blob += data
    return listed, bytes(blob)


def as_json(program: Program) -> dict[str, Any]:
    """A program as JSON values: what refers to a result is {"ref": name}; infinities are {"number": text}."""
    return {
        "inputs": [*program.inputs],
        "operations": [[each.name, each.op, _plain([*each.args])] for each in program.operations],
        "outputs": [*program.outputs],
        "bodies": {name: as_json(body) for name, body in program.bodies.items()},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Ref):
        return {"ref": value.name}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"number": {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")}
    return value


def _require_known(found: Carried) -> None:
    """Refuse a model with an operation that the page does not have."""
    for graph in found.graphs.values():
        for op in _operations(program_of(graph)):
            if not is_known(op):
                raise Refused(f"a page does not have the operation {op}")


def _operations(program: Program) -> Iterator[str]:
    yield from (each.op for each in program.operations)
    for body in program.bodies.values():
        yield from _operations(body)


def _example(run: Any, mode: Mode) -> str:
    """What the field begins with: an input of the run."""
    if mode.name == "forecast":
        given = next(iter(run.task.read(None)))[0]
        return "\n".join(
            f"{value:.6g}" for value in run.task.before(given, run.task.codec.horizon)[2] if value is not None
        )
    value = run.first_input()
    if isinstance(value, str):
        return value[:300] if mode.name == "label" else value[:40]
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    rows = np.atleast_2d(np.asarray(value, np.float64))
    return "\n".join(" ".join(f"{each:.6g}" for each in row) for row in rows)


# ---- compared


def _outputs(engine: str, page: str) -> Callable[[Sequence[Case]], list[NDArray[Any]]]:
    def outputs(cases: Sequence[Case]) -> list[NDArray[Any]]:
        given = json.dumps([{name: _array(value) for name, value in _inputs(case).items()} for case in cases])
        found = ran(engine, page, f"compare(openModel().model, {given})")
        return [np.array([*map(float, each["values"])]).reshape(each["shape"]) for each in found]

    return outputs


def _inputs(case: Case) -> Mapping[str, Tensor]:
    given = {"x": case.x, "mask": case.mask}
    return {name: value for name, value in given.items() if value is not None}


def _array(value: Tensor) -> dict[str, Any]:
    dtype = str(value.dtype).removeprefix("torch.")
    return {"values": value.flatten().tolist(), "shape": [*value.shape], "dtype": dtype}


EXPORT = ExportSpec(
    summary="one HTML file that writes, labels or forecasts offline in any browser",
    suffix=".html",
    request=Request,
    write=write,
    why_not=why_not,
    aliases=("html", "web"),
)
