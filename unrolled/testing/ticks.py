"""The laws where they are used most: generation, one row and one step at a time, without gradients.

Many layers have a way of their own for that, so it is compared with the whole chunk, and held to what a value is: a
call writes into nothing but the state it was given, and into that only where no graph needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.state import Fixed, State
from unrolled.testing import law as laws
from unrolled.testing.law import Law, largest
from unrolled.testing.subject import ROWS, STEPS, Inputs, Setting, Subject, gradients

WITHOUT = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}


def fixed_leaves(state: State) -> Iterator[Tensor]:
    """The tensors inside Fixed."""
    if isinstance(state, Fixed):
        yield from tree.leaves(state)
    elif isinstance(state, dict | tuple):
        for part in state.values() if isinstance(state, dict) else state:
            yield from fixed_leaves(part)


def check_ticks(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """One row, one step, no gradients: the y of the whole chunk, from the start and behind a chunk with gradients."""
    steps = subject.length(STEPS)
    x = inputs.draw(1, steps, setting.dtype)
    whole = subject(x, subject.start(torch.arange(1)))[0].detach().clone()
    for name, without in WITHOUT.items():
        for begin in (0, steps // 2):
            where = f"one row, one step, {name}, {setting}"
            with Law(laws.CHUNKS, where) as law:
                state = subject.start(torch.arange(1))
                if begin:
                    _, state = subject(x[:, :begin], state)
                with without():
                    for t in range(begin, steps):
                        y, state = _watched(Law(laws.STATE, where), subject, x[:, t : t + 1].clone(), state)
                        law.same(y, whole[:, t : t + 1], setting.tolerance, f"at time {t} y", ("row",), time=t)


def _watched(law: Law, subject: Subject, x: Tensor, state: State) -> tuple[Tensor, State]:
    """A call that may write into the state and into nothing else; its state has no history."""
    entry, given = x.clone(), [leaf.clone() for leaf in fixed_leaves(state)]
    y, after = subject(x, state)
    law.same(x, entry, 0.0, "without gradients the layer wrote into its input: x")
    for leaf, old in zip(fixed_leaves(state), given, strict=True):
        law.same(leaf, old, 0.0, "without gradients a call overwrote a Fixed leaf; it", axes=("row",))
    for leaf in tree.leaves(after):
        law.holds(not leaf.requires_grad, "without gradients the state that is returned belongs to a graph")
    kept = y.clone()
    check_own_memory(law, y, {"x": x}, tree.leaves(after), subject.model)
    return kept, after


def check_own_memory(law: Law, y: Tensor, named: dict[str, Tensor], state: Iterable[Tensor], model: nn.Module) -> None:
    """Who writes into y changes neither x, nor the state, nor a parameter; y is spoilt."""
    if y.numel() == 0 or 0 in y.stride():  # nothing to write, or nowhere: torch refuses it
        return
    everything = [*named.items(), *((f"leaf {i} of the state", leaf) for i, leaf in enumerate(state))]
    everything += [*model.named_parameters(), *model.named_buffers()]
    near = [(name, tensor) for name, tensor in everything if _one_memory(tensor, y)]
    before = [tensor.detach().clone() for _, tensor in near]
    y.detach().add_(1)
    for (name, tensor), old in zip(near, before, strict=True):
        law.same(tensor, old, 0.0, f"y shares its memory with {name}: who writes into y changes it; it", axes=())


def _one_memory(a: Tensor, b: Tensor) -> bool:
    """Whether the memory that a is part of overlaps with that of b."""
    (first, n), (second, m) = ((s.data_ptr(), s.nbytes()) for s in (a.untyped_storage(), b.untyped_storage()))
    return first < second + m and second < first + n


def check_graph(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """A tick without gradients between chunks with them: it has no history, and leaves the history it meets alone."""
    steps = subject.length(STEPS)
    if steps < 3:
        return
    for rows in (1, ROWS):
        with Law(laws.STATE, f"rows: {rows}, {setting}") as law:
            x = inputs.draw(rows, steps, setting.dtype)
            weights = inputs.weights(subject(x, subject.start(torch.arange(rows)))[0])
            wanted = _between(law, subject, x, weights, by_clone=True)
            found = _between(law, subject, x, weights, by_clone=False)
            scale = max((largest(value) for name, value in wanted.items() if name != "y"), default=0.0)
            for name, value in wanted.items():
                what = f"with a tick without gradients between two chunks {'' if name == 'y' else 'the gradient of '}"
                size = None if name == "y" else scale
                law.same(found[name], value, setting.tolerance, what + name, (), size, parameter=name)


def _between(law: Law, subject: Subject, x: Tensor, weights: Tensor, by_clone: bool) -> dict[str, Tensor]:
    """y and gradients of chunk, tick, chunk; by clones whatever could be written into is a copy."""
    half = x.shape[1] // 2
    entry = x.clone().requires_grad_(x.is_floating_point())
    first, state = subject(entry[:, :half], subject.start(torch.arange(len(x))))
    other, _ = subject(entry[:, half:], state if not by_clone else tree.clone(state))  # what it saved must stay, too
    held = [(leaf, leaf.detach().clone()) for leaf in tree.leaves(state) if leaf.requires_grad]
    with torch.no_grad():
        if not by_clone:
            subject(x[:, half : half + 1], tree.detach(state))  # a history that was cut, and is still to be gone back
        _, after = subject(x[:, half : half + 1], tree.detach(state) if by_clone else state)
    for leaf, old in held:
        law.same(leaf, old, 0.0, "without gradients a state with a history was overwritten; it", axes=("row",))
    for leaf in tree.leaves(after):
        law.holds(not leaf.requires_grad, "without gradients the state that is returned belongs to a graph")
    rest, _ = subject(entry[:, half + 1 :], after)
    y = torch.cat([first, other[:, :1], rest], 1)
    leaves = {"x": entry} if entry.requires_grad else {}
    leaves |= subject.parameters()
    return {"y": y.detach(), **dict(zip(leaves, gradients(y, weights, list(leaves.values()))))}
