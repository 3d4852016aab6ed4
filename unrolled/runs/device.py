"""Where tensors live: the device that was asked for, or that a saved run names."""

from __future__ import annotations

import torch

from unrolled.core.errors import UsageError


def own_device(name: str) -> str:
    """The device that a saved run names, or the processor where this machine has none such: its weights fit any."""
    try:
        return pick_device(name)
    except UsageError:
        return "cpu"


def pick_device(name: str | None) -> str:
    """The device asked for, checked before any work is done."""
    try:
        device = torch.device(name or "cpu")
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(f"the device '{name}' cannot be used here ({str(error).splitlines()[0]})") from None
    return str(device)
