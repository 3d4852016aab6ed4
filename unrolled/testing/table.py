"""The laws of a table model: one vector per example in, one vector out, rows independent, no memory of other calls."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.errors import UsageError
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.saving import check_dtype, check_saving
from unrolled.testing.subject import (
    ROWS,
    SETTINGS,
    Inputs,
    Setting,
    cast,
    gradients,
    inputs_for,
    prepared,
    sealed,
    stirred,
)


def check_table(
    model: nn.Module, *, d_in: int | None = None, fresh: Callable[[], nn.Module] | None = None, seed: int = 0
) -> list[str]:
    """Put a module x [B, F] -> y [B, D'] through its laws; returns their names, raises LawBroken where one fails.

    >>> check_table(nn.Linear(4, 2))
    ['form', 'saving', 'dtype', 'state', 'rows']
    """
    if isinstance(model, Causal | Encoder | Conditional):
        raise UsageError(f"{type(model).__name__} is a model of sequences; check_table takes one vector per example")
    with sealed(seed):
        inputs = inputs_for(model, None, d_in, None, seed)
        model = stirred(model, seed)
        example = inputs.draw(ROWS, 1, torch.float64)[:, 0]  # [B, F]

        def run(other: nn.Module, dtype: torch.dtype) -> Tensor:
            y: Tensor = other(cast(example, dtype))
            return y

        check_form(prepared(model, SETTINGS[2]), cast(example, torch.float32), SETTINGS[2])
        check_saving(model, run, fresh)
        check_dtype(model, run)
        for law in (check_value, check_rows):
            for setting in SETTINGS:
                law(prepared(model, setting), inputs, cast(example, setting.dtype), setting)
        return [laws.FORM, laws.SAVING, laws.DTYPE, laws.STATE, laws.ROWS]


def check_form(model: nn.Module, x: Tensor, setting: Setting) -> None:
    """y [B, D'], finite; no example at all is possible too."""
    with Law(laws.FORM, str(setting)) as law:
        y = model(x)
        law.holds(isinstance(y, Tensor), f"forward returns {type(y).__name__}, not one tensor [B, D']")
        law.holds(y.dim() == 2 and len(y) == len(x), f"x is {list(x.shape)} but y is {list(y.shape)}, not [B, D']")
        law.holds(bool(y.isfinite().all()), "y is not finite")
        law.holds(model(x[:0]).shape == (0, y.shape[1]), "no example at all does not give y [0, D']")


def check_value(model: nn.Module, inputs: Inputs, x: Tensor, setting: Setting) -> None:
    """The same call twice gives the same, whatever ran in between, and x stays as it is."""
    with Law(laws.STATE, str(setting)) as law:
        before = x.clone()
        torch.manual_seed(1)
        y = model(x)
        law.same(x, before, 0.0, "the model wrote into its input: x", ("row",))
        model(inputs.draw(len(x), 1, setting.dtype)[:, 0])
        torch.manual_seed(2)
        law.same(model(x), y, setting.tolerance, "y of the second of two equal calls", ("row",))
        with torch.no_grad():
            law.same(model(x), y, setting.tolerance, "y without gradients", ("row",))


def check_rows(model: nn.Module, inputs: Inputs, x: Tensor, setting: Setting) -> None:
    """Rows do not see each other, by perturbation, by gradient and alone."""
    everyone = torch.arange(len(x))
    with Law(laws.ROWS, str(setting)) as law:
        entry = x.clone().requires_grad_()
        y = model(entry)
        weights = inputs.weights(y)
        for row in range(len(x)):
            others = everyone[everyone != row]
            changed = x.clone()
            changed[row] = inputs.garbage(x)[row]
            what = f"row {row} changed and so did another's y: it"
            law.same(model(changed)[others], y[others], setting.tolerance, what, ("row",))
            (found,) = gradients(y[row], weights[row], [entry])
            law.nothing(found[others], setting.leak, largest(found), f"d y[{row}] / d x of another row", ("row",))
            law.same(model(x[row : row + 1])[0], y[row], setting.tolerance, "a row alone: y", (), row=row)
