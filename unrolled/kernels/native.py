"""The native library of this machine: which one is loaded and why, and how it is called.

One shared library per instruction set lies beside this file (built from `native/` by setup.py): kernels_v2 (SSE2, which
every x86-64 processor has), v3 (AVX2 and FMA), v4 (AVX-512), neon. The highest one that torch's own check of the
processor allows is loaded; UNROLLED_NATIVE=off|v2|v3|v4|neon overrides it. Without a library torch does the work.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.core.errors import UsageError

ABI = 4  # of native/api.h
VARIABLE = "UNROLLED_NATIVE"
NEEDS = {"v2": "SSE2", "v3": "AVX2", "v4": "AVX-512", "neon": "NEON"}  # lowest first
FOLDER = Path(__file__).parent
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
NAMES = {torch.float32: "f32", torch.float64: "f64"}
FAULTS = {1: "impossible sizes", 2: "too little room to work in", 3: "a missing array", 4: "an unknown operation",
          5: "a token without a row", 6: "a position beyond a table", 7: "a row without a choice"}  # fmt: skip


class Loaded(NamedTuple):
    """A library and how it came to be chosen; `library` is None where torch does the work."""

    level: str  # off, v2, v3, v4, neon
    why: str
    library: ctypes.CDLL | None = None


def allowed() -> tuple[list[str], str]:
    """The levels that this processor can run, lowest first, and what says so."""
    machine = platform.machine()
    if machine in ("arm64", "aarch64"):
        return ["neon"], f"the processor is {machine}"
    if machine not in ("x86_64", "AMD64"):
        return [], f"there are no kernels for a processor of type {machine}"
    capability = torch.backends.cpu.get_cpu_capability()
    levels = {"AVX512": ["v2", "v3", "v4"], "AVX2": ["v2", "v3"]}.get(capability, ["v2"])
    return levels, f"torch reports {capability}"


def built() -> list[str]:
    """The levels whose library is there."""
    return [level for level in NEEDS if file_of(level).is_file()]


def file_of(level: str) -> Path:
    return FOLDER / f"kernels_{level}{SUFFIX}"


def choose(asked: str | None, can: list[str], because: str, there: list[str]) -> tuple[str, str]:
    """The level to load and why; `can` and `there` are the levels of the processor and of the installation.

    >>> choose(None, ["v2", "v3"], "torch reports AVX2", ["v2", "v3", "v4"])
    ('v3', 'torch reports AVX2')
    >>> choose(None, ["v2"], "torch reports DEFAULT", [])
    ('off', 'no library was built: install with a C++ compiler (gcc or clang)')
    """
    if asked is None or asked == "":
        if not there:
            return "off", "no library was built: install with a C++ compiler (gcc or clang)"
        levels = [level for level in can if level in there]
        return (levels[-1], because) if levels else ("off", f"none of the libraries fits this processor: {because}")
    if asked == "off":
        return "off", f"{VARIABLE}=off"
    if asked not in NEEDS:
        raise UsageError(f"invalid value {VARIABLE}='{asked}': expected off, {', '.join(NEEDS)}")
    if asked not in can:
        raise UsageError(
            f"{VARIABLE}={asked} needs a processor with {NEEDS[asked]} ({because}); "
            f"expected {', '.join(['off', *can])}, or leave the variable unset"
        )
    if asked not in there:
        raise UsageError(
            f"{VARIABLE}={asked}, but the library {file_of(asked).name} was not built; install with a C++ compiler, "
            "or leave the variable unset"
        )
    return asked, f"{VARIABLE}={asked}"


@cache
def opened(level: str) -> ctypes.CDLL:
    """The library of a level; an OSError where it cannot be loaded or belongs to another version of this package."""
    library = ctypes.CDLL(str(file_of(level)))
    if library.unrolled_abi() != ABI:
        raise OSError(f"{file_of(level).name} has ABI {library.unrolled_abi()}, expected {ABI}: install again")
    library.recurrence_room.restype = ctypes.c_int64
    library.recurrence_room.argtypes = [ctypes.c_int, ctypes.c_int, *3 * [ctypes.c_int64]]
    return library


@cache
def _loaded(asked: str | None) -> Loaded:
    level, why = choose(asked, *allowed(), built())
    if level == "off":
        return Loaded("off", why)
    try:
        return Loaded(level, why, opened(level))
    except (OSError, AttributeError) as error:
        unusable = f"{file_of(level).name} cannot be used: {error}"
        if asked:
            raise UsageError(f"{VARIABLE}={asked}, but {unusable}") from error
        return Loaded("off", unusable)


_within: ContextVar[str | None] = ContextVar("level", default=None)  # what `using` puts in the place of the variable


def loaded() -> Loaded:
    """What serves this process; the environment is read again at each call, so a change acts at once."""
    return _loaded(_within.get() or os.environ.get(VARIABLE))


@contextmanager
def using(level: str) -> Iterator[Loaded]:
    """Within the block this level (or "off") serves this thread, whatever the environment says; for checks."""
    token = _within.set(level)
    try:
        yield loaded()
    finally:
        _within.reset(token)


def is_plain(x: Tensor) -> bool:
    """True when x is a tensor with memory of its own kind, outside of any compilation, trace or transformation."""
    return (
        type(x) in (Tensor, torch.nn.Parameter)
        and not torch.compiler.is_compiling()
        and not torch._C._is_tracing()
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def serving(*tensors: Tensor | None) -> ctypes.CDLL | None:
    """The library that can work on these tensors; None where torch must: another device, type or a transformation."""
    library = loaded().library
    given = [t for t in tensors if t is not None]
    if library is None or given[0].dtype not in NAMES:
        return None
    usual = all(t.is_cpu and t.dtype == given[0].dtype and is_plain(t) for t in given)
    return library if usual and not torch._C._are_functorch_transforms_active() else None


@cache
def function(library: ctypes.CDLL, name: str, result: Any = ctypes.c_int) -> Callable[..., Any]:
    """An exported function by its full name."""
    found = library[name]
    found.restype = result
    return found


def call(library: ctypes.CDLL, name: str, *given: Tensor | int | None) -> None:
    """Call a kernel of the type of its first tensor; whole numbers are passed as 64 bits, tensors by their memory."""
    dtype = next(g.dtype for g in given if isinstance(g, Tensor))
    arguments = [
        ctypes.c_void_p(g.data_ptr()) if isinstance(g, Tensor) else None if g is None else ctypes.c_int64(g)
        for g in given
    ]
    fault = getattr(library, f"{name}_{NAMES[dtype]}")(*arguments)
    if fault:
        raise RuntimeError(f"internal error, please report it: the kernel {name} met {FAULTS.get(fault, fault)}")
