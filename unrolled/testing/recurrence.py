"""The laws of the two halves of a recurrence: a cell is one pure tick, a scan runs it like the plain loop."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.saving import check_dtype, check_saving
from unrolled.testing.shapes import refuses
from unrolled.testing.subject import (
    ROWS,
    Inputs,
    Setting,
    cast,
    gradients,
    inputs_for,
    own_input,
    prepared,
    sealed,
    stirred,
)
from unrolled.testing.ticks import WITHOUT, check_own_memory

Scan = Callable[[Any, Tensor, Tensor], tuple[Tensor, Tensor]]


def check_cell(
    cell: nn.Module,
    *,
    d_in: int | None = None,
    state_size: int | None = None,
    fresh: Callable[[], nn.Module] | None = None,
    seed: int = 0,
) -> list[str]:
    """Put a cell, h = cell(x_t [B, D], h [B, N]) and cell.output(h) [B, D'], through its laws; returns their names."""
    n = _state_size(cell, state_size)
    with sealed(seed):
        inputs = inputs_for(cell, None, d_in, None, seed)
        cell = stirred(cell, seed)
        x = inputs.draw(ROWS, 2, torch.float64)  # [B, 2, D]: an input and another
        h = Inputs(None, n, None, inputs.device, seed + 1).draw(ROWS, 2, torch.float64)  # [B, 2, N]

        def run(model: nn.Module, dtype: torch.dtype) -> Tensor:
            after = model(cast(x[:, 0], dtype), cast(h[:, 0], dtype))
            return torch.cat([after, model.output(after)], 1)  # type: ignore[operator]  # [B, N + D']

        for training in (False, True):
            setting = Setting(torch.float64, training)
            _check_tick(prepared(cell, setting), inputs, x, h, setting)
        check_saving(cell, run, fresh)
        check_dtype(cell, run)
        _check_gradient(prepared(cell, Setting(torch.float64, False)), x[:, 0], h[:, 0])
    return [laws.FORM, laws.STATE, laws.ROWS, laws.SAVING, laws.DTYPE, laws.GRADIENT]


def _state_size(cell: nn.Module, given: int | None) -> int:
    given = getattr(cell, "state_size", None) if given is None else given
    if not isinstance(given, int):
        raise UsageError(f"the state width of {type(cell).__name__} is not known; give state_size")
    return given


def _check_tick(cell: Any, inputs: Inputs, x: Tensor, h: Tensor, setting: Setting) -> None:
    """One tensor [B, N] in and out, the same twice, nothing overwritten, rows apart."""
    x_t, before = x[:, 0].clone(), h[:, 0].clone()
    with Law(laws.FORM, str(setting)) as law:
        after = cell(x_t, before)
        law.holds(isinstance(after, Tensor), f"the state is {type(after).__name__}, not one tensor [B, N]")
        law.holds(after.shape == before.shape, f"the state goes in as {list(before.shape)}, out as {list(after.shape)}")
        y = cell.output(after)
        law.holds(y.dim() == 2 and len(y) == ROWS, f"the output is {list(y.shape)}, not [B, D']")
        law.holds(bool(after.isfinite().all() and y.isfinite().all()), "the state or output is not finite")
    with Law(laws.STATE, str(setting)) as law:
        law.same(x_t, x[:, 0], 0.0, "the cell wrote into its input: x_t", ("row",))
        law.same(before, h[:, 0], 0.0, "the cell wrote into the state it was given: h", ("row",))
        kept = after.detach().clone()
        cell.output(cell(x[:, 1], h[:, 1]))  # another stream in between
        law.same(after, kept, 0.0, "a later tick overwrote the state returned before: h", ("row",))
        law.same(cell(x_t, before), kept, setting.tolerance, "the same tick again, after another stream's: h", ("row",))
        law.same(cell.output(after), y, setting.tolerance, "the output of the same state, asked twice, y", ("row",))
        with torch.no_grad():
            law.same(cell(x_t, before), kept, setting.tolerance, "without gradients h", ("row",))
    with Law(laws.ROWS, str(setting)) as law:
        everyone = torch.arange(ROWS)
        for row in range(ROWS):
            others = everyone[everyone != row]
            garbage = inputs.garbage(x)[:, 0], inputs.garbage(h)[:, 0]
            one = (everyone == row)[:, None].to(x.device)
            moved = cell(torch.where(one, garbage[0], x_t), torch.where(one, garbage[1], before))
            what = f"row {row} changed and so did another's"
            law.same(moved[others], after[others], setting.tolerance, f"{what} h: it", ("row",))
            law.same(cell.output(moved)[others], y[others], setting.tolerance, f"{what} y: it", ("row",))
            alone = cell(x_t[row : row + 1], before[row : row + 1])
            law.same(alone[0], after[row], setting.tolerance, "a row alone: h", (), row=row)
            law.same(cell.output(alone)[0], y[row], setting.tolerance, "a row alone: y", (), row=row)
            for name, mode in WITHOUT.items():
                entry, state = x_t[row : row + 1].clone(), before[row : row + 1].clone()
                with mode():
                    alone = cell(entry, state)
                    read = cell.output(alone)
                what = f"a row alone, {name}:"
                law.same(alone[0], after[row], setting.tolerance, f"{what} h", (), row=row)
                law.same(read[0], y[row], setting.tolerance, f"{what} y", (), row=row)
                law.same(entry[0], x_t[row], 0.0, f"{what} the cell wrote into its input: x_t", (), row=row)
                law.same(state[0], before[row], 0.0, f"{what} the cell wrote into the state it was given: h", ())
    with Law(laws.FORM, str(setting)) as law:
        for width in sorted({x_t.shape[1] - 1, x_t.shape[1] + 1} - {0, 1}):
            wide = torch.zeros(ROWS, width, dtype=x_t.dtype, device=x_t.device)
            what = f"the cell takes inputs of width {x_t.shape[1]}, but also an x_t of width {width}"
            refuses(law, lambda wide=wide: cell(wide, before), what)  # type: ignore[misc]


def _check_gradient(cell: Any, x: Tensor, h: Tensor) -> None:
    """Gradients by autograd equal finite differences, for x, h and every parameter."""
    parameters = {name: p for name, p in cell.named_parameters() if p.requires_grad}
    with Law(laws.GRADIENT, "float64") as law:

        def tick(*tensors: Tensor) -> Tensor:
            after = torch.func.functional_call(cell, dict(zip(parameters, tensors[2:])), (tensors[0], tensors[1]))
            y = torch.func.functional_call(_Output(cell), _prefixed(parameters, tensors[2:]), (after,))
            return torch.cat([after, y], 1)

        leaves = [t.detach().clone().requires_grad_() for t in (x[:2], h[:2], *parameters.values())]
        names = ["x", "h", *parameters]
        for index, name in enumerate(names):  # one by one, so that the culprit has a name

            def alone(leaf: Tensor, index: int = index) -> Tensor:
                return tick(*leaves[:index], leaf, *leaves[index + 1 :])

            ok = torch.autograd.gradcheck(
                alone, (leaves[index],), eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=False
            )
            law.holds(ok, f"the gradient of {name} is not the slope measured by finite differences", parameter=name)


class _Output(nn.Module):
    """`cell.output` as a forward, for functional_call."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, h: Tensor) -> Tensor:
        y: Tensor = self.cell.output(h)  # type: ignore[operator]
        return y


def _prefixed(parameters: dict[str, Tensor], values: tuple[Tensor, ...]) -> dict[str, Tensor]:
    return {f"cell.{name}": value for name, value in zip(parameters, values)}


def reference(cell: Any, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """What a scan has to equal: h_t = cell(x_t, h_{t-1}), y_t = output(h_t), one tick after the other."""
    ys = []
    for t in range(x.shape[1]):
        h = cell(x[:, t], h)  # [B, N]
        ys.append(cell.output(h))
    return torch.stack(ys, 1), h  # [B, T, D'], [B, N]


def check_scan(
    scan: Scan,
    cell: nn.Module,
    x: Tensor | None = None,
    *,
    d_in: int | None = None,
    state_size: int | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> list[str]:
    """A scan gives the outputs, last state and gradients (x, h0, parameters) of the plain loop, for T = 1, 2 and more.

    tolerance: allowed relative difference in float64 (1e-9 unless given; float32 always allows 5e-4).
    """
    n = _state_size(cell, state_size)
    if x is None and d_in is None and own_input(cell) == (None, None):
        raise UsageError(f"the input width of {type(cell).__name__} is not known; give x or d_in")
    with sealed(seed):
        inputs = inputs_for(cell, x, d_in, None, seed)
        cell = stirred(cell, seed)
        states = Inputs(None, n, None, inputs.device, seed + 1)
        lengths = sorted({1, 2, 17, *([] if x is None else [x.shape[1]])})
        for dtype in (torch.float64, torch.float32):
            for training in (False, True):
                setting = Setting(dtype, training)
                allowed = tolerance if tolerance is not None and dtype == torch.float64 else setting.tolerance
                for steps in lengths:
                    drawn = inputs.draw(ROWS, steps, dtype), states.draw(ROWS, 1, dtype)[:, 0]
                    with Law(laws.SCAN, f"T = {steps}, {setting}") as law:
                        _check_against_loop(law, scan, prepared(cell, setting), drawn, inputs, allowed)
                    _check_alone(scan, prepared(cell, setting), inputs, states, steps, setting)
                _check_sizes(scan, prepared(cell, setting), inputs, states, setting)
    return [laws.SCAN]


def _check_alone(
    scan: Scan, cell: nn.Module, inputs: Inputs, states: Inputs, steps: int, setting: Setting
) -> None:  # fmt: skip
    """One row without gradients, which for T = 1 is generation: the loop's numbers, in memory of their own."""
    drawn = inputs.draw(1, steps, setting.dtype), states.draw(1, 1, setting.dtype)[:, 0]
    allowed = max(setting.tolerance, 1e-6)
    for name, mode in WITHOUT.items():
        with Law(laws.SCAN, f"one row, T = {steps}, {name}, {setting}") as law, mode():
            y, last = reference(cell, *drawn)
            x, h0 = (value.clone() for value in drawn)
            found, state = scan(cell, x, h0)
            law.same(found, y, allowed, "y")
            law.same(state, last, allowed, "the last state", ("row",))
            law.same(x, drawn[0], 0.0, "the scan wrote into its input: x")
            law.same(h0, drawn[1], 0.0, "the scan wrote into its initial state: h0", ("row",))
            law.holds(not state.requires_grad, "the last state belongs to a graph")
            check_own_memory(law, found, {"x": x, "h0": h0, "the last state": state}, (), cell)


def _check_sizes(scan: Scan, cell: nn.Module, inputs: Inputs, states: Inputs, setting: Setting) -> None:
    """An x of another width is refused; `Recurrent` sees to states."""
    x, h0 = inputs.draw(ROWS, 2, setting.dtype), states.draw(ROWS, 1, setting.dtype)[:, 0]
    with Law(laws.SCAN, str(setting)) as law:
        for rows, T in ((ROWS, 2), (ROWS, 1), (1, 1)):
            for enabled in (True, False):
                entry = torch.cat([x, x[..., :1]], -1)[:rows, :T]
                with torch.set_grad_enabled(enabled):
                    refuses(law, lambda x=entry, h=h0[:rows]: scan(cell, x, h), "it takes an x that is too wide")  # type: ignore[misc]


def _check_against_loop(
    law: Law, scan: Scan, cell: nn.Module, drawn: tuple[Tensor, Tensor], inputs: Inputs, tolerance: float
) -> None:
    results = []
    weights: list[Tensor] = []
    for run in (reference, scan):
        own = copy.deepcopy(cell)
        x, h0 = (value.clone().requires_grad_() for value in drawn)
        y, last = run(own, x, h0)
        law.same(x, drawn[0], 0.0, "the scan wrote into its input: x")
        law.same(h0, drawn[1], 0.0, "the scan wrote into its initial state: h0", ("row",))
        weights = weights or [inputs.weights(y), inputs.weights(last)]
        with torch.no_grad():
            plain = run(own, x.detach(), h0.detach())
        leaves = {"x": x, "h0": h0, **{name: p for name, p in own.named_parameters() if p.requires_grad}}
        law.same(last, plain[1], tolerance, "the last state without gradients", ("row",))
        law.same(y, plain[0], tolerance, "y without gradients")
        results.append((y, last, leaves))
    (y, last, leaves), (found_y, found_last, found_leaves) = results
    law.same(found_y, y, tolerance, "y")
    law.same(found_last, last, tolerance, "the last state", ("row",))
    for what, which in (("y", 0), ("the last state", 1)):
        wanted, found = (
            dict(zip(part, gradients(result[which], weights[which], list(part.values()))))
            for result, part in ((results[0][:2], leaves), (results[1][:2], found_leaves))
        )
        scale = max(largest(value) for value in wanted.values())
        for name, value in wanted.items():
            axes = {"x": ("row", "time"), "h0": ("row",)}.get(name, ())
            law.same(found[name], value, tolerance, f"d {what} / d {name}", axes, scale, parameter=name)
