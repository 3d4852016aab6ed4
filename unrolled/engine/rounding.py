"""The weights of a decoder rounded in place, so that its program keeps them in fewer bits."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from unrolled.engine.builder import CannotLower
from unrolled.engine.forms import held, rounded
from unrolled.engine.operations import Form
from unrolled.engine.program import operations_of


class Kept(NamedTuple):
    """Numbers of the matrices by which a tick multiplies."""

    in_form: int  # in the form that was asked for, or in a smaller one
    in_all: int  # others are computed from several parameters, and stay as they are


def round_weights(decoder: nn.Module, form: Form) -> Kept:
    """Let the matrices by which a tick of a decoder multiplies be the nearest that a form holds exactly; `CannotLower`
    where there are none such.

    Tables that are looked up, biases and what is read once a tick stay as they are; a table that is a matrix too (a
    tied head) is rounded.
    """
    into, _ = operations_of(decoder)
    if into.dtype != torch.float32:
        raise CannotLower(f"weights of type {into.dtype}, of which only float32 is rounded")
    matrices = [weight for weight in into.weights if weight.is_matrix]
    if not any(weight.own is not None for weight in matrices):
        raise CannotLower("there is no matrix among the weights that a tick reads")
    with torch.no_grad():
        for weight in matrices:
            if weight.own is not None:
                weight.own.copy_(rounded(weight.own, form))
        now = [held(weight.make().detach().contiguous()) for weight in matrices]
    return Kept(sum(m.numbers.numel() for m in now if m.form != Form.FULL), sum(m.numbers.numel() for m in now))
