"""Long short-term memory (Hochreiter and Schmidhuber 1997) over all ticks:

    i, f, o = sigmoid(W_i. x + W_h. h' + b)      g = tanh(W_ig x + W_hg h' + b_g)      c = f c' + i g      h = o tanh(c)

Back, with k = tanh(c): dc += dh o (1 - k^2); d_i = dc g i (1 - i), d_f = dc c' f (1 - f), d_g = dc i (1 - g^2),
d_o = dh k o (1 - o); dc' = f dc, dh' = g + W_h^T d. Without the native library this is torch's own (oneDNN, cuDNN).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.kernels.native import call, loaded, serving
from unrolled.kernels.unroll import (
    Gradients,
    Kernel,
    at_the_end,
    begun,
    incoming,
    product,
    threads,
    unroll,
)

KIND = 2  # native/api.h
# B N from which on oneDNN is faster, by level (docs/decisions/0031)
ONEDNN_FROM = {"v2": 0, "v3": 1 << 10, "v4": 1 << 12, "neon": 1 << 10}


def lstm_reference(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The equations, tick by tick."""
    (h, c), outputs = h0.chunk(2, -1), []
    for x_t in x.unbind(1):
        i, f, g, o = (F.linear(x_t, W_ih, b_ih) + F.linear(h, W_hh, b_hh)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs, 1), torch.cat([h, c], -1)


def lstm(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    """x [B, T, D], (h_0, c_0) side by side [B, 2 N] -> outputs [B, T, N], the last (h, c) [B, 2 N]."""
    large = h0.numel() // 2 >= ONEDNN_FROM.get(loaded().level, 0)
    if large or h0.numel() == 0 or serving(x, h0, W_ih, W_hh, b_ih, b_hh) is None:
        return lstm_torch(x, h0, W_ih, W_hh, b_ih, b_hh)
    return unroll(LSTMKernel(), x, h0, W_ih, W_hh, b_ih, b_hh)


def lstm_torch(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    h, c = (part.contiguous()[None] for part in h0.chunk(2, -1))  # [1, B, N]
    weights = [w for w in (W_ih, W_hh, b_ih, b_hh) if w is not None]
    y, h, c = torch._VF.lstm(x, (h, c), weights, b_ih is not None, 1, 0.0, torch.is_grad_enabled(), False, True)
    return y, torch.cat([h[0], c[0]], dim=-1)  # [B, T, N], [B, 2 N]


class LSTMKernel(Kernel):
    def reference(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor]:
        return lstm_reference(x, h0, *parameters)

    def forward(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        W_ih, W_hh, b_ih, b_hh = parameters
        assert self.native is not None
        T, B, N = *x.shape[:2], h0.shape[-1] // 2
        bias = b_ih if b_hh is None else b_hh if b_ih is None else b_ih + b_hh
        a, k = F.linear(x, W_ih, bias), x.new_empty(T, B, N)  # [T, B, 4 N]
        h, c = begun(h0[:, :N], T), begun(h0[:, N:], T)  # [T + 1, B, N]
        room = self.room(KIND, False, a, B, N)
        call(self.native, "lstm_forward", T, B, N, a, k, h, c, W_hh.contiguous(), *room, threads(T, B, N, 4))
        return h[1:], torch.cat([h[-1], c[-1]], -1), (h, c, a, k)  # a holds i, f, g, o

    def backward(
        self, x: Tensor, parameters: list[Any], kept: list[Tensor], g: Tensor | None, g_last: Tensor | None, dx: bool
    ) -> Gradients:
        W_ih, W_hh, b_ih, b_hh = parameters
        assert self.native is not None
        h, c, a, k = kept
        g = incoming(g, k)
        T, B, N = g.shape
        d = x.new_empty(T, B, 4 * N)  # gradients of the sums in i, f, g, o
        dh, dc = (at_the_end(part, h[0]) for part in ((None, None) if g_last is None else g_last.chunk(2, -1)))
        room = self.room(KIND, True, d, B, N)
        call(self.native, "lstm_backward", T, B, N, a, k, c, W_hh.contiguous(), g, *g.stride()[:2], dh, dc, d, *room,
             threads(T, B, N, 4))  # fmt: skip
        db = d.sum((0, 1))
        return (
            d @ W_ih if dx else None, torch.cat([dh, dc], -1), product(d, x), product(d, h[:-1]),
            None if b_ih is None else db, None if b_hh is None else db.clone(),
        )  # fmt: skip
