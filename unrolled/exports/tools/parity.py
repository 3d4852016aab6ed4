"""An export against the run it came from: the same inputs, at several sizes, through both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.errors import UnrolledError
from unrolled.core.export import Refused
from unrolled.core.forward import evaluating
from unrolled.exports.tools.examples import Examples
from unrolled.exports.tools.traced import Carried, reason

Arrays = Mapping[str, NDArray[Any]]
Call = Callable[[str, Arrays], Arrays]
"""call(graph, inputs) -> outputs, by name: what was exported, as its user runs it."""

TICKS = 50
SIZES = ((1, 9), (2, 50), (5, 17))  # rows, and positions of what is read at once
LARGEST = 1e-5  # difference, relative to outputs that are larger than 1

CHECKED = f"compared with the run on {len(SIZES)} batch sizes"


def largest_difference(model: Any, carried: Carried, examples: Examples, call: Call) -> float:
    """The largest difference between outputs; `Refused` where it is too large."""
    with evaluating(model) as device:
        if device.type != "cpu":
            raise Refused("it is on another device than the CPU; load it with device=cpu")
        if isinstance(model, Encoder):
            pairs = _read(model, carried, examples, call)
        else:
            pairs = _ticked(model, carried, examples, call)
        try:
            largest = max(_difference(found, expected) for found, expected in pairs)
        except (Refused, UnrolledError):
            raise
        except Exception as error:  # whatever the engine raises that runs it
            raise Refused(f"what was made of it does not run at every size ({reason(error)})") from error
    if not largest <= LARGEST:
        raise Refused(f"the outputs of what was made differ from those of the run by {largest:.1e}")
    return largest


def _ticked(
    model: Causal | Conditional, carried: Carried, examples: Examples, call: Call
) -> Iterator[tuple[NDArray[Any], Tensor]]:
    """Outputs of tick after tick, beside those of the run for the whole at once."""
    decoder = model.decoder if isinstance(model, Conditional) else model
    ticks = TICKS if decoder.max_length is None else min(TICKS, decoder.max_length)
    step = carried.graphs["step"]
    for rows, positions in SIZES:
        x, state, start = examples.input(rows, ticks), {}, None
        for name, value in carried.initial.items():
            state[name] = value.expand(rows, *value.shape[1:]).numpy()
        if isinstance(model, Conditional):
            source, mask = examples.source(rows, _within(positions, model.max_source))
            start = model.condition(source, mask)
            given = {port.name: each.numpy() for port, each in zip(carried.graphs["condition"].inputs, (source, mask)) if each is not None}
            state |= call("condition", given)
        expected = decoder(x, start)[0]
        for t in range(ticks):
            found = call("step", {step.inputs[0].name: x[:, t].numpy(), **state})
            state |= {name.removesuffix(".next"): value for name, value in found.items() if name.endswith(".next")}
            yield found[step.outputs[0].name], expected[:, t]


def _read(model: Encoder, carried: Carried, examples: Examples, call: Call) -> Iterator[tuple[NDArray[Any], Tensor]]:
    """What an encoder puts out, where its positions are real."""
    for rows, positions in SIZES:
        positions = _within(positions, model.max_length)
        x, mask = examples.input(rows, positions), examples.mask(rows, positions)
        y, after = model(x, mask)
        found = call("read", {"x": x.numpy(), "mask": mask.numpy()})["y"]
        yield (found[after.numpy()], y[after]) if y.shape[1] > 1 and found.ndim == y.dim() else (found.reshape(y.shape), y)


def _within(n: int, most: int | None) -> int:
    return n if most is None else min(n, most)


def _difference(found: NDArray[Any], expected: Tensor) -> float:
    """Relative to what is larger than 1; infinities must be the same."""
    true = expected.detach().double().numpy()
    if found.shape != true.shape:
        raise Refused(f"its outputs have the shape {list(found.shape)}, those of the run {list(true.shape)}")
    same = (found == true) | (np.isnan(found) & np.isnan(true))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(found - true) / np.maximum(np.abs(true), 1.0))
    return float(np.max(off, initial=0.0))
