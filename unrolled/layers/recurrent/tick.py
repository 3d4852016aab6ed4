"""One tick without gradients: generation at batch 1, where the cost is calls and not arithmetic.

For one row numpy works on the tensors' own memory: nothing is copied, so nothing can go stale; a call costs a quarter
of a torch call, and the product with a single row is faster. Several rows, other devices, other number types and
tensors that are being traced go through the cell's own equation. Output and state never share memory.

A quick way does what modules would do without calling them. It is only taken where a call of each would be the forward
of its class and nothing else: `bare` says so, and `arrays` gives the parameters of such a module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module

from unrolled.kernels.native import is_plain
from unrolled.layers.recurrent.cells import GRU, LSTM, Activation, Cell, Elman, LinearUnit, identity

Array = np.ndarray[Any, np.dtype[Any]]
Tick = Callable[[Cell, Tensor, Tensor], tuple[Tensor, Tensor]]

Weights = dict[str, Array]  # the parameters of a module by name


class View(NamedTuple):
    """The parameters of a module as they were seen last; `tensors` keep that memory from becoming anybody else's."""

    parameters: list[nn.Parameter | None]
    tensors: list[Tensor | None]
    weights: Weights
    dtype: torch.dtype | None


NUMBERS = (torch.float32, torch.float64)
GLOBAL_HOOKS = (
    every_module._global_forward_hooks,
    every_module._global_forward_pre_hooks,
    every_module._global_backward_hooks,
    every_module._global_backward_pre_hooks,
)
views: dict[int, View] = {}  # by the id of a module, for as long as that lives


def tick(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """Any cell by its own equation: x [B, 1, D] -> y [B, 1, D'] and the state [B, N]."""
    h = cell(x.squeeze(1), h0)
    return cell.output(h).unsqueeze(1).clone(), h


def plain(x: Tensor, h0: Tensor) -> bool:
    """True when numpy may look at these tensors: one row of real numbers in main memory, outside any transformation."""
    return (
        x.shape[0] == 1
        and x.dtype in NUMBERS
        and x.dtype == h0.dtype
        and x.is_cpu
        and not (x.requires_grad or h0.requires_grad)
        and is_plain(x)
    )


def unhooked(module: nn.Module, kind: type[nn.Module]) -> bool:
    """True when a call of this module is the forward of exactly this class and nothing else."""
    own = module.__dict__
    return not (
        type(module) is not kind
        or own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
        or "forward" in own
        or any(GLOBAL_HOOKS)
    )


def bare(module: nn.Module, kind: type[nn.Module], *needed: str) -> bool:
    """True when a call of this module is the forward of exactly this class on its own parameters, and nothing else.

    So: no hook (by which pruning and the older weight norm act), no parametrisation and no other subclass, no forward
    put in the place of its own, and plain parameters, of which those `needed` are there.
    """
    if not unhooked(module, kind):
        return False
    parameters = module._parameters
    for name in needed:  # loops, because a tick asks many modules and `all` would cost it more
        if parameters.get(name) is None:
            return False
    for parameter in parameters.values():
        if parameter is not None and type(parameter) is not nn.Parameter:
            return torch.compiler.is_exporting()  # where what stands for them has another type
    return True


def arrays(module: nn.Module, kind: type[nn.Module], dtype: torch.dtype | None, *needed: str) -> Weights | None:
    """The parameters of a bare module as arrays in the same memory; looked up anew when one has changed.

    None where it is not bare, or its parameters are not of this type (None: any that numpy has).
    """
    known = views.get(id(module))
    if known is None or not unhooked(module, kind) or len(known.parameters) != len(module._parameters):
        return _looked_up(module, kind, dtype, needed)
    for parameter, before, seen in zip(module._parameters.values(), known.parameters, known.tensors):
        same = parameter is before and (parameter is None or seen is None or seen.is_set_to(parameter))
        if not same:  # another parameter, or other memory, shape or strides
            return _looked_up(module, kind, dtype, needed)
    return known.weights if dtype is None or dtype is known.dtype else None


def _looked_up(
    module: nn.Module, kind: type[nn.Module], dtype: torch.dtype | None, needed: tuple[str, ...]
) -> Weights | None:
    if not bare(module, kind, *needed):
        return None
    parameters: list[Any] = list(module._parameters.values())
    types = {parameter.dtype for parameter in parameters if parameter is not None}
    usual = types <= set(NUMBERS) and all(parameter is None or parameter.is_cpu for parameter in parameters)
    if not usual or len(types) != 1 or dtype not in (None, *types):
        return None
    if id(module) not in views:
        finalize(module, views.pop, id(module), None)
    tensors = [None if parameter is None else parameter.detach() for parameter in parameters]
    weights = {name: t.numpy() for name, t in zip(module._parameters, tensors, strict=True) if t is not None}
    views[id(module)] = View(parameters, tensors, weights, *types)
    return weights


def tensors(y: Array, state: Array) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(y[None, None]), torch.from_numpy(state[None])


def affine(weights: Weights, x: Array, out: Array | None = None) -> Array:
    """W x + b of one row x [D], into `out` where that is given."""
    y: Array = weights["weight"].dot(x, out)
    if "bias" in weights:
        y += weights["bias"]
    return y


def sigmoid_(a: Array) -> None:
    """sigmoid(a) = (1 + tanh(a / 2)) / 2 in place, which cannot overflow."""
    a *= 0.5
    np.tanh(a, out=a)
    a *= 0.5
    a += 0.5


def tick_lstm(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """`cells.LSTM` for one row."""
    weights = arrays(cell, LSTM, x.dtype, "weight_ih", "weight_hh") if plain(x, h0) else None
    if weights is None:
        return tick(cell, x, h0)
    P = cell.output_size
    H = cell.state_size - P
    old = h0.numpy()[0]  # (h', c') [N]
    a = weights["weight_ih"].dot(x.numpy()[0, 0])  # [4 H]
    a += weights["weight_hh"].dot(old[:P])
    if "bias_ih" in weights:
        a += weights["bias_ih"]
    if "bias_hh" in weights:
        a += weights["bias_hh"]
    g = np.tanh(a[2 * H : 3 * H])
    sigmoid_(a)  # i, f, -, o
    new = np.empty(P + H, old.dtype)  # (h, c) [N]
    c = new[P:]
    np.multiply(a[H : 2 * H], old[P:], out=c)
    g *= a[:H]
    c += g
    h = np.tanh(c)
    h *= a[3 * H :]
    if "weight_hr" in weights:
        h = weights["weight_hr"].dot(h)
    new[:P] = h
    return tensors(h, new)


def tick_gru(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """`cells.GRU` for one row."""
    weights = arrays(cell, GRU, x.dtype, "weight_ih", "weight_hh") if plain(x, h0) else None
    if weights is None:
        return tick(cell, x, h0)
    N = cell.state_size
    old = h0.numpy()[0]  # [N]
    a = weights["weight_ih"].dot(x.numpy()[0, 0])  # [3 N]
    b = weights["weight_hh"].dot(old)  # [3 N]
    if "bias_ih" in weights:
        a += weights["bias_ih"]
    if "bias_hh" in weights:
        b += weights["bias_hh"]
    rz = a[: 2 * N]
    rz += b[: 2 * N]
    sigmoid_(rz)
    n = b[2 * N :]
    n *= rz[:N]
    n += a[2 * N :]
    np.tanh(n, out=n)
    h = old - n
    h *= rz[N:]
    h += n
    return tensors(h, h.copy())


def relu_(a: Array) -> None:
    np.maximum(a, 0, out=a)


def tanh_(a: Array) -> None:
    np.tanh(a, out=a)


IN_PLACE: dict[Activation, Callable[[Array], Any]] = {
    torch.tanh: tanh_, torch.relu: relu_, torch.sigmoid: sigmoid_, identity: lambda a: a,
}  # fmt: skip


def tick_elman(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """`cells.Elman` for one row."""
    assert isinstance(cell, Elman)
    activate = IN_PLACE.get(cell.activation)
    usual = activate is not None and plain(x, h0)
    weights = arrays(cell, type(cell), x.dtype, "weight_ih", "weight_hh") if usual else None
    if activate is None or weights is None:
        return tick(cell, x, h0)
    h = weights["weight_ih"].dot(x.numpy()[0, 0])  # [N]
    h += weights["weight_hh"].dot(h0.numpy()[0])
    if "bias" in weights:
        h += weights["bias"]
    activate(h)
    return tensors(h, h.copy())


TICKS: dict[type[Cell], Tick] = {LSTM: tick_lstm, GRU: tick_gru, Elman: tick_elman, LinearUnit: tick_elman}
