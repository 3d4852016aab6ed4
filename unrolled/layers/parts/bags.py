"""A model of bags: every instance is read by itself, and what is read is pooled.

    h_i = readout(body(embedding(x_i)))          each instance i of a bag, a sequence
    y   = head(pooling(h_1 .. h_I))              a readout over the instances, which have no order

Multiple-instance learning: Dietterich, Lathrop & Lozano-Pérez (1997); pooling by attention: Ilse et al. (2018); by a
Hopfield layer: Widrich et al. (2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Encoder
from unrolled.core.trace import silent
from unrolled.layers.attention.readout import Readout
from unrolled.layers.parts.assembled import Reader, depth

POSITIONS = 1 << 15  # of instances that are read together where there are no gradients


class BagReader(Encoder):
    """x [B, I, T] ids or [B, I, T, D] numbers with mask [B, I, T] -> one answer [B, 1, D'] for each bag.

    Without gradients instances are read some at a time, so that memory is bounded however many there are. What layers
    note is that of the pooling: its positions are the instances.
    """

    def __init__(
        self,
        embedding: nn.Module | None,
        body: Encoder | Causal,
        readout: nn.Module | None,
        pooling: Readout,
        head: nn.Module,
        *,
        before: Sequence[nn.Module] = (),
        behind: Sequence[nn.Module] = (),
    ) -> None:
        super().__init__()
        self.embedding, self.body, self.readout = embedding, body, readout
        self.pooling, self.head = pooling, head
        self.before, self.behind = nn.ModuleList(before), nn.ModuleList(behind)
        self.max_length = body.max_length

    def instance(self) -> Reader:
        """What reads one instance: x [n, T, ..] and its mask -> one vector [n, 1, D]."""
        parts = self.embedding, self.body, self.readout
        found = Reader(*parts, before=[*self.before], behind=[*self.behind])
        found.training = self.training
        return found

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        real = mask.any(2)  # [B, I]
        h = self._read(x[real], mask[real])  # [n, D]
        y = h.new_zeros(*real.shape, h.shape[1])  # [B, I, D]
        y[real] = h
        whole = self.pooling(y, real)  # [B, D']
        return self.head(whole).unsqueeze(1), real.new_ones(len(real), 1)

    def _read(self, x: Tensor, mask: Tensor) -> Tensor:
        """Instances [n, T, ..] as vectors [n, D]."""
        reader = self.instance()
        at_once = len(x) if torch.is_grad_enabled() else POSITIONS // max(x.shape[1], 1)
        with silent():
            found = [reader(*some)[0][:, 0] for some in zip(x.split(max(at_once, 1)), mask.split(max(at_once, 1)))]
        return torch.cat(found)

    def serial_steps(self, length: int) -> int:
        parts = (self.embedding, self.body, self.readout, self.pooling, self.head)
        return sum(depth(part, length) for part in parts if part is not None)
