"""The laws of p(target | source): a causal decoder from the state that a source makes, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.causal import Causal, Conditional
from unrolled.core.errors import UsageError
from unrolled.testing import law as laws
from unrolled.testing.causal import check_subject
from unrolled.testing.encoder import fillings
from unrolled.testing.law import Law, largest
from unrolled.testing.subject import (
    ROWS,
    SETTINGS,
    STEPS,
    Inputs,
    Setting,
    Subject,
    gradients,
    prepared,
    sealed,
    stirred,
)


def check_conditional(
    model: Conditional,
    source: Any,
    mask: Tensor | None,
    target: Tensor,
    *,
    fresh: Callable[[], nn.Module] | None = None,
    seed: int = 0,
) -> list[str]:
    """Put a conditional model through its laws; returns their names, raises LawBroken at the first that fails.

    source: a tensor [B, S, D], tokens [B, S], a class [B], or a tree of such, at least two unlike rows.
    mask: [B, S] True = real, or None for a source without padding; then there is no law of its padding to check.
    target: an example of what the decoder reads, [B, T, D] or tokens [B, T].
    """
    if not isinstance(model, Conditional):
        raise UsageError(f"{type(model).__name__} is not Conditional; derive it from unrolled.core.causal.Conditional")
    if not isinstance(getattr(model, "decoder", None), Causal):
        raise UsageError(f"{type(model).__name__}.decoder is not a Causal layer")
    rows = {len(leaf) for leaf in tree.leaves(source)}
    if len(rows) != 1 or min(rows) < 2:
        raise UsageError("the source needs at least two rows, equally many in each of its parts")
    with sealed(seed):
        order = torch.arange(ROWS) % rows.pop()
        source = tree.take(source, order)
        subject = Subject(stirred(model, seed), source, None if mask is None else mask[order])
        inputs = Inputs(target, None, None, target.device, seed)
        passed = check_subject(subject, inputs, fresh)
        checks = [check_source]
        if mask is not None:
            if not isinstance(source, Tensor) or source.shape[:2] != mask[order].shape:
                raise UsageError("a source with a mask [B, S] must be one tensor [B, S, ...]")
            checks.append(check_source_padding)
        for check in checks:
            for setting in SETTINGS:
                check(subject.on(prepared(subject.model, setting), setting.dtype), inputs, setting)
        return [*passed, laws.CONDITION]


def check_source(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """The source of a row reaches its own output and no other's."""
    everyone = torch.arange(ROWS)
    x = inputs.draw(ROWS, subject.length(STEPS), setting.dtype)
    y, _ = subject(x, subject.start(everyone))
    for row in range(ROWS):
        order = everyone.clone()
        order[row] = (row + 1) % ROWS if not _alike(subject, row, (row + 1) % ROWS) else (row + 2) % ROWS
        others = everyone[everyone != row]
        with Law(laws.CONDITION, str(setting)) as law:
            if _alike(subject, row, int(order[row])):
                raise law.broken("all rows of the source are alike; give at least two unlike rows", row=row)
            seen, _ = subject(x, subject.start(order))
            changed = not torch.equal(seen[row], y[row])
            law.holds(changed, "the output does not depend on the source: with another source y is the same", row=row)
        with Law(laws.ROWS, str(setting)) as law:
            what = f"the source of row {row} changed and so did another row's y: it"
            law.same(seen[others], y[others], setting.tolerance, what)
    if isinstance(subject.source, Tensor) and subject.source.is_floating_point():
        with Law(laws.ROWS, str(setting)) as law:
            _check_source_gradient(law, subject, inputs, x, setting)


def _alike(subject: Subject, row: int, other: int) -> bool:
    return all(torch.equal(leaf[row], leaf[other]) for leaf in tree.leaves(subject.source))


def _check_source_gradient(law: Law, subject: Subject, inputs: Inputs, x: Tensor, setting: Setting) -> None:
    everyone = torch.arange(ROWS)
    source = subject.source.clone().requires_grad_()
    moved = Subject(subject.model, source, subject.mask)
    y, _ = moved(x, moved.start(everyone))
    weights = inputs.weights(y)
    for row in range(ROWS):
        (found,) = gradients(y[row], weights[row], [source])
        law.nothing(found[everyone != row], setting.leak, largest(found), f"d y[{row}] / d source of another row")


def check_source_padding(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """Garbage, infinity and NaN in the padding of the source change no output and no gradient, nor does its length."""
    everyone = torch.arange(ROWS)
    source: Tensor = subject.source
    steps = source.shape[1]
    lengths = torch.tensor([max(1, steps - 2 * row) for row in range(ROWS)])
    mask = torch.arange(steps) < lengths[:, None]  # [B, S]
    mask = (mask.to(source.device) & subject.mask) if subject.mask is not None else mask.to(source.device)
    filler = Inputs(source, None, None, source.device, 0)
    x = inputs.draw(ROWS, subject.length(STEPS), setting.dtype)
    wanted: tuple[Tensor, list[Tensor]] | None = None
    weights: Tensor | None = None
    with Law(laws.PADDING, str(setting)) as law:
        for kind, garbage in fillings(filler, source):
            filled = torch.where(mask.view(*mask.shape, *[1] * (source.dim() - 2)), source, garbage)
            moved = Subject(subject.model, filled, mask)
            y, _ = moved(x, moved.start(everyone))
            weights = inputs.weights(y) if weights is None else weights
            grads = gradients(y, weights, list(moved.parameters().values()))
            wanted = (y, grads) if wanted is None else wanted
            law.same(y, wanted[0], setting.tolerance, f"with {kind} in the padding of the source y")
            scale = max((largest(g) for g in wanted[1]), default=0.0)
            for name, found, before in zip(moved.parameters(), grads, wanted[1]):
                what = f"with {kind} in the padding of the source the gradient of {name}"
                law.same(found, before, setting.tolerance, what, (), scale, parameter=name)
        assert wanted is not None
        for row in range(ROWS):
            length = int(mask[row].sum())
            short = Subject(subject.model, source[row : row + 1, :length], mask[row : row + 1, :length])
            y, _ = short(x[row : row + 1], short.start(torch.arange(1)))
            what = f"with a source of {length} padded to {steps}: y"
            law.same(wanted[0][row], y[0], setting.tolerance, what, ("time",), row=row)
