"""The operations of a program by number, and the structures that native code reads: those of native/program.h."""

from __future__ import annotations

import ctypes
from enum import IntEnum


class Do(IntEnum):
    """What an operation does; native/program.h gives each one's fields."""

    LOOK_UP = 0
    INPUT = 1
    AFFINE = 2
    POINTWISE = 3
    LOAD = 4
    STORE = 5
    LSTM_TICK = 6
    GRU_TICK = 7
    RESET = 8
    UPDATE = 9
    WINDOW = 10
    ADVANCE = 11
    GATE = 12
    NORM = 13
    ANGLES = 14
    ROTATE = 15
    KEEP = 16
    ATTEND = 17
    LOOK = 18
    PLACE = 19
    WAVES = 20
    UNIT = 21
    SOFTMAX = 22
    JOIN = 23
    FIRST = 24
    OUTPUT = 25
    ALIGN = 26
    PART = 27
    BESIDE = 28
    NGRAM = 29
    MIXTURE = 30


class Act(IntEnum):
    """Functions of single numbers."""

    TANH = 0
    RELU = 1
    SIGMOID = 2
    IDENTITY = 3
    GELU = 4
    GELU_TANH = 5
    SILU = 6


class Mix(IntEnum):
    """How two vectors meet."""

    ALONE = 0
    PLUS = 1
    TIMES = 2


class NormKind(IntEnum):
    """Normalisations."""

    LAYER = 0
    RMS = 1
    DEVIATION = 2


class Form(IntEnum):
    """How the numbers of a matrix are kept."""

    FULL = 0
    BF16 = 1
    INT8 = 2


OF_WEIGHTS = {Do.MIXTURE: ("weight", "bias", "a", "b", "c")}
"""The fields of an operation that name weights, where these are not `weight` and `bias`."""

NUMBER, POINTER = ctypes.c_int64, ctypes.c_void_p


class Op(ctypes.Structure):
    _fields_ = [
        *((name, NUMBER) for name in ("kind", "out", "n", "x", "k", "y", "weight", "bias", "slot", "a", "b", "c", "d")),
        ("number", ctypes.c_double),
    ]


class ProgramStruct(ctypes.Structure):
    _fields_ = [("ops", POINTER), ("n_ops", NUMBER), ("weights", POINTER), ("n_room", NUMBER)]


class StreamStruct(ctypes.Structure):
    _fields_ = [("rows", NUMBER), ("slots", POINTER), ("rooms", POINTER), ("room", POINTER), ("scores", POINTER)]


class DrawingStruct(ctypes.Structure):
    _fields_ = [
        *((name, NUMBER) for name in ("n_choices", "n_ticks", "tick")),
        *((name, ctypes.c_double) for name in ("temperature", "top_p", "penalty")),
        *((name, NUMBER) for name in ("top_k", "n_never", "n_stops", "n_given")),
        *((name, POINTER) for name in ("never", "stops", "given", "lengths", "ends", "keys", "alive", "seen", "y",
                                       "room", "tokens", "active", "stopped", "log_p")),
        *((name, NUMBER) for name in ("n_done", "row")),
    ]  # fmt: skip
