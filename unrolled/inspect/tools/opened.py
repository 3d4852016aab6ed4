"""A model opened between its input layer and its body, so that gradients can reach what went in."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from unrolled.core.causal import Causal, Encoder, begin, decoder_of
from unrolled.core.compose import AsEncoder, Delayed, Each, Ending, Read, Serial, SerialEncoder
from unrolled.core.errors import UsageError
from unrolled.core.state import State, detach
from unrolled.core.task import Batch, Model

CLOSED = "this model counts tokens and has no vectors inside, so there are no gradients to follow"


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
    if not isinstance(model, Encoder):
        return decoder_of(model).max_length
    limits: list[Any] = [getattr(module, "max_length", None) for module in model.modules()]
    found = [limit for limit in limits if limit is not None]
    return min(found, default=None)


def by_position(model: Model) -> Model:
    """The model up to where it answers at each position: of one that answers once, what its readout reads.

    A layer that gives its last output alone (`Ending`) is asked for all of them, one that waits (`Delayed`) for what it
    says at once.
    """
    if isinstance(model, Delayed):
        return SerialEncoder(*model.layers).train(model.training)
    if not isinstance(model, Read):
        return model
    body = model.body
    if not isinstance(body, SerialEncoder) or not any(isinstance(layer, Ending) for layer in body.layers):
        return body
    layers: list[Any] = [
        AsEncoder(cast(Causal, layer.causal)) if isinstance(layer, Ending) else layer for layer in body.layers
    ]
    return SerialEncoder(*layers).train(body.training)


def answers_by_position(model: Model, look: Tensor) -> bool:
    """Whether what `by_position` gives has as many outputs as there are positions; asked with an input [1, T, ..]."""
    if not isinstance(model, Encoder):
        return True
    x = torch.cat([look, look], dim=1)[:, :2]  # [1, 2, ..]: of one position nothing could be told
    with torch.no_grad():
        return start(by_position(model))[0](x)[0].shape[1] == 2


def why_closed(model: Model, reads_vectors: bool) -> str | None:
    """Why a model cannot be opened; None: it can. A model of tokens must begin with a layer that makes vectors."""
    if isinstance(model, Encoder):
        front = by_position(model)
        begins = isinstance(front, SerialEncoder) and isinstance(front.layers[0], AsEncoder)
    else:
        decoder = decoder_of(model)
        begins = isinstance(decoder, Serial) and isinstance(next(iter(decoder)), Each)
    return None if reads_vectors or begins else CLOSED


def open_model(model: Model, batch: Batch) -> Opened:
    """Split a model behind its input layer; one that reads vectors is taken whole, for they are what went in."""
    decoder, state = start(model, batch.source, batch.source_mask)
    state = None if state is None else detach(state)
    if batch.x.is_floating_point():
        return Opened(batch.x.detach().to(_dtype(model), copy=True).requires_grad_(), decoder, state)
    if why_closed(model, reads_vectors=False) is not None:
        raise UsageError(CLOSED)
    if isinstance(model, Encoder):
        return _open_encoder(model, batch.x)
    assert isinstance(decoder, Serial)
    entry, *rest = decoder
    vectors = entry(batch.x)[0].detach().clone().requires_grad_()  # [1, T, D]
    return Opened(vectors, Serial(*rest), None if state is None else state[1:])


def _open_encoder(model: Encoder, x: Tensor) -> Opened:
    front = by_position(model)
    assert isinstance(front, SerialEncoder)
    entry, *rest = front.layers
    vectors = Whole(entry)(x)[0].detach().clone().requires_grad_()  # type: ignore[arg-type]  # [1, T, D]
    behind: Encoder = SerialEncoder(*rest)
    if isinstance(model, Read):
        behind = Read(behind, model.readout, model.head)
    return Opened(vectors, Whole(behind), None)


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
