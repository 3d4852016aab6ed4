"""Paths: a model of the next step runs on its own draws, so that the steps of a path belong together.

The values of a window are the prompt of a rollout; what is known beside them, also of the future, runs along as a
source (layers/parts/conditioning.Appended).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.compose import Serial
from unrolled.core.emission import Chooser, Distribution, Numeric
from unrolled.core.forward import evaluating
from unrolled.core.state import State
from unrolled.data.time_series.windows import Cutter, Spots
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of
from unrolled.engine.stepper import stepped
from unrolled.layers.parts.conditioning import Appended


class Certain:
    """Outputs that are the numbers themselves: the one path that there is."""

    n_noise = 1

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return y.new_zeros(len(y))


def _certainly(y: Tensor, history: Tensor, noise: Tensor) -> Tensor:  # noqa: ARG001
    return y.to(history.dtype)


def paths(
    model: Causal | Conditional,
    cutter: Cutter,
    spots: Spots,
    horizon: int,
    emission: Numeric,
    n: int,
    rows: Any,
    seed: int = 0,
) -> Tensor:
    """n paths [B, n, H D] of encoded values from each spot; `rows` [B] are the numbers that their noise is drawn by."""
    D = cutter.codec.d_step
    window = cutter.batch(spots)
    # behind an encoder the decoder reads the last step alone
    batch = cutter.batch(spots, length=1) if isinstance(model, Conditional) else window
    assert batch.mask is not None
    lengths = batch.mask.sum(1)  # [B]
    beside = torch.zeros(len(spots), batch.x.shape[1] + horizon, batch.x.shape[2] - D)
    for b, (i, end, read) in enumerate(zip(spots.series.tolist(), spots.ends.tolist(), lengths.tolist())):
        beside[b, :read] = batch.x[b, :read, D:]
        beside[b, read : read + horizon] = torch.from_numpy(cutter.future(i, end, horizon))[:, D:]
    with evaluating(model) as device:
        begun = begin(model, window.x.to(device), None if window.mask is None else window.mask.to(device))
        start = batch.x[:, :, :D].to(device)
        return drawn_from(begun, start, lengths, beside.to(device), emission, n, torch.as_tensor(rows), seed)


def drawn_from(
    begun: tuple[Causal, State],
    start: Tensor,
    lengths: Tensor,
    beside: Tensor,
    emission: Numeric,
    n: int,
    rows: Tensor,
    seed: int = 0,
) -> Tensor:
    """n paths [B, n, H D] of a layer and its state that continue the values start [B, P, D], of which each row has
    its number `lengths` [B]; beside [B, P + H, .] is what stands beside the values, also of the steps to come."""
    layer, inner = begun
    choose: Chooser = _certainly
    of: Any = Certain()
    if isinstance(emission, Distribution):
        choose, of = emission.chooser(Decoding(temperature=1.0)), emission
    along, horizon = Appended(beside.shape[2]), beside.shape[1] - start.shape[1]
    along.d_in = start.shape[2]
    state = (along.start(beside), inner)
    found = best_of(n, stepped(Serial(along, layer)), state, start, lengths, choose, (), horizon, rows, seed, of)
    drawn = np.array([[path.tokens for path in row] for row in found], np.float32)  # [B, n, H, D]
    return torch.from_numpy(drawn.reshape(len(start), n, -1))
