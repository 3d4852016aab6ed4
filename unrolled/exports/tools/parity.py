"""An export against the run it came from: the same inputs, at several sizes, through both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Conditional, Encoder, decoder_of
from unrolled.core.errors import UnrolledError
from unrolled.core.export import Refused
from unrolled.core.forward import evaluating
from unrolled.core.task import Model
from unrolled.exports.tools.examples import Examples
from unrolled.exports.tools.graphs import reason
from unrolled.exports.tools.traced import Carried

Arrays = Mapping[str, NDArray[Any]]
Call = Callable[[str, Arrays], Arrays]
"""call(graph, inputs) -> outputs, by name: what was exported, as its user runs it."""

TICKS = 50
SIZES = ((1, 9), (2, 50), (5, 17))  # rows, and positions of what is read at once
LARGEST = 1e-5  # difference, relative to outputs that are larger than 1

CHECKED = f"compared with the run on {len(SIZES)} batch sizes"


class Case(NamedTuple):
    """Inputs, and what the run makes of them."""

    x: Tensor  # [B, T, ..]
    mask: Tensor | None  # of x, where an encoder reads it
    source: Tensor | None
    source_mask: Tensor | None
    y: Tensor  # [B, T', D']
    real: Tensor | None  # which of its positions count; None: all


Outputs = Callable[[Sequence[Case]], Iterable[NDArray[Any]]]
"""What was exported makes of the inputs of cases: y of each."""


def largest_difference(model: Any, examples: Examples, outputs: Outputs) -> float:
    """The largest difference between outputs; `Refused` where it is too large."""
    with evaluating(model) as device:
        if device.type != "cpu":
            raise Refused("it is on another device than the CPU; load it with device=cpu")
        cases = [_case(model, examples, *size) for size in SIZES]
        try:
            largest = max(_difference(y, case) for y, case in zip(outputs(cases), cases, strict=True))
        except (Refused, UnrolledError):
            raise
        except Exception as error:  # whatever the engine raises that runs it
            raise Refused(f"what was made of it does not run at every size ({reason(error)})") from error
    if not largest <= LARGEST:
        raise Refused(f"the outputs of what was made differ from those of the run by {largest:.1e}")
    return largest


def _case(model: Model, examples: Examples, rows: int, positions: int) -> Case:
    if isinstance(model, Encoder):
        n = _within(positions, model.max_length)
        x, mask = examples.input(rows, n), examples.mask(rows, n)
        y, after = model(x, mask)
        return Case(x, mask, None, None, y, after if y.shape[1] > 1 else None)
    decoder = decoder_of(model)
    x = examples.input(rows, _within(TICKS, decoder.max_length))
    if not isinstance(model, Conditional):
        return Case(x, None, None, None, decoder(x)[0], None)
    source, source_mask = examples.source(rows, _within(positions, model.max_source))
    return Case(x, None, source, source_mask, decoder(x, model.condition(source, source_mask))[0], None)


def by_calls(carried: Carried, call: Call) -> Outputs:
    """Of an export that is functions: a recurrence tick by tick."""

    def outputs(cases: Sequence[Case]) -> Iterator[NDArray[Any]]:
        for case in cases:
            if case.mask is not None:
                yield call("read", {"x": case.x.numpy(), "mask": case.mask.numpy()})["y"]
                continue
            state: dict[str, NDArray[Any]] = {}
            for name, value in carried.initial.items():
                state[name] = value.expand(len(case.x), *value.shape[1:]).numpy()
            if case.source is not None:
                given = zip(carried.graphs["condition"].inputs, (case.source, case.source_mask))
                state |= call("condition", {port.name: each.numpy() for port, each in given if each is not None})
            yield np.stack([*_ticks(carried, call, case.x.numpy(), state)], axis=1)

    return outputs


def _ticks(carried: Carried, call: Call, x: NDArray[Any], state: dict[str, NDArray[Any]]) -> Iterator[NDArray[Any]]:
    step = carried.graphs["step"]
    for t in range(x.shape[1]):
        found = call("step", {step.inputs[0].name: x[:, t], **state})
        state = state | {name.removesuffix(".next"): each for name, each in found.items() if name.endswith(".next")}
        yield found[step.outputs[0].name]


def _within(n: int, most: int | None) -> int:
    return n if most is None else min(n, most)


def _difference(found: NDArray[Any], case: Case) -> float:
    """Relative to what is larger than 1; infinities must be the same."""
    true = case.y.detach().double().numpy()
    if found.ndim == true.ndim - 1 and true.shape[1] == 1:
        true = true[:, 0]
    if found.shape != true.shape:
        raise Refused(f"its outputs have the shape {list(found.shape)}, those of the run {list(true.shape)}")
    if case.real is not None and found.ndim == case.y.dim():
        found, true = found[case.real.numpy()], true[case.real.numpy()]
    same = (found == true) | (np.isnan(found) & np.isnan(true))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(found - true) / np.maximum(np.abs(true), 1.0))
    return float(np.max(off, initial=0.0))
