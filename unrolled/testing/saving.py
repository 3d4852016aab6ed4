"""What is saved is all there is: weights through safetensors, configs through JSON, TOML and key=value, and dtypes."""

from __future__ import annotations

import copy
import json
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from unrolled.core.config import Config, merge, parse_assignments
from unrolled.testing import law as laws
from unrolled.testing.law import Law

Run = Callable[[nn.Module, torch.dtype], Tensor]  # the outputs of a copy of the layer on one fixed input


def check_saving(layer: nn.Module, run: Run, fresh: Callable[[], nn.Module] | None) -> None:
    """The state dict, through a safetensors file and into a fresh layer, gives the same outputs.

    Without `fresh` the other layer is a copy with all that is saved overwritten; tensors that a state dict does not
    hold are then found by changing them: one that the output depends on would be lost.
    """
    with Law(laws.SAVING) as law, torch.no_grad():
        layer = copy.deepcopy(layer).float().eval()
        wanted = run(copy.deepcopy(layer), torch.float32)
        names = [name for name, _ in _unsaved(layer)]
        for index, name in enumerate(names):
            changed = copy.deepcopy(layer)
            _spoil(list(_unsaved(changed))[index][1])
            law.same(
                run(changed, torch.float32),
                wanted,
                1e-6,
                f"'{name}' is used but not saved, make it a parameter or a buffer; when it changes, y",
                parameter=name,
            )
        other = copy.deepcopy(layer) if fresh is None else fresh().float().eval()
        for tensor in other.state_dict().values():
            _spoil(tensor)
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "model.safetensors")
            save_model(layer, file)
            load_model(other, file, strict=True)
        law.same(run(other, torch.float32), wanted, 1e-6, "after saving and loading y")


def _unsaved(layer: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Tensors that live on modules as plain attributes, also in lists, dicts and modules that are not registered."""
    known = {tensor.data_ptr() for tensor in (*layer.parameters(), *layer.buffers())}
    for path, module in layer.named_modules():
        for name, value in vars(module).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                for place, tensor in _tensors(f"{path}.{name}".lstrip("."), value):
                    if tensor.data_ptr() not in known:  # torch.nn.GRU, for one, keeps its weights in a list as well
                        yield place, tensor


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, nn.Module):
        for inner, tensor in value.state_dict(keep_vars=True).items():
            yield f"{name}.{inner}", tensor
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _tensors(f"{name}[{key!r}]", inner)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _tensors(f"{name}[{index}]", inner)


def _spoil(tensor: Tensor) -> None:
    """Other values in place."""
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.mul_(-1.3).add_(0.7)
    else:
        tensor.zero_()


def check_dtype(layer: nn.Module, run: Run) -> None:
    """The output's dtype follows the layer's and the input's, and float64 is computed in float64."""
    ys = {}
    for dtype in (torch.float32, torch.float64):
        with Law(laws.DTYPE, str(dtype).removeprefix("torch.")) as law, torch.no_grad():
            moved = copy.deepcopy(layer).eval()
            moved = moved.double() if dtype == torch.float64 else moved.float()
            for tensor in (*moved.parameters(), *moved.buffers()):
                if tensor.dtype == torch.float64:  # digits that float32 does not have
                    tensor.mul_(1 + 1e-10 * torch.randn_like(tensor))
            ys[dtype] = run(moved, dtype)
            law.holds(ys[dtype].dtype == dtype, f"the layer is {dtype} but y is {ys[dtype].dtype}")
    with Law(laws.DTYPE) as law:
        exact = ys[torch.float64]
        law.same(ys[torch.float32].double(), exact, 5e-3, "y in float32 against float64")
        coarse = bool((exact.float().double() == exact).all()) and bool((exact != exact.round()).any())
        law.holds(not coarse, "y is float64 but its values have only the digits of float32")


def check_config(config: Config) -> list[str]:
    """A config survives JSON, a TOML recipe and key=value words; returns ['config']."""
    kind = type(config)
    with Law(laws.CONFIG) as law:
        law.holds(kind.from_json(config.to_json()) == config, "JSON does not give back the same config")
        recipe = kind.parse(tomllib.loads(config.to_toml()))
        law.holds(recipe == config, f"TOML gives back {recipe!r} for {config!r}")
        words = [f"{key}={json.dumps(value)}" for key, value in _flat(config.model_dump(mode="json"))]
        again = kind.parse(merge({}, parse_assignments(words)))
        law.holds(again == config, f"key=value gives back {again!r} for {config!r}")
    return [laws.CONFIG]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values as dotted keys; an empty table stays a value."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
