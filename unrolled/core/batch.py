"""A batch: what a model reads in one step, and what is to be predicted from it; the same for every task.

    x [B, T] ids, [B, T, n] ids side by side (a token, its segment, its letters), or [B, T, D] numbers
    bags x [B, I, T] or [B, I, T, D] with their mask [B, I, T]

Targets and sources have names; the first of each is the main one, and tasks that have no other read it as `y` and
`source`. Further sources are what is known beside x, such as covariates, also of the future. Padding is on the right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unrolled.core.tokens import EMPTY

TARGET, SOURCE = "target", "source"  # the names where there is one of each

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Batch:
    """Rows with their targets."""

    x: Tensor
    mask: Tensor | None = None
    """[B, T] True where x is real; None: everywhere"""
    targets: Tensors = field(default_factory=dict)
    """[B, T] long, EMPTY where nothing is to be predicted; [B, T, D]; of the whole: [B] long, [B, C]"""
    target_masks: Tensors = field(default_factory=dict)
    """by the target's name, in its shape or [B, T]: False where it is missing or padding; without one, `mask`"""
    sources: Tensors = field(default_factory=dict)
    """[B] long: the class that each row starts from; or what each row is made from, [B, S] long or [B, S, D]"""
    source_masks: Tensors = field(default_factory=dict)
    """[B, S] by the source's name, True where it is real; without one, everywhere"""
    scale: Tensor | None = None
    """[B, ...] by which each row was divided, where that is its own"""
    rows: Tensor | None = None
    """[B] long: which of the examples these are"""
    places: Tensor | None = None
    """[B] long: where in a stream x[:, 0] stands"""
    at: Tensor | None = None
    """[B, K] long: the positions of x that targets and outputs belong to; None: all"""
    fresh: bool = True
    """True: from the initial state; False: from the state that the batch before left"""
    keep: int | None = None
    """the state to carry on is the one after the first `keep` positions; None: after all"""

    @property
    def y(self) -> Tensor:
        """The main target."""
        return self.targets[self._main]

    @property
    def y_mask(self) -> Tensor | None:
        """Where the main target is real; None: ids, where EMPTY says it."""
        return self.target_masks.get(self._main, self.mask)

    @property
    def _main(self) -> str:
        return next(iter(self.targets), TARGET)

    @property
    def source(self) -> Tensor | None:
        """The main source; None: there is none."""
        return next(iter(self.sources.values()), None)

    @property
    def source_mask(self) -> Tensor | None:
        return self.source_masks.get(next(iter(self.sources), ""))

    @property
    def real(self) -> Tensor:
        """[B, T] True where something is to be predicted."""
        mask = self.y_mask
        return self.y != EMPTY if mask is None else mask

    @property
    def n_targets(self) -> int:
        return int(self.real.sum())

    @property
    def instances(self) -> Tensor:
        """[B, I] True where a bag has an instance.

        >>> Batch(torch.zeros(1, 2, 3), torch.tensor([[[True, True, False], [False, False, False]]])).instances
        tensor([[ True, False]])
        """
        assert self.mask is not None
        return self.mask.any(2)

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """With every tensor changed."""
        values = vars(self)
        tensors = {name: change(value) for name, value in values.items() if isinstance(value, Tensor)}
        named = {
            name: {key: change(tensor) for key, tensor in value.items()}
            for name, value in values.items()
            if isinstance(value, Mapping)
        }
        return replace(self, **tensors, **named)  # type: ignore[arg-type]

    def to(self, device: torch.device | str) -> Batch:
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def first(self, n: int) -> Batch:
        """The first n rows."""
        return self.part(slice(0, n))

    def part(self, rows: slice) -> Batch:
        """Some rows that follow one another."""
        return self.map(lambda tensor: tensor[rows])
