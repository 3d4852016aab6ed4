"""Libraries that are written in Rust (polars) write to standard error about a panic, before it becomes an exception."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

STDERR = 2


@contextmanager
def without_panic() -> Iterator[None]:
    """What is written to standard error meanwhile is kept back, and dropped where it ends in an exception."""
    try:
        before = os.dup(STDERR)
    except OSError:  # it is closed
        yield
        return
    with tempfile.TemporaryFile() as kept:
        sys.stderr.flush()
        os.dup2(kept.fileno(), STDERR)
        try:
            yield
        except BaseException:
            kept.truncate(0)
            raise
        finally:
            os.dup2(before, STDERR)
            os.close(before)
            kept.seek(0)
            os.write(STDERR, kept.read())
