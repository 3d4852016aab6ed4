"""A model opened between its input layer and its body, so that gradients can reach what went in."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.core.task import Batch


class Opened(NamedTuple):
    """y, state = body(vectors, state) is what the whole model computes from the batch."""

    vectors: Tensor  # [1, T, D] what the input layer made of x; a leaf that asks for gradients
    body: Causal  # everything behind the input layer
    state: State  # before the first position


def open_model(model: Causal | Conditional, batch: Batch) -> Opened:
    """Split a model behind its input layer; one that reads vectors as they are is taken whole."""
    decoder, state = begin(model, batch.source)
    if batch.x.is_floating_point() and not isinstance(decoder, Serial):
        return Opened(batch.x.detach().clone().requires_grad_(), decoder, state)
    if not isinstance(decoder, Serial):
        raise UsageError("this model counts tokens and has no vectors inside, so there are no gradients to follow")
    entry, *rest = decoder
    vectors = entry(batch.x)[0].detach().clone().requires_grad_()  # [1, T, D]
    return Opened(vectors, Serial(*rest), None if state is None else state[1:])
