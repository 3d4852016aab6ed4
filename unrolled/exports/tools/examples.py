"""Inputs like those of a run, in any number: for tracing its model, and for comparing an export with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.spec import Ports, SourcePorts
from unrolled.layers.parts.levels import InUnits


@dataclass
class Examples:
    """Random inputs of the form of `batch`, which is one of the run's own."""

    batch: Batch
    ports: Ports
    in_units: bool = False
    random: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    @property
    def of_tokens(self) -> bool:
        return not self.batch.x.is_floating_point()

    def input(self, rows: int, positions: int) -> Tensor:
        """x [B, T] or [B, T, ..]."""
        ports, x = self.ports, self.batch.x
        if not self.of_tokens:
            return self._numbers((rows, positions, *x.shape[2:])).to(x.dtype)
        if x.dim() == 2:
            return self._ids((rows, positions), ports.n_tokens)
        beside = ports.letters or ports.segments or ports.n_tokens
        first = self._ids((rows, positions, *x.shape[2:-1], 1), ports.n_tokens)
        return torch.cat([first, self._ids((rows, positions, *x.shape[2:-1], x.shape[-1] - 1), beside)], -1)

    def mask(self, rows: int, positions: int) -> Tensor:
        """Rows of different lengths, the first is full: [B, S]."""
        lengths = torch.randint(1, positions + 1, (rows, 1), generator=self.random)
        lengths[0] = positions
        return torch.arange(positions) < lengths

    def source(self, rows: int, positions: int) -> tuple[Tensor, Tensor | None]:
        """What a decoder is started with, and its mask."""
        if self.in_units:
            D = self.ports.forecast.d_step if self.ports.forecast else 1
            units = self._numbers((rows, 2, D))
            units[:, 1] = units[:, 1].abs() + 0.5
            return units, None
        if self.ports.n_classes:
            return self._ids((rows,), self.ports.n_classes), None
        if self.ports.condition is not None:
            return self._numbers((rows, positions, self.ports.condition.width)), None
        ports, mask = self.ports.source or SourcePorts(0), self.mask(rows, positions)
        if ports.d_in is None:
            return self._ids((rows, positions), ports.n_tokens), mask
        source = self.batch.source
        return self._numbers((rows, positions, *(source.shape[2:] if source is not None else (ports.d_in,)))), mask

    def _ids(self, shape: tuple[int, ...], n: int) -> Tensor:
        return torch.randint(0, max(n, 1), shape, generator=self.random)

    def _numbers(self, shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, generator=self.random)


def examples_of(run: Any) -> Examples:
    """Inputs like those of a run."""
    batch, _ = run.task.example(run.first_input())
    return Examples(batch, run.task.ports(), isinstance(run.model, InUnits))
