"""Programs with their weights packed, and streams: some rows of a program with their state on their way.

A program is made of a decoder at each request and compared, by its operations and by a digest of all the numbers that
they come from, with the one that was packed before: whatever changed the weights, results are those of the weights as
they are. Programs are never written into, so several streams may use one at the same time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from operator import is_
from threading import Lock
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.state import State
from unrolled.engine.builder import GIVEN, WIDE, Builder, CannotLower, Slot, Value, Weight
from unrolled.engine.forms import held
from unrolled.engine.lowering import lower
from unrolled.engine.operations import OF_WEIGHTS, Do, Form, ProgramStruct, StreamStruct
from unrolled.kernels import native

ROOM = 32  # positions that a leaf which grows begins with; beams copy them


class Program:
    """A decoder lowered and packed, for one library and one type of numbers."""

    def __init__(self, library: ctypes.CDLL, decoder: nn.Module) -> None:
        into, y = operations_of(decoder)
        self.library, self.dtype, self.name = library, into.dtype, native.NAMES[into.dtype]
        self.d_out, self.slots, self.n_room, self.reads = y.width, into.slots, into.n_room, into.reads
        self.forms: dict[Form, int] = {}
        """How many numbers of matrices, which each tick reads, are kept in each form; once they are packed."""
        self._builder, self._code = into, into.code()
        self.key = (
            into.dtype,
            library._name,
            bytes(self._code),
            digest(library, [s for w in into.weights for s in w.sources]),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the matrices, which each tick reads; once they are packed."""
        size = {Form.FULL: self.dtype.itemsize, Form.BF16: 2, Form.INT8: 1}
        return sum(size[form] * n for form, n in self.forms.items())

    def pack(self) -> None:
        """Put the weights into the order in which products read them, each matrix in its form."""
        found = [self._packed(weight) for weight in self._builder.weights]
        ends = accumulate(-(-part.numel() // WIDE) * WIDE for _, parts in found for part in parts)
        starts = chain([0], ends)
        places = [[next(starts) for _ in parts] for _, parts in found]
        self._weights, self._kept = torch.zeros(next(starts) + WIDE, dtype=self.dtype), self._builder.kept
        for (_, parts), at in zip(found, places):
            for part, place in zip(parts, at):
                self._weights[place : place + part.numel()] = part
        for op in self._code:  # in which weights were numbers until now
            if op.kind == Do.AFFINE:
                op.b, op.c = found[op.weight][0], places[op.weight][-1]
            for field in OF_WEIGHTS.get(Do(op.kind), ("weight", "bias")):
                if (number := getattr(op, field)) >= 0:
                    setattr(op, field, places[number][0])
        del self._builder
        code = ctypes.addressof(self._code)
        self.struct = ProgramStruct(code, len(self._code), self._weights.data_ptr(), self.n_room)

    def _packed(self, weight: Weight) -> tuple[Form, list[Tensor]]:
        """The numbers of a weight as programs read them, and beside them the scales where there are some."""
        made = weight.make().detach().to(self.dtype).contiguous()
        if not weight.is_matrix:
            return Form.FULL, [made.flatten()]
        (n, K), (form, numbers, scales) = made.shape, held(made)
        size = native.function(self.library, f"packed_numbers_{self.name}", ctypes.c_int64)
        nbytes = size(ctypes.c_int64(K), ctypes.c_int64(n)) * numbers.itemsize
        place = torch.zeros(-(-nbytes // made.itemsize), dtype=self.dtype)
        pack = native.function(self.library, f"pack_{self.name if form == Form.FULL else form.name.lower()}")
        lies = numbers.contiguous()
        strides = ctypes.c_int64(1), ctypes.c_int64(K)
        fault = pack(ctypes.c_int64(K), ctypes.c_int64(n), ctypes.c_void_p(lies.data_ptr()), *strides,
                     ctypes.c_void_p(place.data_ptr()))  # fmt: skip
        if fault:
            raise RuntimeError(f"internal error, please report it: packing met {native.FAULTS.get(fault, fault)}")
        self.forms[form] = self.forms.get(form, 0) + made.numel()
        return form, [place] if scales is None else [place, scales]


def operations_of(decoder: nn.Module) -> tuple[Builder, Value]:
    """A decoder as operations, and what a tick gives; `CannotLower` where it has no native form."""
    numbers = (t.dtype for t in chain(decoder.parameters(), decoder.buffers()) if t.is_floating_point())
    dtype = next(numbers, torch.float32)
    if dtype not in native.NAMES:
        raise CannotLower(f"weights of type {dtype}")
    into = Builder(dtype)
    y: Value = into.plain(lower(decoder, GIVEN, into))
    into.effect(Do.OUTPUT, y.width, y)
    return into, y


class Stream:
    """Some rows and their state, in whose memory ticks work."""

    def __init__(self, program: Program, state: State, rows: int) -> None:
        self.program, self.state, self.rows = program, state, rows
        self.leaves = [ready(leaf) for leaf in tree.leaves(state)]
        self._room = np.empty(max(program.n_room, 1) * rows, NUMBERS[program.dtype])
        self._connect()

    def _connect(self) -> None:
        """Tell native code where everything is."""
        slots = self.program.slots
        rooms = [
            leaf.shape[1 + slot.shape.index(None)] if None in slot.shape else 0
            for leaf, slot in zip(self.leaves, slots)
        ]
        self._slots = (ctypes.c_void_p * len(slots))(*(leaf.data_ptr() for leaf in self.leaves))
        self._rooms = (ctypes.c_int64 * len(slots))(*rooms)
        self._scores = np.empty(max(rooms, default=0) + 16, self._room.dtype)
        self.struct = StreamStruct(
            self.rows, ctypes.addressof(self._slots), ctypes.addressof(self._rooms), self._room.ctypes.data,
            self._scores.ctypes.data,
        )  # fmt: skip

    def make_room(self, ticks: int) -> None:
        """Let leaves that grow have room for so many ticks more."""
        grown = False
        for i, slot in enumerate(self.program.slots):
            if slot.counter is None:
                continue
            leaf, axis = self.leaves[i], 1 + slot.shape.index(None)
            needed = int(self.leaves[slot.counter].max()) + ticks
            needed = needed if slot.window is None else min(needed, slot.window)
            if (had := leaf.shape[axis]) < needed:
                room = max(needed, 2 * had, ROOM) if slot.window is None else min(max(needed, 2 * had), slot.window)
                shape = [*leaf.shape[:axis], room, *leaf.shape[axis + 1 :]]
                self.leaves[i] = leaf.new_zeros(shape)
                self.leaves[i].narrow(axis, 0, had).copy_(leaf)
                grown = True
        if grown:
            self._connect()

    def tree(self) -> State:
        """The state as it is now."""
        same = all(map(is_, self.leaves, tree.leaves(self.state)))
        return self.state if same else tree.with_leaves(self.state, iter(self.leaves))


NUMBERS = {torch.float32: np.float32, torch.float64: np.float64}


def fits(program: Program, state: State, rows: int) -> bool:
    """Whether a state is one that this program continues."""
    found = [*tree.leaves(state)] if state is not None else []
    return len(found) == len(program.slots) and all(map(_fits, found, program.slots, repeat(rows)))


def _fits(leaf: Tensor, slot: Slot, rows: int) -> bool:
    shape, wanted = leaf.shape, (rows, *slot.shape)
    if type(leaf) is not Tensor or leaf.dtype != slot.dtype or not leaf.is_cpu or len(shape) != len(wanted):
        return False
    return shape == wanted or all(n is None or n == found for n, found in zip(wanted, shape))


def ready(leaf: Tensor) -> Tensor:
    """A leaf that native code may work on: in one piece, and no part of a graph."""
    return leaf.detach().clone() if leaf.requires_grad else leaf.contiguous()


def digest(library: ctypes.CDLL, tensors: Sequence[Tensor]) -> int:
    """A number of 64 bits that changes with any bit of these tensors."""
    of, found = native.function(library, "digest", ctypes.c_uint64), 0
    for tensor in tensors:
        lies = tensor.detach().contiguous()
        found = of(ctypes.c_void_p(lies.data_ptr()), ctypes.c_int64(lies.nbytes), ctypes.c_uint64(found))
    return found


_packed: WeakKeyDictionary[nn.Module, Program] = WeakKeyDictionary()
_alike: WeakValueDictionary[tuple[object, ...], Program] = WeakValueDictionary()  # one serves all decoders of a model
_lock = Lock()


def program_of(library: ctypes.CDLL, decoder: nn.Module) -> Program:
    """The program of a decoder as it is now; `CannotLower` where it has none."""
    made = Program(library, decoder)
    with _lock:
        known = _alike.get(made.key)
    if known is None:
        made.pack()
    with _lock:
        _packed[decoder] = found = _alike.setdefault(made.key, known or made)
    return found
