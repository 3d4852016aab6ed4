"""A target that was seen in training, written again for a source that is like its own.

    p(y_t | source) = (1 - e) [y_t = r_t] + e u(y_t)        r: the recalled target, <stop> after its end

u is how often a token is a target, e the share of targets that are not so explained; both are counted. e is one half at
most, so that the recalled target is what is written.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Conditional
from unrolled.core.state import State
from unrolled.layers.counting.lexicon import Seen, WordByWord
from unrolled.layers.memory.saved_tables import Tables


class Beside(NamedTuple):
    """Targets beside those that would have been written, as `WordByWord` counts them."""

    source: NDArray[np.int32]
    source_offsets: NDArray[np.int64]
    target: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    same: NDArray[np.int64]


def targets_of(data: Seen, chosen: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    return [data.target[data.target_offsets[i] : data.target_offsets[i + 1]] for i in chosen]


def _offsets(parts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, parts)]).astype(np.int64)


class Recalled(Tables, WordByWord):
    """Keeps targets; a subclass says which of them is written for a source."""

    TABLES: ClassVar[tuple[str, ...]] = ("targets",)
    targets: Tensor  # [n, L], d_out behind the end of each

    def __init__(self, d_out: int) -> None:
        super().__init__(d_out, d_out, kept=1)
        self.register_buffer("targets", torch.full((1, 1), d_out))

    def choose(self, source: Tensor, mask: Tensor) -> Tensor:
        """The number [B] of the target for each source [B, S, D]."""
        raise NotImplementedError

    def fault(self, tables: dict[str, Tensor]) -> str:
        targets = tables["targets"]
        fits = targets.dim() == 2 and len(targets) > 0 and targets.dtype == torch.long
        fits = fits and bool(((targets >= 0) & (targets <= self.d_out)).all())
        return "" if fits else "its stored targets are not valid"

    def start(self, source: Tensor, mask: Tensor | None = None) -> State:
        if mask is None:
            mask = torch.ones(source.shape[:2], dtype=torch.bool, device=source.device)
        return super().start(self.targets[self.choose(source, mask)])

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            state = super().start(self.targets[:1].expand(len(x), -1))
        return super().forward(x, state)

    def recall(self, kept: list[NDArray[np.int32]], data: Seen, tried: NDArray[np.int64], said: Tensor) -> None:
        """Keep targets, and count u and e where `said` [n] of them would be written for the examples `tried` [n]."""
        table = torch.full((len(kept), max(map(len, kept))), self.d_out)
        for row, target in zip(table, kept):
            row[: len(target)] = torch.from_numpy(target.astype(np.int64))
        self.keep({"targets": table})
        written, true = [kept[int(i)] for i in said], targets_of(data, tried)
        same = np.arange(self.d_out)
        beside = Beside(np.concatenate(written), _offsets(written), np.concatenate(true), _offsets(true), same)
        self.fill(torch.from_numpy(same)[:, None], torch.ones(self.d_out, 1), beside)
        self.e.clamp_(max=0.5)


class Recalling(Conditional):
    """The conditional model of such a layer."""

    def __init__(self, decoder: Recalled) -> None:
        super().__init__()
        self.decoder: Recalled = decoder
        self.d_out = decoder.d_out

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        return self.decoder.start(source, mask)
