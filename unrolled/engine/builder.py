"""A program while it is made: registers, weights, the leaves of the state, operations in their order."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from unrolled.engine.operations import Act, Do, Mix, Op

WIDE = 16  # a register begins at a multiple of so many numbers
FOLDED = 1 << 22  # numbers of a table that may be made of another one and a matrix


class CannotLower(Exception):
    """A layer has no lowering, or is not what its class says: the sentence tells which and why."""


class Value(NamedTuple):
    """A vector of each row: in a register, or the row of a table that a token names, which is looked up when it is
    needed as such."""

    width: int
    at: int = -1
    table: Tensor | None = None  # [V, width]
    scale: float = 1.0
    is_unit: bool = False  # the table is the unit matrix


GIVEN = Value(0)  # what a tick reads: a token, or numbers of a width that their reader knows


class Slot(NamedTuple):
    """A leaf of the state: the shape of one row, None where that is as long as there are positions."""

    shape: tuple[int | None, ...]
    dtype: torch.dtype
    counter: int | None = None  # the leaf that counts these positions, where they become more
    window: int | None = None  # that are kept at most


class Weight(NamedTuple):
    """Numbers of a program: made when it is packed, of tensors whose change makes them stale."""

    sources: tuple[Tensor, ...]
    make: Callable[[], Tensor]
    is_matrix: bool  # [n, K], to be packed; else copied as it is
    own: Tensor | None = None  # the memory of a model in which a matrix stands as it is


class Builder:
    """Layers are lowered in the order in which they are applied; leaves of the state stand in that of the tree."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.ops: list[Op] = []
        self.weights: list[Weight] = []
        self.slots: list[Slot] = []
        self._angles: dict[tuple[int, float], Value] = {}
        self.kept: list[Tensor] = []  # whose memory operations read
        self.n_room = 0
        self.reads: Literal["tokens", "numbers"] | None = None

    # ---- what operations work with

    def register(self, width: int) -> Value:
        value = Value(width, self.n_room)
        self.n_room += -(-width // WIDE) * WIDE
        return value

    def slot(
        self, *shape: int | None, dtype: torch.dtype | None = None, counter: int | None = None,
        window: int | None = None,
    ) -> int:  # fmt: skip
        """The next leaf of the state; its number."""
        self.slots.append(Slot(shape, dtype or self.dtype, counter, window))
        return len(self.slots) - 1

    def counter(self) -> int:
        return self.slot(dtype=torch.long)

    def flags(self, *shape: int | None) -> int:
        return self.slot(*shape, dtype=torch.bool)

    def angles(self, counter: int, width: int, base: float) -> Value:
        """The cosines and sines of rotary positions; all layers have seen as many, so those of the first serve all."""
        if (width, base) not in self._angles:
            self._angles[width, base] = self.emit(Do.ANGLES, width, slot=counter, number=base)
        return self._angles[width, base]

    def sized(self, x: Value, width: int) -> Value:
        """x, which for a layer that reads what is given are numbers of its own width."""
        if x is not GIVEN:
            if x.width != width:
                raise CannotLower(f"vectors of width {x.width} for a layer of width {width}")
            return x
        if self.reads is not None:
            raise CannotLower("several layers that read the input")
        self.reads = "numbers"
        return self.emit(Do.INPUT, width)

    def tokens(self, x: Value) -> None:
        """x must be the tokens that are given."""
        if x is not GIVEN or self.reads == "numbers":
            raise CannotLower("a table that does not read the input")
        self.reads = "tokens"

    def matrix(self, W: Tensor, *sources: Tensor, make: Callable[[], Tensor] | None = None) -> int:
        """A matrix [n, K] or [n, ..], which products read, by number; one that is computed has the shape of W, and is
        made of `sources`."""
        if make is not None:
            return self._weight(Weight(sources, make, is_matrix=True))
        return self._weight(Weight((W,), lambda: W.flatten(1), is_matrix=True, own=W))

    def vector(self, v: Tensor | None) -> int:
        """A vector or a table, row after row, by number; -1: there is none."""
        return -1 if v is None else self._weight(Weight((v,), lambda: v, is_matrix=False))

    def _weight(self, weight: Weight) -> int:
        for tensor in weight.sources:
            self.require(tensor)
        self.weights.append(weight)
        return len(self.weights) - 1

    def require(self, tensor: Tensor) -> None:
        """Numbers of the type of the program, in main memory."""
        if not isinstance(tensor, Tensor) or tensor.dtype != self.dtype or not tensor.is_cpu or tensor.is_sparse:
            raise CannotLower(f"weights of type {tensor.dtype} on {tensor.device}")

    def address(self, tensor: Tensor, dtype: torch.dtype) -> int:
        """Where numbers are that operations read in place, as they are then."""
        if not isinstance(tensor, Tensor) or tensor.dtype != dtype or not tensor.is_cpu or not tensor.is_contiguous():
            raise CannotLower(f"a table of type {tensor.dtype} on {tensor.device}, or a view of another tensor")
        self.kept.append(tensor)
        return tensor.data_ptr()

    # ---- operations

    def emit(
        self, kind: Do, width: int, x: Value | None = None, y: Value | None = None, into: Value | None = None,
        k: int = -1, weight: int = -1, bias: int = -1, slot: int = -1, a: int = 0, b: int = 0, c: int = 0, d: int = 0,
        number: float = 0.0,
    ) -> Value:  # fmt: skip
        """An operation whose result is `width` numbers, in a register of their own unless it is given."""
        out = self.register(width) if into is None else into
        places = (-1 if each is None else self.plain(each).at for each in (x, y))
        at_x, at_y = places
        self.ops.append(Op(kind, out.at, width, at_x, k, at_y, weight, bias, slot, a, b, c, d, number))
        return out

    def effect(self, kind: Do, width: int, x: Value | None = None, k: int = -1, slot: int = -1, a: int = 0, b: int = 0,
               c: int = 0, d: int = 0) -> None:  # fmt: skip
        """An operation without a result."""
        self.emit(kind, width, x, into=Value(width), k=k, slot=slot, a=a, b=b, c=c, d=d)

    def plain(self, x: Value) -> Value:
        """The value in a register."""
        if x.at >= 0:
            return x
        if x.table is None:
            raise CannotLower("a body that reads the input as it is")
        return self._looked_up(x.table, x.scale)

    def _looked_up(self, table: Tensor, scale: float) -> Value:
        V, width = table.shape
        return self.emit(Do.LOOK_UP, width, a=self.address(table, self.dtype), b=V, number=scale)

    def affine(
        self,
        x: Value,
        W: Tensor,
        bias: Tensor | None = None,
        *sources: Tensor,
        act: Act = Act.IDENTITY,
        plus: Value | None = None,
        make: Callable[[], Tensor] | None = None,
    ) -> Value:
        """f(W x + bias + plus) with W [n, K] or [n, ..]; a computed one has the shape of W: `make` makes it, of
        `sources`."""
        n, K = len(W), W[0].numel()
        x = self.sized(x, K)
        if x.at < 0 and x.table is not None and (x.is_unit or len(x.table) * n <= min(FOLDED, 4 * n * K)):
            return self._folded(x, W, bias, sources, act, plus, make)
        x = self.plain(x)
        plus = None if plus is None else self.plain(plus)
        sums = 0 if plus is None else self.register(n).at
        weight, offset = self.matrix(W, *sources, make=make), self.vector(bias)
        return self.emit(Do.AFFINE, n, x, plus, k=K, weight=weight, bias=offset, a=act, d=sums)

    def _folded(
        self, x: Value, W: Tensor, bias: Tensor | None, sources: tuple[Tensor, ...], act: Act, plus: Value | None,
        make: Callable[[], Tensor] | None,
    ) -> Value:  # fmt: skip
        """W times the row of a table is the row of another table."""
        table, n = x.table, len(W)
        assert table is not None
        made = make or (lambda: W.flatten(1))

        def rows() -> Tensor:
            wide = made().detach().double()
            product = wide.T if x.is_unit else x.scale * table.detach().double() @ wide.T  # [V, n]
            return product if bias is None else product + bias.detach().double()

        read = (table, *(sources if make else (W,)), *([] if bias is None else [bias]))
        weight = self._weight(Weight(read, rows, is_matrix=False))
        out = self.emit(Do.LOOK_UP, n, weight=weight, b=len(table), number=1.0)
        return out if plus is None and act == Act.IDENTITY else self.pointwise(out, plus, after=act)

    def linear(self, x: Value, layer: nn.Linear, act: Act = Act.IDENTITY, plus: Value | None = None) -> Value:
        return self.affine(x, layer.weight, layer.bias, act=act, plus=plus)

    def pointwise(
        self, x: Value, y: Value | None = None, mix: Mix = Mix.PLUS, before: Act = Act.IDENTITY,
        after: Act = Act.IDENTITY,
    ) -> Value:  # fmt: skip
        """after(before(x) . y)."""
        if y is not None and y.width != x.width:
            raise CannotLower(f"a sum of vectors of widths {x.width} and {y.width}")
        return self.emit(Do.POINTWISE, x.width, x, y, a=before, b=Mix.ALONE if y is None else mix, c=after)

    def join(self, *parts: Value) -> Value:
        """Vectors side by side."""
        whole = self.register(sum(part.width for part in parts))
        at = 0
        for part in parts:
            self.emit(Do.JOIN, whole.width, part, into=whole, k=part.width, a=at)
            at += part.width
        return whole

    def part(self, x: Value, first: int, width: int) -> Value:
        """Places first .. first + width of a vector."""
        return self.emit(Do.PART, width, x, k=x.width, a=first)

    def code(self) -> ctypes.Array[Op]:
        return (Op * len(self.ops))(*self.ops)
