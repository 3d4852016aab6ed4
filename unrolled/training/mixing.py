"""Scheduled mixing: training on the model's own choices with some probability (Bengio et al. 2015)."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.state import State
from unrolled.decode.choose import Scheduled, draw
from unrolled.decode.rollout import rollout
from unrolled.runs.config import Optimiser


def truth_share(settings: Optimiser, step: int) -> float:
    """The probability that an input is the truth: e_i = max(e, 1 - (1 - e) i / n) at step i, n = teacher_steps.

    The linear decay of Bengio et al. (2015), section 2.4, from e_0 = 1 to e = teacher.

    >>> [truth_share(Optimiser(teacher=0.6, teacher_steps=4), step) for step in (0, 1, 4, 9)]
    [1.0, 0.9, 0.6, 0.6]
    """
    if step >= settings.teacher_steps:
        return settings.teacher
    return 1 - (1 - settings.teacher) * step / settings.teacher_steps


def mixed(decoder: Causal, x: Tensor, state: State, teacher: float, seed: int) -> tuple[Tensor, State]:
    """Outputs [B, T, V] of a rollout with gradients that is fed the truth x [B, T] with probability `teacher`.

    At teacher = 1 it equals `decoder(x, state)`; below, one tick at a time, for each input waits for a choice.
    """
    last: list[State] = [state]

    def step(tokens: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = decoder(tokens, state)
        last[0] = state
        return y, state

    n = x.shape[1]
    columns = rollout(step, state, x[:, :1], None, Scheduled(x, teacher, draw), (), max_steps=n, seed=seed)
    return torch.stack([column.y for column in columns], dim=1), last[0]  # [B, T, V]
