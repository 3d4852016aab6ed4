"""Rollout of frames: a model of independent bits runs on its own draws.

    v_k ~ Bernoulli(p_k),   p_k = sigmoid(z_k / temperature)           temperature 0: v_k = 1 where z_k > 0

Like `rollout`, it sees only a function, `step(frames [B, T, D], state) -> (logits [B, T, D], state)`, and values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.errors import DataError, UsageError
from unrolled.core.state import State
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import Step


class Frame(NamedTuple):
    """One tick of all rows."""

    bits: Tensor  # [B, D] zeros and ones
    log_p: Tensor  # [B] log-probability of these bits under the model as it is


def rollout_frames(
    step: Step, state: State, prompt: Tensor, temperature: float, max_steps: int, seed: int = 0
) -> Iterator[Frame]:
    """Yields `max_steps` frames that go on from the prompt [B, P, D] of at least one frame.

    The noise of a bit is a function of (seed, row, bit, how many frames stand before it): a row is drawn the same alone
    or in a batch, and goes on the same when what was drawn is given back as the prompt.
    """
    B, P, D = prompt.shape
    if P < 1 or max_steps < 1:
        raise UsageError(f"{P} frames to go on from and {max_steps} to draw are not possible: take at least 1 of each")
    noise = Noise(seed, torch.arange(B * D))
    y, state = step(prompt, state)
    for t in range(P, P + max_steps):
        z = y[:, -1].double()  # [B, D]
        if not bool(torch.isfinite(z).all()):
            raise DataError(f"the model's outputs are not finite after {t} frames: nothing can be drawn from them")
        p = torch.sigmoid(z / temperature) if temperature > 0 else (z > 0).double()
        bits = (noise(t).view(B, D).to(p) < p).to(prompt)
        yield Frame(bits, -F.softplus((1 - 2 * bits) * z).sum(-1))
        if t + 1 < P + max_steps:
            y, state = step(bits[:, None], state)
