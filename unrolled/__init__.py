"""unrolled: train, compare and inspect sequence models on your own data.

Everything here is loaded on first use, so that `import unrolled` is fast and does not import torch. What is stable, and
what is not, is in docs/api.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrolled import errors, nn, results, sklearn, testing
    from unrolled.comparison.api import compare
    from unrolled.comparison.saved import Comparison
    from unrolled.exports.tools.exporting import export
    from unrolled.report.page import write_report
    from unrolled.runs.describe import describe
    from unrolled.runs.run import Run, load
    from unrolled.runs.session import Session
    from unrolled.runs.vectors import vectors
    from unrolled.training.api import train
    from unrolled.tuning.api import tune

__version__ = "0.1.0"

_lazy = {
    "train": "unrolled.training.api",
    "tune": "unrolled.tuning.api",
    "compare": "unrolled.comparison.api",
    "Comparison": "unrolled.comparison.saved",
    "describe": "unrolled.runs.describe",
    "export": "unrolled.exports.tools.exporting",
    "write_report": "unrolled.report.page",
    "load": "unrolled.runs.run",
    "Run": "unrolled.runs.run",
    "Session": "unrolled.runs.session",
    "vectors": "unrolled.runs.vectors",
}
_modules = ("errors", "nn", "results", "sklearn", "testing")

__all__ = [
    "Comparison",
    "Run",
    "Session",
    "compare",
    "describe",
    "errors",
    "export",
    "load",
    "nn",
    "results",
    "sklearn",
    "testing",
    "train",
    "tune",
    "vectors",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _modules:
        return importlib.import_module(f"unrolled.{name}")
    if name not in _lazy:
        raise AttributeError(f"module 'unrolled' has no attribute '{name}'")
    return getattr(importlib.import_module(_lazy[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
