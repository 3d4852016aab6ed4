"""What no weight fits is refused: an x of another width, a state of another batch. No rows at all are fine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.testing import law as laws
from unrolled.testing.law import Law
from unrolled.testing.subject import ROWS, STEPS, Inputs, Setting, Subject, own_input


def other_widths(layer: nn.Module, inputs: Inputs) -> list[int]:
    """Widths that a layer which tells its own cannot take; none for tokens."""
    width, _ = own_input(layer)
    return [] if width is None or inputs.tokens else sorted({1, width - 1, width + 1} - {0, width})


def refuses(law: Law, call: Callable[[], Any], sentence: str) -> None:
    """Any exception will do; a result will not."""
    try:
        call()
    except Exception:
        return
    raise law.broken(sentence)


def ways(steps: int) -> Iterator[tuple[int, int, Any]]:
    """Rows, steps and whether gradients are on: layers have ways of their own for some of these."""
    for rows, T, without in itertools.product((1, ROWS), (1, steps), (nullcontext, torch.no_grad)):
        yield rows, T, without()


def check_sizes(subject: Subject, inputs: Inputs, setting: Setting) -> None:
    """An x of another width and a state of another batch are refused; B = 0 gives y [0, T, ...]."""
    with Law(laws.FORM, str(setting)) as law:
        for rows, T, mode in ways(subject.length(STEPS)):
            with mode:
                _check_other_width(law, subject, inputs, setting, rows, T)
                _check_other_rows(law, subject, inputs, setting, rows, T)
        _check_no_rows(law, subject, inputs, setting)


def _check_other_width(law: Law, subject: Subject, inputs: Inputs, setting: Setting, rows: int, T: int) -> None:
    everyone = torch.arange(rows)
    for width in other_widths(subject.causal, inputs):
        wide = torch.zeros(rows, T, width, dtype=setting.dtype, device=inputs.device)
        starts = [subject.start(everyone), subject(inputs.draw(rows, 1, setting.dtype), subject.start(everyone))[1]]
        for start in starts if subject.length(T + 1) == T + 1 else starts[:1]:
            what = f"the layer tells an input width of {own_input(subject.causal)[0]}, but takes an x of width {width}"
            refuses(law, lambda x=wide, start=start: subject(x, start), what)  # type: ignore[misc]


def _check_other_rows(law: Law, subject: Subject, inputs: Inputs, setting: Setting, rows: int, T: int) -> None:
    if subject.length(T + 1) < T + 1:
        return
    x = inputs.draw(rows, T, setting.dtype)
    for others in {1, 2, ROWS} - {rows}:
        _, state = subject(inputs.draw(others, 1, setting.dtype), subject.start(torch.arange(others)))
        if any(True for _ in tree.leaves(state)):
            what = f"a state of {others} rows is taken for an x of {rows} rows"
            refuses(law, lambda x=x, state=state: subject(x, state), what)  # type: ignore[misc]


def _check_no_rows(law: Law, subject: Subject, inputs: Inputs, setting: Setting) -> None:
    steps = subject.length(STEPS)
    nobody = torch.arange(0)
    x = inputs.draw(1, steps, setting.dtype)
    wanted: Tensor = subject(x, subject.start(torch.arange(1)))[0]
    state = subject.start(nobody)
    for piece in (x[:0, : steps - 1], x[:0, steps - 1 :]):
        y, state = subject(piece, state)
        shape = [0, piece.shape[1], *wanted.shape[2:]]
        law.holds(list(y.shape) == shape, f"for B = 0 y has the shape {list(y.shape)} instead of {shape}")
        law.holds(y.dtype == wanted.dtype, f"for B = 0 y is {y.dtype}, otherwise {wanted.dtype}")
        law.holds(all(len(leaf) == 0 for leaf in tree.leaves(state)), "for B = 0 the state has rows")
