"""The law of chunks: cut x anywhere, carry the state, and nothing changes. Streaming is T = 1."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.state import State
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.subject import ROWS, STEPS, Inputs, Setting, Subject, gradients

LONG = 70  # some layers choose another way to compute a long chunk


def in_pieces(subject: Subject, x: Tensor, state: State, pieces: list[int]) -> tuple[Tensor, State]:
    ys = []
    for piece in torch.split(x, pieces, 1):
        y, state = subject(piece, state)
        ys.append(y)
    return torch.cat(ys, 1), state


def check_chunks(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """Cut anywhere and carry the state: same y, same gradients of x, parameters and the incoming state."""
    with Law(laws.CHUNKS, str(setting)) as law:
        steps = subject.length(STEPS)
        x = inputs.draw(ROWS, steps, setting.dtype)
        prefix = inputs.draw(ROWS, max(1, subject.length(2 * STEPS) - steps), setting.dtype)
        middle = subject.length(steps + prefix.shape[1]) == steps + prefix.shape[1]
        pieces = [[1] * steps]
        if setting.thorough:
            pieces += [[0, steps // 2, 0, steps - steps // 2, 0], *(inputs.cuts(steps) for _ in range(2))]
        for before in (None, prefix) if middle else (None,):
            _check_pieces(law, subject, inputs, before, x, pieces, setting)
        if setting.training:
            return
        length = subject.length(LONG)
        x = inputs.draw(ROWS, length, setting.dtype)
        _check_pieces(law, subject, inputs, None, x, [inputs.cuts(length)], setting)


def _check_pieces(
    law: Law,
    subject: Subject,
    inputs: Inputs,
    before: Tensor | None,
    x: Tensor,
    cuts: list[list[int]],
    setting: Setting,
) -> None:
    """Compare every way to cut x with the whole, continuing from `before` or starting new."""
    with torch.no_grad():
        incoming = None if before is None else subject(before, subject.start(torch.arange(ROWS)))[1]
        parts = len(list(tree.leaves(incoming)))
    place = "" if before is None else ", continued"
    weights: Tensor | None = None
    wanted: dict[str, Tensor] = {}
    for pieces in [[x.shape[1]], *cuts]:
        entry = x.clone().requires_grad_(x.is_floating_point())
        start = subject.start(torch.arange(ROWS)) if incoming is None else tree.detach(tree.clone(incoming))
        held = [leaf for leaf in tree.leaves(start) if leaf.is_floating_point() and leaf.is_leaf] if parts else []
        for leaf in held:
            leaf.requires_grad_()
        y, _ = in_pieces(subject, entry, start, pieces)
        weights = inputs.weights(y) if weights is None else weights
        leaves = {"x": entry} if entry.requires_grad else {}
        leaves |= {f"state leaf {index}": leaf for index, leaf in enumerate(held)} | subject.parameters()
        found = dict(zip(leaves, gradients(y, weights, list(leaves.values()))))
        with torch.no_grad():
            start = subject.start(torch.arange(ROWS)) if incoming is None else tree.clone(incoming)
            found["y without gradients"] = in_pieces(subject, x, start, pieces)[0]
        found["y"] = y.detach()
        wanted = wanted or found | {"y without gradients": found["y"]}
        cut = f"in pieces {'+'.join(map(str, pieces))}{place}"
        _compare(law, found, wanted, cut, setting)


def _compare(law: Law, found: dict[str, Tensor], wanted: dict[str, Tensor], cut: str, setting: Setting) -> None:
    """Outputs first; the gradients of parameters share one scale, for some are zero by symmetry."""
    for name in ("y", "y without gradients"):
        law.same(found[name], wanted[name], setting.tolerance, f"{cut}: {name}")
    rest = [name for name in wanted if name not in ("y", "y without gradients")]
    scale = max((largest(wanted[name]) for name in rest), default=0.0)
    for name in rest:
        axes = ("row", "time") if name == "x" else ("row",) if name.startswith("state leaf") else ()
        what = f"{cut}: the gradient of {name}"
        law.same(found[name], wanted[name], setting.tolerance, what, axes, scale, parameter=name)
