"""The log of a server: a JSON object a line on standard error, without any text of users. Imports no torch."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from contextlib import suppress
from typing import Any

_lock = threading.Lock()
_quiet = [False]


def silence(quiet: bool) -> None:
    """Whether nothing is logged from now on, in this process."""
    _quiet[0] = quiet


class Lines(logging.Handler):
    """What a package logs, as lines of this log."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[0] if record.exc_info else None
        facts = {} if error is None else {"error": error.__name__}
        write("http", level=record.levelname.lower(), message=record.getMessage()[:500], **facts)


def take_over(name: str) -> None:
    """Write here what a logger gets, and nowhere else."""
    logger = logging.getLogger(name)
    logger.handlers, logger.propagate = [Lines(logging.WARNING)], False


def write(event: str, **facts: Any) -> None:
    """One line; letters beyond ASCII and control characters are escaped."""
    if _quiet[0]:
        return
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    line = json.dumps({"time": f"{moment}Z", "event": event, **facts})
    with _lock, suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
