"""The laws of a causal layer: `y, state = layer(x, state)` in any pieces, from the past only, row by row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.causal import Causal
from unrolled.core.errors import UsageError
from unrolled.testing import law as laws
from unrolled.testing.chunks import check_chunks, in_pieces
from unrolled.testing.claims import check_claims
from unrolled.testing.law import Law, largest
from unrolled.testing.saving import check_dtype, check_saving
from unrolled.testing.shapes import check_sizes
from unrolled.testing.subject import (
    ROWS,
    SETTINGS,
    STEPS,
    Inputs,
    Setting,
    Subject,
    cast,
    differentiable,
    gradients,
    inputs_for,
    prepared,
    sealed,
    stirred,
)
from unrolled.testing.ticks import check_graph, check_own_memory, check_ticks, fixed_leaves


def check_causal(
    layer: Causal,
    x: Tensor | None = None,
    *,
    d_in: int | None = None,
    vocabulary: int | None = None,
    fresh: Callable[[], nn.Module] | None = None,
    seed: int = 0,
) -> list[str]:
    """Put a causal layer through all its laws; returns their names, raises LawBroken at the first that fails.

    x: an example input [B, T, D], or tokens [B, T]; else inputs of width d_in or tokens of a vocabulary are made.
    fresh: makes the layer anew, so that loading saved weights is tried on a layer that never saw them.
    """
    if not isinstance(layer, Causal):
        raise UsageError(f"{type(layer).__name__} is not a Causal layer; derive it from unrolled.core.causal.Causal")
    with sealed(seed):
        inputs = inputs_for(layer, x, d_in, vocabulary, seed)
        return check_subject(Subject(stirred(layer, seed)), inputs, fresh)


def check_subject(subject: Subject, inputs: Inputs, fresh: Callable[[], nn.Module] | None) -> list[str]:
    """The laws in the order in which a fault is named best: a leak breaks the law of chunks too, so it comes first."""
    x = inputs.draw(ROWS, subject.length(STEPS), torch.float64)

    def settled(setting: Setting) -> Subject:
        return subject.on(prepared(subject.model, setting), setting.dtype)

    def run(model: nn.Module, dtype: torch.dtype) -> Tensor:
        moved = subject.on(model, dtype)
        return moved(cast(x, dtype), moved.start(torch.arange(ROWS)))[0]

    single, single_training = SETTINGS[2:]
    check_form(settled(single), inputs, single)
    check_sizes(settled(single), inputs, single)
    check_repeats(settled(single), inputs, single)
    check_repeats(settled(single_training), inputs, single_training)
    check_saving(subject.model, run, fresh)
    check_dtype(subject.model, run)
    crossed = [SETTINGS[0], SETTINGS[3]]  # both modes and both dtypes, for laws that do not hang on their combination
    for law, where in (
        (check_state, crossed),
        (check_causality, SETTINGS),
        (check_rows, SETTINGS),
        (check_chunks, SETTINGS),
        (check_ticks, SETTINGS),
        (check_graph, crossed),
        (check_padding, crossed),
    ):
        for setting in where:
            law(settled(setting), inputs, setting)
    passed = [laws.FORM, laws.STATE, laws.SAVING, laws.DTYPE, laws.CAUSALITY, laws.ROWS, laws.CHUNKS, laws.PADDING]
    return passed + check_claims(settled(SETTINGS[0]), inputs, SETTINGS[0])


def check_form(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """y [B, T, ...] is finite; every leaf of the state is a tensor [B, ...]; T = 0 gives no output and no news."""
    for rows in (ROWS, ROWS - 1):  # two sizes, for a width may happen to be one of them
        with Law(laws.FORM, str(setting)) as law:
            everyone = torch.arange(rows)
            x = inputs.draw(rows, subject.length(STEPS), setting.dtype)
            result = subject.causal(x, subject.start(everyone))
            law.holds(
                isinstance(result, tuple) and len(result) == 2,
                f"forward returns {type(result).__name__}, not the pair (y, state)",
            )
            y, state = result
            law.holds(isinstance(y, Tensor), f"y is {type(y).__name__}, not a tensor")
            law.holds(y.shape[:2] == x.shape[:2], f"x is {list(x.shape)} but y is {list(y.shape)}, not [B, T, ...]")
            law.holds(bool(y.isfinite().all()), "y is not finite on ordinary input")
            leaves = list(tree.leaves(state))
        with Law(laws.ROWS, str(setting)) as law:
            for leaf in leaves:
                shape = list(leaf.shape)
                law.holds(shape[:1] == [rows], f"a leaf of the state is {shape}, not batch-first [{rows}, ...]")
        with Law(laws.CHUNKS, str(setting)) as law:
            nothing, after = subject(x[:, :0], state)
            law.same(nothing, y[:, :0], 0.0, "y for T = 0")
            law.holds(nothing.dtype == y.dtype, f"y for T = 0 is {nothing.dtype}, otherwise {y.dtype}")
            for new, old in zip(tree.leaves(after), leaves, strict=True):
                law.same(new, old, 0.0, "the state after T = 0", axes=("row",))


def check_repeats(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """The same call twice gives the same: nothing is kept on self, and without dropout nothing is random."""
    with Law(laws.STATE, str(setting)) as law:
        x = inputs.draw(ROWS, subject.length(STEPS), setting.dtype)
        ys = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            ys.append(subject(x, subject.start(torch.arange(ROWS)))[0])
        law.same(ys[1], ys[0], setting.tolerance, "y of the second of two equal calls; is a state kept on self? y")
        law.same(
            ys[2],
            ys[0],
            setting.tolerance,
            "with dropout 0 the layer is still random (name its probability 'dropout', so that it can be set to 0); y",
        )


def check_state(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """State is a value: calls leave it and x as they were, streams do not disturb each other, Fixed stays."""
    steps = subject.length(STEPS)
    everyone = torch.arange(ROWS)
    with Law(laws.STATE, str(setting)) as law:
        a, b = (inputs.draw(ROWS, steps, setting.dtype) for _ in range(2))
        half = steps // 2
        _, state = subject(a[:, :half], subject.start(everyone))
        before = [leaf.detach().clone() for leaf in tree.leaves(state)]
        a_before = a.clone()
        _, after = subject(a[:, half:], state)
        law.same(a, a_before, 0.0, "the layer wrote into its input: x")
        for leaf, old in zip(tree.leaves(state), before, strict=True):
            law.same(
                leaf, old, 0.0, "with gradients on the state that was passed in was overwritten; it", axes=("row",)
            )
        for leaf, old in zip(fixed_leaves(after), fixed_leaves(state), strict=True):
            law.same(leaf, old, 0.0, "a tick changed a Fixed leaf; it", axes=("row",))
        with torch.no_grad():
            _, state = subject(a[:, :half], subject.start(everyone))
            spare = tree.clone(state)
            fixed = [leaf.clone() for leaf in fixed_leaves(state)]
            first = subject(a[:, half:], state)[0].clone()
            for leaf, old in zip(fixed_leaves(state), fixed, strict=True):
                law.same(leaf, old, 0.0, "without gradients a call overwrote a Fixed leaf; it", axes=("row",))
            law.same(a, a_before, 0.0, "without gradients the layer wrote into its input: x")
            again = subject(a[:, half:], spare)[0]
            law.same(again, first, setting.tolerance, "without gradients: from a clone of the same state, y")
        for enabled in (True, False):
            with torch.set_grad_enabled(enabled):
                y, after = subject(a, subject.start(everyone))
                check_own_memory(law, y, {"x": a}, tree.leaves(after), subject.model)
        for enabled in (True, False):
            with torch.set_grad_enabled(enabled):
                _check_interleaved(law, subject, (a[:, :4], b[:, :4]), setting)


def _check_interleaved(law: Law, subject: Subject, streams: tuple[Tensor, Tensor], setting: Setting) -> None:
    everyone = torch.arange(ROWS)
    alone = []
    for x in streams:
        y, _ = in_pieces(subject, x, subject.start(everyone), [1] * x.shape[1])
        alone.append(y)
    states = [subject.start(everyone) for _ in streams]
    for t in range(streams[0].shape[1]):
        for stream, x in enumerate(streams):
            y, states[stream] = subject(x[:, t : t + 1], states[stream])
            wanted = alone[stream][:, t : t + 1]
            what = f"two interleaved streams disturb each other: at time {t} y"
            law.same(y, wanted, setting.tolerance, what, axes=("row",), stream=stream, time=t)


def check_causality(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """y[:, t] depends on x[:, :t+1] only, by perturbation and by gradient, from the start and in the middle."""
    everyone = torch.arange(ROWS)
    with Law(laws.CAUSALITY, str(setting)) as law:
        both = inputs.draw(ROWS, subject.length(2 * STEPS), setting.dtype)
        prefix, x = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
        starts = [subject.start(everyone), subject(prefix, subject.start(everyone))[1]]
        last = x.shape[1] - 1
        times = range(last + 1) if setting.thorough else sorted({0, last // 2})
        for state in starts:
            y, _ = subject(x, state)
            for t in sorted({0, last // 2, last - 1} & set(range(last))):
                for other in (inputs.garbage(x), inputs.draw(ROWS, x.shape[1], setting.dtype)):
                    changed = torch.cat([x[:, : t + 1], other[:, t + 1 :]], 1)
                    past = subject(changed, state)[0][:, : t + 1]
                    law.same(past, y[:, : t + 1], setting.tolerance, f"x changed after time {t} and so did y: it")
            with differentiable(subject.model, x) as (entry, leaves):
                y, _ = subject(entry, state)
            weights = inputs.weights(y)
            for t in times:
                for found in gradients(y[:, t], weights[:, t], leaves):
                    future = torch.zeros_like(found)
                    future[:, t + 1 :] = found[:, t + 1 :]
                    law.nothing(future, setting.leak, largest(found), f"d y[:, {t}] / d x")


def check_rows(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """Rows do not see each other, a row alone gives what it gives in a batch, and `state.take` reorders them."""
    everyone = torch.arange(ROWS)
    steps = subject.length(STEPS)
    half = steps // 2
    with Law(laws.ROWS, str(setting)) as law:
        x = inputs.draw(ROWS, steps, setting.dtype)
        garbage = inputs.garbage(x)
        with differentiable(subject.model, x) as (entry, leaves):
            y, _ = subject(entry, subject.start(everyone))
        weights = inputs.weights(y)
        for row in range(ROWS):
            others = everyone[everyone != row]
            changed = torch.where((everyone == row).view(-1, *[1] * (x.dim() - 1)).to(x.device), garbage, x)
            seen = subject(changed, subject.start(everyone))[0]
            law.same(seen[others], y[others], setting.tolerance, f"row {row} changed and so did another's y: it")
            for found in gradients(y[row], weights[row], leaves):
                law.nothing(found[others], setting.leak, largest(found), f"d y[{row}] / d x of another row")
            alone = subject(x[row : row + 1], subject.start(everyone[row : row + 1]))[0]
            law.same(alone[0], y[row], setting.tolerance, "a row alone: y", axes=("time",), row=row)
        _, state = subject(x[:, :half], subject.start(everyone))
        following, _ = subject(x[:, half:], state)
        for rows in ([2, 0, 1], [1, 1, 0, 2], [2]):
            order = torch.tensor(rows)
            again, _ = subject(x[order, half:], tree.take(state, order))
            law.same(again, following[order], setting.tolerance, f"after take(state, {rows}) y")
            again, _ = subject(x[order, half:], subject(x[order, :half], subject.start(order))[1])
            law.same(again, following[order], setting.tolerance, f"with rows {rows} of the batch y")
        _check_where(law, subject, x, half, setting)


def _check_where(law: Law, subject: Subject, x: Tensor, half: int, setting: Setting) -> None:
    """Rows that are a step apart live in one state, as `state.where` makes it; growing states have no such form."""
    _, old = subject(x[:, :half], subject.start(torch.arange(ROWS)))
    _, new = subject(x[:, half : half + 1], old)
    shapes = [[leaf.shape for leaf in tree.leaves(s)] for s in (old, new)]
    if old is None or shapes[0] != shapes[1] or half + 2 > x.shape[1]:
        return
    ahead = torch.arange(ROWS, device=x.device) % 2 == 0
    sooner, later = x[:, half : half + 1], x[:, half + 1 : half + 2]  # [B, 1, D]
    mixed = torch.where(ahead.view(-1, *[1] * (x.dim() - 1)), later, sooner)
    found, _ = subject(mixed, tree.where(ahead, new, old))
    wanted = tree.where(ahead, subject(later, new)[0], subject(sooner, old)[0])
    law.same(found, wanted, setting.tolerance, "with rows a step apart (state.where) y", axes=("row",))


def check_padding(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """What stands to the right of a row's last step changes nothing before it."""
    steps = subject.length(STEPS)
    everyone = torch.arange(ROWS)
    with Law(laws.PADDING, str(setting)) as law:
        x = inputs.draw(ROWS, steps, setting.dtype)
        lengths = [max(1, steps - 3 * row) for row in range(ROWS)]
        real = torch.arange(steps) < torch.tensor(lengths)[:, None]  # [B, T]
        padded = torch.where(real.view(ROWS, steps, *[1] * (x.dim() - 2)).to(x.device), x, inputs.garbage(x))
        y, _ = subject(padded, subject.start(everyone))
        for row, length in enumerate(lengths):
            alone, _ = subject(x[row : row + 1, :length], subject.start(everyone[row : row + 1]))
            what = f"a row of {length} steps padded to {steps}: y"
            law.same(y[row, :length], alone[0], setting.tolerance, what, axes=("time",), row=row)
