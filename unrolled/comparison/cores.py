"""The threads of runs that share the cores of a machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def share_of_cores(most: int) -> int:
    """Threads of each run: an even share of the cores, and no more than OMP_NUM_THREADS where that is set."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(most, int(limit)) if limit.isdecimal() and int(limit) > 0 else most)


@contextmanager
def with_threads(n: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
