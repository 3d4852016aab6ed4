"""What a server counts, in the text format of Prometheus. Imports no torch."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Mapping

from unrolled.core.errors import DataError
from unrolled.core.opening import read_text

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
HELP = {
    "unrolled_requests_total": ("counter", "Requests by endpoint and status."),
    "unrolled_request_seconds": ("histogram", "Seconds until the whole response to a request was sent."),
    "unrolled_generated_tokens_total": ("counter", "Tokens that were generated."),
    "unrolled_unexpected_total": ("counter", "Errors that the library does not explain; the log has them."),
}


class Counted:
    """Counters, a histogram of times, and values that are asked for when they are shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], float] = {}
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self.gauges: dict[str, Callable[[], float]] = {"unrolled_process_resident_bytes": resident}

    def add(self, name: str, amount: float = 1, labels: Mapping[str, str] = {}) -> None:
        words = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        with self._lock:
            key = (name, words)
            self._counts[key] = self._counts.get(key, 0) + amount

    def took(self, seconds: float) -> None:
        with self._lock:
            self._buckets[bisect.bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds

    def text(self) -> str:
        with self._lock:
            counts, buckets, seconds = sorted(self._counts.items()), list(self._buckets), self._seconds
        lines = []
        for name, (kind, meaning) in HELP.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{n}{{{words}}} {value:g}" if words else f"{n} {value:g}" for (n, words), value in counts
                      if n == name]  # fmt: skip
            if kind == "histogram":
                below = 0
                for bound, count in zip([*map(str, BOUNDS), "+Inf"], buckets):
                    below += count
                    lines.append(f'{name}_bucket{{le="{bound}"}} {below}')
                lines += [f"{name}_sum {seconds:.6f}", f"{name}_count {below}"]
        for name, ask in self.gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {ask():g}"]
        return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def resident() -> float:
    """Bytes of memory that this process holds; 0 where that is unknown."""
    try:
        import resource

        pages = int(read_text("/proc/self/statm", 1000).split()[1])
    except (DataError, ImportError, ValueError, IndexError):
        return 0.0
    return float(pages * resource.getpagesize())
