"""Whether a config describes the weights that lie beside it, told before either is in memory.

A config may ask for any number of layers of any width. So the header of the weights is read first, the model is built
without memory (torch's meta device), and both are compared: a model that has more numbers than the file holds, or more
parts, is refused as soon as it shows. Only then are the weights read and the model built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as hooks

from unrolled.core.errors import DataError, UnrolledError
from unrolled.core.opening import shortened
from unrolled.core.spec import Ports
from unrolled.runs.build import on_paper
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.formats import Stored

MORE_NUMBERS, MORE_PARTS = 8_000_000, 2_000  # than the file holds: tables that are computed, layers without weights


def require_fit(config: RunConfig, ports: Ports, accepts: tuple[str, ...], stored: Mapping[str, Stored]) -> None:
    """Refuse a config whose model is larger than the weights; costs next to no memory."""
    numbers = sum(each.numel for each in stored.values())
    with _counted(numbers + MORE_NUMBERS, 50 * len(stored) + MORE_PARTS):
        try:
            on_paper(config, ports, accepts)
        except UnrolledError:
            raise
        except (RuntimeError, NotImplementedError, ValueError, TypeError):
            return  # not every model can be built so; the limits hold for the one that is built next, too


@contextmanager
def within(stored: Mapping[str, Stored]) -> Iterator[None]:
    """The same limits while a model is built with memory."""
    with _counted(sum(each.numel for each in stored.values()) + MORE_NUMBERS, 50 * len(stored) + MORE_PARTS):
        yield


def require_no_more(model: nn.Module, stored: Mapping[str, Stored]) -> None:
    """Refuse weights that the model has no place for before they are read; parts that load in their own way may have
    one."""
    if any(type(each)._load_from_state_dict is not nn.Module._load_from_state_dict for each in model.modules()):
        return
    ours = model.state_dict()
    for name, each in stored.items():
        if name not in ours or tuple(ours[name].shape) != each.shape:
            expected = "no such tensor" if name not in ours else f"the shape {list(ours[name].shape)}"
            raise DataError(
                f"the weights do not match the model in its config.json ('{shortened(name)}' has the shape "
                f"{list(each.shape)}, the model has {expected})"
            )


@contextmanager
def _counted(most_numbers: int, most_parts: int) -> Iterator[None]:
    found = {"numbers": 0, "parts": 0}

    def count(_: nn.Module, __: str, new: Any) -> None:
        found["parts"] += 1
        found["numbers"] += new.numel() if isinstance(new, torch.Tensor) else 0
        if found["numbers"] > most_numbers or found["parts"] > most_parts:
            raise DataError(
                f"the model of config.json has more than {most_numbers:,} numbers or {most_parts:,} modules, "
                "but model.safetensors holds fewer: the two files do not belong together"
            )

    handles = [
        hooks.register_module_parameter_registration_hook(count),
        hooks.register_module_buffer_registration_hook(count),
        hooks.register_module_module_registration_hook(count),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
