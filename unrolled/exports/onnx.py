"""ONNX: the functions of a model as graphs that onnxruntime and others run, one tick at a time, with the state outside.

    lm.onnx                                       step of a causal model, or read of an encoder
    nmt.condition.onnx, nmt.step.onnx             of a model with a source

The metadata of each file has, under "unrolled", what its user needs beside: the vocabulary, classes or scales, and what
the state is before the first tick. Needs the extra [onnx].
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from unrolled.core.config import Config
from unrolled.core.errors import needs_extra
from unrolled.core.export import ExportSpec, Refused, Written
from unrolled.exports.tools.examples import examples_of
from unrolled.exports.tools.facts import facts_of
from unrolled.exports.tools.files import write_together
from unrolled.exports.tools.parity import CHECKED, Arrays, by_calls, largest_difference
from unrolled.exports.tools.traced import Graph, carried, quiet, reason

EXTRA = "onnx"
MOST = 2**31 - 1  # bytes that a file of protobuf may have


class Request(Config):
    """Nothing to choose."""


def why_not(run: Any) -> str | None:
    try:
        carried(run.model, examples_of(run))
    except Refused as refused:
        return str(refused)
    return None


def write(run: Any, out: Path, _: Request) -> Written:
    """One file for each function of the model."""
    require_packages()
    examples = examples_of(run)
    found = carried(run.model, examples)
    facts = facts_of(run, found)
    made = {name: _file_of(graph, facts) for name, graph in found.graphs.items()}
    difference = largest_difference(run.model, examples, by_calls(found, _Sessions(made)))
    return Written(write_together({_place(out, name, made): data for name, data in made.items()}), difference, CHECKED)


def require_packages() -> None:
    """Refuse where the extra is not installed."""
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise needs_extra(error, EXTRA) from None
    assert onnx.__version__
    assert onnxruntime.__version__


def _place(out: Path, name: str, made: Mapping[str, bytes]) -> Path:
    return out if len(made) == 1 else out.with_name(f"{out.stem}.{name}{out.suffix}")


def _file_of(graph: Graph, facts: Mapping[str, Any]) -> bytes:
    names: dict[str, Any] = {
        "input_names": [port.name for port in graph.inputs], "output_names": [port.name for port in graph.outputs]
    }  # fmt: skip
    try:
        with quiet():
            program = torch.onnx.export(graph.program, dynamo=True, verbose=False, **names)
    except Exception as error:
        raise Refused(f"ONNX has no form of it ({reason(error)})") from error
    assert program is not None
    model = program.model_proto
    entry = model.metadata_props.add()
    entry.key, entry.value = "unrolled", json.dumps(facts, ensure_ascii=False)
    if model.ByteSize() > MOST:
        raise Refused(f"it has {model.ByteSize():,} bytes, and a file of ONNX at most {MOST:,}")
    data: bytes = model.SerializeToString()
    return data


class _Sessions:
    """Files of ONNX as functions."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what goes wrong is raised
        self.sessions = {
            name: onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            for name, data in files.items()
        }

    def __call__(self, graph: str, inputs: Arrays) -> Arrays:
        session = self.sessions[graph]
        known = {port.name for port in session.get_inputs()}
        found = session.run(None, {name: value for name, value in inputs.items() if name in known})
        return dict(zip((port.name for port in session.get_outputs()), found, strict=True))


EXPORT = ExportSpec(
    summary="ONNX graphs with the state outside, for onnxruntime and other engines",
    suffix=".onnx",
    request=Request,
    write=write,
    why_not=why_not,
    aliases=("ort", "onnxruntime"),
)
