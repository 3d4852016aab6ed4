"""Ways to lose: a process that dies at its nth system call, a disk that is full from then on, a bit that flips."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unrolled.core import outside

CHANGING = ("open", "write", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")


class Died(BaseException):
    """Stands for SIGKILL: nothing that the dying code does afterwards reaches the disk."""


@contextmanager
def patched_system(names: tuple[str, ...], n: int, failure: BaseException) -> Iterator[None]:
    """From the nth call on (counted from 0) these functions of os fail; a write gets half of its bytes out first."""
    calls = 0

    def wrap(name: str, real):
        def call(*args, **options):
            nonlocal calls
            calls += 1
            if calls == n + 1 and name == "write":
                real(args[0], bytes(args[1])[: len(args[1]) // 2])
            if calls > n:
                raise failure
            return real(*args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, wrap(name, getattr(os, name)))
        yield


@pytest.fixture
def dying_at():
    """`with dying_at(n):` the process dies at its nth call that changes the disk; see `Died`."""
    return lambda n: patched_system(CHANGING, n, Died())


@pytest.fixture
def full_at():
    """`with full_at(n):` nothing can be written from the nth call on."""
    return lambda n, code=errno.ENOSPC: patched_system(("write", "fsync"), n, OSError(code, os.strerror(code)))


@pytest.fixture
def flip_bit():
    """`flip_bit(path, numbers)`: one random bit of a file is changed."""

    def flip(path: Path, numbers: random.Random) -> None:
        data = bytearray(path.read_bytes())
        data[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
        path.write_bytes(bytes(data))

    return flip


@pytest.fixture
def killed():
    """The exception that stands for a kill."""
    return Died


@pytest.fixture
def other_process(monkeypatch: pytest.MonkeyPatch):
    """`other_process()`: from here on this process counts as a later one with the same number."""
    tokens = iter(f"{n:08x}" for n in range(1, 10_000))
    return lambda: monkeypatch.setattr(outside, "TOKEN", next(tokens))
