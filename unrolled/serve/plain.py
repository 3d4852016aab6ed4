"""Results as values of JSON: arrays and tensors as lists, and no number that JSON lacks."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

MOST = 500_000  # numbers of an array


def plain(value: Any) -> Any:
    """
    >>> plain({"y": torch.ones(2), "n": np.int64(3), "odd": float("nan")})
    {'y': [1.0, 1.0], 'n': 3, 'odd': None}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist()) if value.size <= MOST else f"array of shape {list(value.shape)}, too large to send"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
