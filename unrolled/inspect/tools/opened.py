"""A model opened between its input layer and its body, so that gradients can reach what went in."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.causal import Causal, Conditional, Encoder, begin, decoder_of
from unrolled.core.errors import UsageError
from unrolled.core.state import State, detach
from unrolled.core.task import Model
from unrolled.layers.parts.assembled import Decoder, Reader, read

CLOSED = "this model counts tokens and has no vectors inside, so it has no gradients"


class Opened(NamedTuple):
    """y, state = body(vectors, state) is what the whole model computes from the batch."""

    vectors: Tensor  # [1, T, D] what the input layer made of x; a leaf that asks for gradients
    body: Causal  # everything behind the input layer
    state: State  # before the first position


class Whole(Causal):
    """An encoder where a causal layer is asked: all positions that it is given are real, and no state is carried on."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.max_length = longest(encoder)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return self.encoder(x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device))[0], ()


class OverSource(Encoder):
    """A conditional model as a function of its source: what it outputs after one input x [1, 1, D]."""

    first: Tensor

    def __init__(self, model: Conditional, first: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("first", first)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        state = self.model.condition(x, mask)
        y, _ = self.model.decoder(self.first.expand(len(x), -1, -1), state)
        return y, mask[:, :1]


def start(model: Model, source: Any = None, mask: Tensor | None = None) -> tuple[Causal, State]:
    """What reads the input and the state it starts from, whatever kind of model it is.

    A source of numbers is brought to the model's own dtype: models that are looked into are copies in float64.
    """
    if isinstance(model, Encoder):
        return Whole(model), None
    weight = next(model.parameters(), None)
    if weight is not None and isinstance(source, Tensor) and source.is_floating_point():
        source = source.to(weight.dtype)
    return begin(model, source, mask)


def longest(model: Model) -> int | None:
    """The most positions that a model can read; None: any number."""
    return decoder_of(model).max_length


def by_position(model: Model) -> Model:
    """The model up to where it answers at each position: of one that answers once, what its readout reads."""
    return model.by_position() if isinstance(model, Reader) else model


def answers_by_position(model: Model, look: Tensor) -> bool:
    """Whether what `by_position` gives has as many outputs as there are positions; asked with an input [1, T, ..]."""
    if not isinstance(model, Encoder):
        return True
    x = torch.cat([look, look], dim=1)[:, :2]  # [1, 2, ..]: of one position nothing could be told
    with torch.no_grad():
        return start(by_position(model))[0](x)[0].shape[1] == 2


def why_closed(model: Model, reads_vectors: bool) -> str | None:
    """Why a model cannot be opened; None: it can. A model of tokens must begin with a layer that makes vectors."""
    half = decoder_of(model)
    embedding = half.embedding if isinstance(half, Decoder | Reader) else None
    begins = embedding is not None and not isinstance(embedding, Encoder)
    return None if reads_vectors or begins else CLOSED


def open_model(model: Model, batch: Batch) -> Opened:
    """Split a model behind its input layer; one that reads vectors is taken whole, because they are what went in."""
    decoder, state = start(model, batch.source, batch.source_mask)
    state = None if state is None else detach(state)
    if batch.x.is_floating_point():
        return Opened(batch.x.detach().to(_dtype(model), copy=True).requires_grad_(), decoder, state)
    if why_closed(model, reads_vectors=False) is not None:
        raise UsageError(CLOSED)
    half = model if isinstance(model, Reader) else decoder
    assert isinstance(half, Decoder | Reader)
    assert half.embedding is not None
    all_real = torch.ones(batch.x.shape[:2], dtype=torch.bool, device=batch.x.device)
    vectors = read(half.embedding, batch.x, all_real)[0].detach().clone().requires_grad_()  # [1, T, D]
    rest = half.behind_embedding()
    return Opened(vectors, Whole(rest) if isinstance(rest, Encoder) else rest, state)


def precise(model: Model) -> Any:
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
