"""A model opened between its input layer and its body, so that gradients can reach what went in."""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.compose import Each, Serial
from unrolled.core.errors import UsageError
from unrolled.core.state import State, detach
from unrolled.core.task import Batch

CLOSED = "this model counts tokens and has no vectors inside, so there are no gradients to follow"


class Opened(NamedTuple):
    """y, state = body(vectors, state) is what the whole model computes from the batch."""

    vectors: Tensor  # [1, T, D] what the input layer made of x; a leaf that asks for gradients
    body: Causal  # everything behind the input layer
    state: State  # before the first position


def why_closed(model: Causal | Conditional, reads_vectors: bool) -> str | None:
    """Why a model cannot be opened; None: it can. A model of tokens must begin with a layer that makes vectors."""
    decoder = model.decoder if isinstance(model, Conditional) else model
    begins = isinstance(decoder, Serial) and isinstance(next(iter(decoder)), Each)
    return None if reads_vectors or begins else CLOSED


def open_model(model: Causal | Conditional, batch: Batch) -> Opened:
    """Split a model behind its input layer; one that reads vectors is taken whole, for they are what went in."""
    decoder, state = begin(model, batch.source)
    state = None if state is None else detach(state)
    if batch.x.is_floating_point():
        return Opened(batch.x.detach().to(_dtype(model), copy=True).requires_grad_(), decoder, state)
    if why_closed(model, reads_vectors=False) is not None:
        raise UsageError(CLOSED)
    assert isinstance(decoder, Serial)
    entry, *rest = decoder
    vectors = entry(batch.x)[0].detach().clone().requires_grad_()  # [1, T, D]
    return Opened(vectors, Serial(*rest), None if state is None else state[1:])


def precise(model: Causal | Conditional) -> Causal | Conditional:
    """A copy in double precision, dropout off: what becomes tiny over hundreds of ticks does not become zero.

    Its weights ask for no gradients, so an output has one exactly where it depends on what went in.
    """
    return copy.deepcopy(model).cpu().double().eval().requires_grad_(False)


def flows(opened: Opened) -> bool:
    """True when outputs of a `precise` model have gradients with respect to inputs."""
    return bool(opened.body(opened.vectors[:, :1], opened.state)[0].requires_grad)


def _dtype(model: torch.nn.Module) -> torch.dtype:
    """The type that a model computes in."""
    held = [*model.parameters(), *model.buffers()]
    return next((tensor.dtype for tensor in held if tensor.is_floating_point()), torch.float32)
