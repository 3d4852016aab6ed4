"""The log of a server: a JSON object a line on standard error, without any text of users. Imports no torch."""

from __future__ import annotations

import json
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


def write(event: str, **facts: Any) -> None:
    """One line; letters beyond ASCII and control characters are escaped."""
    if _quiet[0]:
        return
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    line = json.dumps({"time": f"{moment}Z", "event": event, **facts})
    with _lock, suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
