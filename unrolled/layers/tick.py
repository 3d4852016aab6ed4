"""One tick without gradients: generation at batch 1, where the cost is calls and not arithmetic.

For one row numpy works on the tensors' own memory: nothing is copied, so nothing can go stale; a call costs a quarter
of a torch call, and the product with a single row is faster. Several rows, other devices, other number types and
tensors that are being traced go through the cell's own equation. Output and state never share memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import finalize

import numpy as np
import torch
from torch import Tensor, nn

from unrolled.layers.cells import GRU, LSTM, Activation, Cell, Elman, LinearUnit, identity

Array = np.ndarray[Any, np.dtype[Any]]
Tick = Callable[[Cell, Tensor, Tensor], tuple[Tensor, Tensor]]

NUMBERS = (torch.float32, torch.float64)
views: dict[int, tuple[list[int], dict[str, Array]]] = {}  # by the id of a layer, for as long as that lives


def tick(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """Any cell by its own equation: x [B, 1, D] -> y [B, 1, D'] and the state [B, N]."""
    h = cell(x.squeeze(1), h0)
    return cell.output(h).unsqueeze(1).clone(), h


def is_plain(x: Tensor) -> bool:
    """True for a tensor outside any transformation."""
    return (
        type(x) is Tensor
        and not torch.compiler.is_compiling()
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def plain(x: Tensor, h0: Tensor) -> bool:
    """True when numpy may look at these tensors: one row of real numbers in main memory, outside any transformation."""
    return (
        x.size(0) == 1
        and x.dtype in NUMBERS
        and x.dtype == h0.dtype
        and x.is_cpu
        and not (x.requires_grad or h0.requires_grad)
        and is_plain(x)
    )


def arrays(layer: nn.Module) -> dict[str, Array]:
    """The parameters of a cell or layer as arrays in the same memory; looked up anew when a parameter has moved."""
    parameters = layer._parameters
    places = [p.data_ptr() for p in parameters.values() if p is not None]
    known = views.get(id(layer))
    if known is None or known[0] != places:
        if known is None:
            finalize(layer, views.pop, id(layer), None)
        known = places, {name: p.detach().numpy() for name, p in parameters.items() if p is not None}
        views[id(layer)] = known
    return known[1]


def tensors(y: Array, state: Array) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(y[None, None]), torch.from_numpy(state[None])


def affine(linear: nn.Linear, x: Array) -> Array:
    """`linear(x)` of one row x [D]."""
    weights = arrays(linear)
    y: Array = weights["weight"].dot(x)
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
    if not plain(x, h0):
        return tick(cell, x, h0)
    weights = arrays(cell)
    P = cell.output_size
    H = cell.state_size - P
    old = h0.numpy()[0]  # (h', c') [N]
    a = weights["weight_ih"].dot(x.numpy()[0, 0])  # [4 H]
    a += weights["weight_hh"].dot(old[:P])
    if "bias_ih" in weights:
        a += weights["bias_ih"]
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
    if not plain(x, h0):
        return tick(cell, x, h0)
    weights = arrays(cell)
    N = cell.state_size
    old = h0.numpy()[0]  # [N]
    a = weights["weight_ih"].dot(x.numpy()[0, 0])  # [3 N]
    b = weights["weight_hh"].dot(old)  # [3 N]
    if "bias_ih" in weights:
        a += weights["bias_ih"]
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
    if activate is None or not plain(x, h0):
        return tick(cell, x, h0)
    weights = arrays(cell)
    h = weights["weight_ih"].dot(x.numpy()[0, 0])  # [N]
    h += weights["weight_hh"].dot(h0.numpy()[0])
    if "bias" in weights:
        h += weights["bias"]
    activate(h)
    return tensors(h, h.copy())


TICKS: dict[type[Cell], Tick] = {LSTM: tick_lstm, GRU: tick_gru, Elman: tick_elman, LinearUnit: tick_elman}
