"""A law that is being checked: how it is compared, and what is said when it is broken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import TracebackType

import torch
from torch import Tensor

FORM = "form"  # shapes, trees and finite numbers: what the other laws need to be stated at all
STATE = "state"  # state is a value
SAVING = "saving"
DTYPE = "dtype"
CAUSALITY = "causality"
ROWS = "rows"
CHUNKS = "chunks"
PADDING = "padding"
FIELD = "receptive field"
SIZE = "state size"
LENGTH = "length"
CONDITION = "condition"  # the source reaches the output
CONFIG = "config"
GRADIENT = "gradient"
SCAN = "scan"
SUMS = "sums"  # totals and counts of rows add up to those of the batch
DRAWS = "draws"  # what is drawn follows the log-probability that is told of it
MIXTURE = "mixture"  # the outputs of several models can be joined
SCALE = "scale"  # outputs can be expressed in other units
ENERGY = "energy"  # of a memory, which asynchronous updates never raise
QUANTILES = "quantiles"  # quantiles, cumulative probabilities and draws are of one distribution

Position = dict[str, int | str]


class LawBroken(AssertionError):
    """A law does not hold: which one, where, and by how much.

    `law` is its name, `position` the place: time, row, parameter (whatever is known).
    """

    def __init__(self, law: str, position: Position, sentence: str) -> None:
        super().__init__(f"{law}: {sentence}")
        self.law = law
        self.position = position


class Law:
    """One law under one setting: `with Law("chunks", "train mode") as law: law.same(...)`.

    An exception inside the block is a broken law too: a layer that cannot be run in pieces breaks the law of chunks.
    """

    def __init__(self, name: str, setting: str = "") -> None:
        self.name = name
        self.setting = setting

    def __enter__(self) -> Law:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, LawBroken):
            raise self.broken(f"{type(error).__name__} was raised: {error}") from error

    def broken(self, sentence: str, **position: int | str) -> LawBroken:
        place = ", ".join(f"{key} {value}" for key, value in position.items())
        detail = "; ".join(part for part in (f"at {place}" if place else "", self.setting) if part)
        return LawBroken(self.name, position, f"{sentence} ({detail})" if detail else sentence)

    def holds(self, condition: bool, sentence: str, **position: int | str) -> None:
        if not condition:
            raise self.broken(sentence, **position)

    def same(
        self,
        found: Tensor,
        wanted: Tensor,
        tolerance: float,
        what: str,
        axes: Sequence[str] = ("row", "time"),
        scale: float | None = None,
        **position: int | str,
    ) -> None:
        """|found - wanted| <= tolerance * scale everywhere; the scale is the largest wanted value unless given."""
        if found.shape != wanted.shape:
            raise self.broken(f"{what} has shape {list(found.shape)} instead of {list(wanted.shape)}", **position)
        if found.numel() == 0 or torch.equal(found, wanted):
            return
        if scale is None:
            scale = largest(wanted)
        difference = _difference(found, wanted)
        worst = difference.max().item()
        if worst <= tolerance * max(scale, 1e-3):
            return
        place = _earliest(difference > tolerance * max(scale, 1e-3), axes)
        raise self.broken(f"{what} differs by {worst:.2g}, where values reach {scale:.2g}", **position, **place)

    def nothing(
        self,
        found: Tensor,
        tolerance: float,
        scale: float,
        what: str,
        axes: Sequence[str] = ("row", "time"),
        **position: int | str,
    ) -> None:
        """`found` is zero, up to rounding of values as large as `scale`."""
        if found.numel() == 0:
            return
        difference = _difference(found, torch.zeros_like(found))
        worst = difference.max().item()
        if worst > tolerance * scale:
            place = _earliest(difference > tolerance * scale, axes)
            raise self.broken(f"{what} is {worst:.2g} instead of 0", **position, **place)


def largest(tensor: Tensor) -> float:
    """The largest finite magnitude."""
    values = tensor.detach().to(_wide(tensor)).abs()
    most = values.max().item() if values.numel() else 0.0
    if math.isfinite(most):
        return most
    values = values[values.isfinite()]
    return values.max().item() if values.numel() else 0.0


def _wide(tensor: Tensor) -> torch.dtype:
    return torch.complex128 if tensor.is_complex() else torch.float64


def _difference(found: Tensor, wanted: Tensor) -> Tensor:
    """|found - wanted|; where either is not finite, infinity unless both are the same."""
    a, b = found.detach().to(_wide(found)), wanted.detach().to(_wide(wanted))
    plain = (a - b).abs()
    if bool(plain.isfinite().all()):
        return plain
    alike = (a == b) | (a.isnan() & b.isnan())
    apart = torch.where(alike, 0.0, torch.inf)
    return torch.where(a.isfinite() & b.isfinite(), plain, apart)


def _earliest(bad: Tensor, axes: Sequence[str]) -> Position:
    """The first place where `bad` is True: earliest in time, then the first row."""
    named = dict(zip(axes, range(bad.dim())))
    places = bad.nonzero()  # [n, dim]
    order = [named[axis] for axis in ("time", *axes) if axis in named]
    for axis in order:
        places = places[places[:, axis] == places[:, axis].min()]
    return {axis: int(places[0, index]) for axis, index in named.items()}
