"""FSDP2: every process keeps a part of each weight, of its gradient and of what the optimiser remembers.

The layers of a body are gathered one by one for a step, forward and backward, and given up again (torch's fully_shard).
Saved and evaluated is the whole model, so that a run directory is the same as ever; its weights alone, without
gradients and the optimiser's memory, must fit into each process.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from unrolled.core.compose import Serial, SerialEncoder
from unrolled.core.errors import UsageError
from unrolled.core.front import option
from unrolled.training.many import Line, Many

CALLED = ("condition", "start", "at")  # what is called of a module beside its forward


class Sharded(Many):
    """One of several processes that divide a model."""

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self.plain: Any = None

    def setup(self, model: nn.Module) -> None:
        super().setup(model)
        for name, weight in model.named_parameters():
            if not weight.dim():
                raise UsageError(f"{name} is a single number, which cannot be divided: leave out {option('shard')}")
        self.plain = copy.deepcopy(model).eval()
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module")  # about outputs that nobody changes in place
        mesh = init_device_mesh(next(model.parameters()).device.type, (self.n,))
        for module in (*_layers(model), model):
            fully_shard(module, mesh=mesh)
            for method in CALLED:
                if method in dir(module):
                    register_fsdp_forward_method(module, method)

    def evaluated(self, model: Any) -> Any:
        """A plain model with the weights of all, in which nothing needs the others."""
        self.plain.load_state_dict(self.whole(model.state_dict()))
        return self.plain

    # ---- a step

    def backward(self, loss: Tensor) -> None:
        (loss * self.n).backward()  # what is gathered is the mean over processes

    def collect(self, weights: Sequence[Tensor]) -> None:
        """The backward pass has added up all gradients."""

    def clip(self, weights: Sequence[Tensor], most: float) -> float:
        norm = nn.utils.get_total_norm([w.grad for w in weights if w.grad is not None])
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        nn.utils.clip_grads_with_norm_(weights, most, norm)
        return float(norm)

    def part(self, tensor: Tensor) -> Tensor:
        own = tensor.detach()
        return own.to_local() if isinstance(own, DTensor) else tensor

    # ---- saving

    def whole(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        found = {}
        for name, tensor in tensors.items():
            like = None if of is None else of.get(name)
            if isinstance(like, DTensor):
                shape, stride = like.shape, like.stride()
                tensor = DTensor.from_local(tensor, like.device_mesh, like.placements, shape=shape, stride=stride)
            tensor = tensor.detach()
            found[name] = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        return found

    def load(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        model.load_state_dict({name: _like(tensors[name], own) for name, own in model.state_dict().items()})

    def divided(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {n: self.part(_like(tensor, of[n])) if n in of else tensor for n, tensor in tensors.items()}


def _like(tensor: Tensor, own: Tensor) -> Tensor:
    """A whole tensor, divided as this one is."""
    if not isinstance(own, DTensor):
        return tensor
    return distribute_tensor(tensor.to(own.device), own.device_mesh, own.placements)


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    """The layers that stand in a row, the outer ones first met; none whose weights also belong elsewhere."""
    uses: dict[Tensor, int] = {}
    for module in model.modules():
        for weight in module._parameters.values():
            if weight is not None:
                uses[weight] = uses.get(weight, 0) + 1
    inside: set[nn.Module] = set()
    for module in model.modules():
        if isinstance(module, Serial | SerialEncoder) and module not in inside:
            for layer in module.layers:
                weights = [*layer.parameters()]
                if weights and all(uses[weight] == 1 for weight in weights) and layer not in inside:
                    inside.update(layer.modules())
                    yield layer
