"""The likeliest continuations of some beams, without an ordered look at all of them.

    log p(k | beam) = log p(beam) + y_k - lse(y),        lse(y) = max y + log sum_k exp(y_k - max y)

The offset log p(beam) - lse(y) is one number a beam, so that the order within a beam is that of its logits y, and the
logits are read three times and never copied. They are cut into blocks: the n largest of all are in the n blocks with
the largest maxima, of which there are few.
"""

from __future__ import annotations

import ctypes
import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.kernels import native

BLOCK = 64  # logits that are looked at by their maximum first


class Continuations(NamedTuple):
    """The n best of each example, best first: log p of the whole, the beam that continues and the token that it
    takes."""

    log_p: NDArray[np.float64]  # [L, n]
    beam: NDArray[np.int64]  # [L, n]
    token: NDArray[np.int64]  # [L, n]


def wide(device: torch.device) -> torch.dtype:
    """Double precision where the device has it, so that sums of many log-probabilities stay exact."""
    return torch.float32 if device.type == "mps" else torch.float64


def log_sum_exp(y: Tensor) -> Tensor:
    """lse of each row [R, V]; the terms have the precision of y, their sum has more. Not finite where y is not."""
    largest = y.amax(-1, keepdim=True)  # [R, 1]
    return largest[:, 0] + (y - largest).exp_().sum(-1, dtype=wide(y.device)).log_()


def likeliest(y: Tensor, log_p: NDArray[np.float64], n: int) -> Continuations:
    """The n best (or all, if there are fewer) of L examples with w beams each: log p [L, w], logits y [L * w, V].

    >>> best = likeliest(torch.tensor([[0.0, 2.0], [1.0, 0.0]]), np.log([[0.5, 0.5]]), 2)
    >>> best.beam.tolist(), best.token.tolist(), best.log_p.round(3).tolist()
    ([[0, 1]], [[1, 0]], [[-0.82, -1.006]])
    """
    L, w = log_p.shape
    V, n = y.shape[-1], min(n, w * y.shape[-1])
    if (found := _natively(y, log_p, n)) is not None:
        return found
    offset = torch.from_numpy(log_p).to(y.device, wide(y.device)).view(-1) - log_sum_exp(y)  # [L w]
    n_blocks = V // BLOCK
    if w * n_blocks <= 2 * n:
        best = (y + offset[:, None]).view(L, w * V).topk(n)
        return _sorted(best.values, best.indices, V)
    blocks = y[:, : n_blocks * BLOCK].unflatten(1, (n_blocks, BLOCK))  # [L w, n_blocks, BLOCK]
    rows = (blocks.amax(-1) + offset[:, None]).view(L, w * n_blocks).topk(n).indices  # [L, n]
    beam, block = rows // n_blocks, rows % n_blocks
    first = torch.arange(0, L * w, w, device=y.device)[:, None]  # [L, 1]
    inside = blocks[first + beam, block] + offset[first + beam, None]  # [L, n, BLOCK]
    place = (beam * V + block * BLOCK)[:, :, None] + torch.arange(BLOCK, device=y.device)  # [L, n, BLOCK]
    values, places = inside.flatten(1), place.flatten(1)
    if rest := V - n_blocks * BLOCK:
        behind = torch.arange(w, device=y.device)[:, None] * V + torch.arange(V - rest, V, device=y.device)  # [w, rest]
        tail = y[:, n_blocks * BLOCK :] + offset[:, None]  # [L w, rest]
        values = torch.cat([values, tail.view(L, w * rest)], dim=1)
        places = torch.cat([places, behind.flatten().expand(L, -1)], dim=1)
    best = values.topk(n)
    return _sorted(best.values, places.gather(1, best.indices), V)


def _natively(y: Tensor, log_p: NDArray[np.float64], n: int) -> Continuations | None:
    """The same in one call; None where there is no native code for it, or logits are not finite."""
    library = native.serving(y)
    if library is None or y.numel() == 0:
        return None
    (L, w), V = log_p.shape, y.shape[-1]
    y, log_p = y.contiguous(), np.ascontiguousarray(log_p)
    values, places = np.empty((L, n)), np.empty((L, n), np.int64)
    sizes = map(ctypes.c_int64, (L, w, V, n))
    arrays = map(ctypes.c_void_p, (y.data_ptr(), log_p.ctypes.data, values.ctypes.data, places.ctypes.data))
    fault = native.function(library, f"likeliest_{native.NAMES[y.dtype]}")(*sizes, *arrays)
    return None if fault else Continuations(values, places // V, places % V)


def _sorted(values: Tensor, places: Tensor, V: int) -> Continuations:
    log_p: NDArray[np.float64] = values.cpu().double().numpy()  # [L, n]
    place: NDArray[np.int64] = places.cpu().numpy()
    return Continuations(log_p, place // V, place % V)


def without(best: Continuations, banned: NDArray[np.bool_], n: int) -> Continuations:
    """The first n of each example that are not banned [L, m]; where there are fewer, the others have log p = -inf."""
    if not banned.any() and banned.shape[1] >= n:
        return Continuations(best.log_p[:, :n], best.beam[:, :n], best.token[:, :n])
    order = np.argsort(banned, axis=1, kind="stable")[:, :n]
    log_p = np.take_along_axis(np.where(banned, -math.inf, best.log_p), order, 1)
    beam, token = np.take_along_axis(best.beam, order, 1), np.take_along_axis(best.token, order, 1)
    if not (missing := n - order.shape[1]):
        return Continuations(log_p, beam, token)
    room = ((0, 0), (0, missing))
    return Continuations(np.pad(log_p, room, constant_values=-math.inf), np.pad(beam, room), np.pad(token, room))
