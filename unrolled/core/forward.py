"""A model and a batch: the one way from any kind of model to its outputs, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor, nn

from unrolled.core.batch import Batch
from unrolled.core.causal import Causal, Conditional, Encoder, Selective, begin, decoder_of
from unrolled.core.compose import pick
from unrolled.core.sharing import own_rows
from unrolled.core.state import State, clone
from unrolled.core.stopping import require_wanted
from unrolled.core.task import Model

Piece = TypeVar("Piece")


def device_of(model: nn.Module) -> torch.device:
    """Where a model is: the device of its first parameter or, where it has none, buffer; without both, the CPU."""
    tensor = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if tensor is None else tensor.device


@contextmanager
def evaluating(model: nn.Module) -> Iterator[torch.device]:
    """A block in which a model is in evaluation mode and nothing has gradients; gives the device of the model.

    Afterwards, also after an exception, every module is again in the mode it was in: those of a model in training, and
    those of it that rest. A generator must not yield inside the block, or its caller would continue without gradients.

    >>> model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())
    >>> with evaluating(model) as device:
    ...     print(device, model.training)
    cpu False
    >>> model.training, [module.training for module in model]
    (True, [True, False])
    """
    with _evaluation([*model.modules()]):
        yield device_of(model)


@contextmanager
def _evaluation(modules: Sequence[nn.Module]) -> Iterator[None]:
    """The block of `evaluating` for all modules of a model, itself first."""
    before = [module.training for module in modules]
    if any(before):
        modules[0].eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if any(before):
            modules[0].train(before[0])
            for module, mode in zip(modules, before, strict=True):
                module.training = mode


def carries(model: Model, windows: str = "auto") -> bool:
    """Whether the state after a batch of a stream is where the next one starts.

    `windows` "carried" says so and any other word does not, but for "auto", where the model decides: its state must not
    grow with every batch. Otherwise a stream is read in windows, each from the initial state. An encoder has no state.
    """
    if windows != "auto":
        return windows == "carried"
    decoder = decoder_of(model)
    return isinstance(decoder, Causal) and not decoder.state_grows


def start(model: Causal | Conditional, batch: Batch, state: State = None) -> tuple[Causal, State]:
    """The causal half of a model and the state from which it reads a batch.

    That is `state` where there is one and the batch continues the one before, otherwise what the source makes.
    """
    if batch.fresh or state is None:
        return begin(model, batch.source, batch.source_mask)
    return decoder_of(model), state


def forward(model: Model, batch: Batch, state: State = None) -> tuple[Tensor, State]:
    """Outputs y [B, T, D'] of a model of any kind, and the state that the next batch continues from.

    Of a causal model they are those at the positions `batch.at` [B, K], if it says some: y [B, K, D'].
    An encoder gives y [B, S', D'], or those at `batch.at` too, and no state; without a mask all positions are real. The
    state is the one after the first `batch.keep` positions, where that is fewer than all.
    """
    x = batch.x
    if isinstance(model, Encoder):
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if batch.mask is None else batch.mask
        if batch.at is not None:
            chosen = (
                model.at(x, batch.at, mask)[0] if isinstance(model, Selective) else pick(model(x, mask)[0], batch.at)
            )
            return chosen, None
        return model(x, mask)[0], None
    decoder, state = start(model, batch, state)
    if batch.at is not None:
        if isinstance(decoder, Selective):
            return decoder.at(x, batch.at, state)
        y, state = decoder(x, state)
        return pick(y, batch.at), state
    if batch.keep is None or batch.keep >= x.shape[1]:
        return decoder(x, state)
    y, kept = decoder(x[:, : batch.keep], state)
    rest, _ = decoder(x[:, batch.keep :], clone(kept))  # a call may work in the memory of the state it is given
    return torch.cat([y, rest], dim=1), kept


def outputs(model: Model, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Tensor]]:
    """Each batch, on the device of the model, with its outputs as in `forward`, without dropout and gradients.

    The state is carried on wherever a batch asks for it. Between batches the model is in the mode it was in. Where
    processes share the work (core/sharing.py), each has its own rows of every batch.
    """
    state: State = None
    for batch in batches:
        require_wanted()
        if (own := own_rows(batch)) is None:
            continue
        with evaluating(model) as device:
            there = own.to(device)
            y, state = forward(model, there, state)
        yield there, y


def evaluated(model: nn.Module, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """What a model makes piece by piece, each piece of it while the model is evaluating, as in `outputs`."""
    modules = [*model.modules()]
    while True:
        with _evaluation(modules):
            try:
                piece = next(pieces)
            except StopIteration:
                return
        yield piece
