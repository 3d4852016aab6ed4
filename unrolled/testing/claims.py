"""What a layer claims about itself, measured: its receptive field, the size of its state, its longest input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.causal import Causal
from unrolled.core.errors import UnrolledError
from unrolled.core.task import Solvable
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.subject import Inputs, Setting, Subject, differentiable, gradients, stirred

ROWS, EXTRA, TRIES = 2, 3, 4
LONGEST = 1024  # a state that still grows after so many steps is taken to grow for ever


def check_claims(subject: Subject, inputs: Inputs, setting: Setting) -> list[str]:
    """The claims that the layer makes; returns the laws that this came to."""
    passed = [laws.FIELD]
    check_receptive_field(subject, inputs, setting)
    if not subject.causal.state_grows:
        check_state_size(subject, inputs, setting)
        passed.append(laws.SIZE)
    if subject.causal.max_length is not None:
        check_length(subject, inputs, setting)
        passed.append(laws.LENGTH)
    return passed


def check_receptive_field(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """A claim of R: x[:, t-R] does not reach y[:, t], and x[:, t-R+1] does. None claims nothing.

    A layer that says `receptive_field_tight = False`, or that has a `solve` and is not solved yet (an empty n-gram
    table looks at nothing), or has such a part, claims only that nothing beyond R reaches.
    """
    field = subject.causal.receptive_field
    with Law(laws.FIELD, str(setting)) as law:
        law.holds(field is None or (isinstance(field, int) and field >= 1), f"the claim {field!r} is not a number >= 1")
        if field is None:
            return
        parts = list(subject.causal.modules())
        tight = all(_is_tight(part) for part in parts)
        steps = subject.length(field + EXTRA)
        reached = False
        for attempt in range(TRIES):
            if attempt:  # a dead unit may hide the way: move the weights and try again
                subject = Subject(stirred(subject.model, attempt), subject.source, subject.mask)
            reached |= _measure(law, subject, inputs, setting, field, steps)
            if reached or not tight or steps < field:
                return
        raise law.broken(
            f"the claim is {field}, but the input {field - 1} steps back reaches no output: it is too large"
        )


def _is_tight(part: nn.Module) -> bool:
    said = part.receptive_field_tight if isinstance(part, Causal) else None
    return not isinstance(part, Solvable) if said is None else said


def _measure(law: Law, subject: Subject, inputs: Inputs, setting: Setting, field: int, steps: int) -> bool:
    """Nothing beyond the field reaches the last outputs; True when its edge does."""
    rows = torch.arange(ROWS)
    x = inputs.draw(ROWS, steps, setting.dtype)
    with differentiable(subject.model, x) as (entry, leaves):
        y, _ = subject(entry, subject.start(rows))
    weights = inputs.weights(y)
    reached = False
    for t in range(min(field, steps) - 1, steps):
        edge = t - field + 1
        beyond = torch.cat([inputs.garbage(x)[:, : max(edge, 0)], x[:, max(edge, 0) :]], 1)
        far = subject(beyond, subject.start(rows))[0][:, t]
        what = f"the claim is {field}, but y[:, {t}] changes with x before time {edge}: it"
        law.same(far, y[:, t], setting.tolerance, what, axes=("row",), time=t)
        for found in gradients(y[:, t], weights[:, t], leaves):
            what = f"the claim is {field}, but d y[:, {t}] / d x before time {edge}"
            law.nothing(found[:, : max(edge, 0)], setting.leak, largest(found), what)
            reached |= edge >= 0 and bool((found[:, edge] != 0).any())
        if edge >= 0:
            reached |= _changes(subject, inputs, x, y, edge, t)
    return reached


def _changes(subject: Subject, inputs: Inputs, x: Tensor, y: Tensor, edge: int, t: int) -> bool:
    nudged = x.clone()
    nudged[:, edge] = inputs.garbage(x)[:, edge]
    return bool((subject(nudged, subject.start(torch.arange(ROWS)))[0][:, t] != y[:, t]).any())


def check_state_size(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """state_grows = False: from some length on the state takes no more memory."""
    with Law(laws.SIZE, str(setting)) as law, torch.no_grad():
        rows = torch.arange(ROWS)
        steps = subject.length(8)
        _, state = subject(inputs.draw(ROWS, steps, setting.dtype), subject.start(rows))
        sizes = [tree.nbytes(state)]
        longest = subject.length(max(LONGEST, 4 * (subject.causal.receptive_field or 0)))
        while 2 * steps <= longest:
            _, state = subject(inputs.draw(ROWS, steps, setting.dtype), state)
            steps *= 2
            sizes.append(tree.nbytes(state))
            if sizes[-1] <= sizes[-2]:
                return
        law.holds(
            len(sizes) == 1 or sizes[-1] <= sizes[-2],
            f"state_grows is False, but after {steps} steps the state holds {sizes[-1]} bytes and grows on",
            time=steps,
        )


def check_length(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """One step more than max_length is refused with a sentence, in one chunk and by carrying the state."""
    longest = subject.causal.max_length
    assert longest is not None
    rows = torch.arange(ROWS)
    with Law(laws.LENGTH, str(setting)) as law, torch.no_grad():
        x = inputs.draw(ROWS, longest + 1, setting.dtype)
        for pieces in ([longest + 1], [longest, 1]):
            state = subject.start(rows)
            try:
                for piece in torch.split(x, pieces, 1):
                    _, state = subject(piece, state)
            except (UnrolledError, ValueError):
                continue
            raise law.broken(
                f"max_length is {longest}, but {longest + 1} steps in pieces {pieces} were not refused", time=longest
            )
