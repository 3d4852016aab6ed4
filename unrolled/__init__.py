"""unrolled: the sequence models of forty years, on your own data.

Everything here is loaded on first use, so that `import unrolled` answers at once and without torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_lazy = {
    "train": "unrolled.training.api",
    "compare": "unrolled.comparison.api",
    "Comparison": "unrolled.comparison.api",
    "describe": "unrolled.runs.describe",
    "write_report": "unrolled.report.page",
    "load": "unrolled.runs.run",
    "Run": "unrolled.runs.run",
    "Session": "unrolled.runs.session",
    "testing": "unrolled.testing",
}

__all__ = ["Comparison", "Run", "Session", "compare", "describe", "load", "testing", "train", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in _lazy:
        raise AttributeError(f"module 'unrolled' has no attribute '{name}'")
    module = importlib.import_module(_lazy[name])
    return module if name == "testing" else getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
