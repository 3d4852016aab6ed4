"""What a user of an export needs beside its numbers, as JSON: names, shapes, vocabulary, classes, scales."""

from __future__ import annotations

import json
from typing import Any

import unrolled
from unrolled.core.errors import DataError
from unrolled.core.opening import JSON, parse_json, read_text
from unrolled.core.tokens import SPECIALS
from unrolled.exports.tools.graphs import Graph
from unrolled.exports.tools.traced import Carried

FORMAT = 1


def facts_of(run: Any, carried: Carried) -> dict[str, Any]:
    """All but the weights, as JSON values."""
    return {
        "format": FORMAT, "unrolled": unrolled.__version__, "task": run.config.task, "model": run.config.model,
        "kind": carried.kind, "emission": json.loads(run.task.emission.to_json()), "specials": SPECIALS,
        "graphs": {name: _ports(graph) for name, graph in carried.graphs.items()},
        "initial": {name: _start(value) for name, value in carried.initial.items()},
        "codec": codec_of(run), "data": run.task.describe(),
    }  # fmt: skip


def _ports(graph: Graph) -> dict[str, Any]:
    return {"inputs": [port._asdict() for port in graph.inputs], "outputs": [port._asdict() for port in graph.outputs]}


def _start(value: Any) -> dict[str, Any]:
    """A state before the first tick, of one row: its shape without the row, and its values or the one that all are."""
    row, different = value[0], value.unique()
    values = row.tolist() if len(different) > 1 else different.tolist()[0] if len(different) else 0
    return {"shape": [*row.shape], "dtype": str(value.dtype).removeprefix("torch."), "values": values}


def codec_of(run: Any) -> dict[str, Any]:
    """The files that turn the data of users into tensors and back, by name."""
    folder = run.path / "codec"
    found = {}
    for path in sorted(folder.glob("*.json")):
        text = read_text(path, JSON, within=folder)
        try:
            found[path.name] = parse_json(text, str(path))
        except ValueError as error:
            raise DataError(f"{path}: damaged ({error}); restore the file") from None
    return found
