"""Causal dilated convolution: the past that it needs is its state, so it streams without computing anything twice.

    y_t = b + sum_{i=0}^{k-1} W_i x_{t - (k-1-i) d}            x_t = 0 before the beginning

k is the kernel, d the dilation, W_i [D', D]. Van den Oord et al. (2016), section 2.1; Bai, Kolter & Koltun (2018),
section 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Causal
from unrolled.core.compose import without_padding
from unrolled.core.errors import UsageError
from unrolled.core.state import State


class Past(NamedTuple):
    """The last (k-1) d inputs. Tick t meets those of its own phase t mod d and no others, so they stand together."""

    taps: Tensor  # [B, d, (k-1) D]: of each phase the inputs x_{t-(k-1)d} .. x_{t-d}, the oldest first
    phase: Tensor  # [B] the phase of the next tick


def in_step(phase: Tensor) -> int | None:
    """The phase that all rows have in common; None where they differ, or where values are not to be looked at."""
    if torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(phase):
        return None
    phases: list[int] = phase.tolist()
    return phases[0] if phases.count(phases[0]) == len(phases) else None


def in_order(past: Past, kernel: int) -> Tensor:
    """The past from the oldest input to the newest [B, (k-1) d, D]; rows may be at unlike phases."""
    taps, d, n = past.taps, past.taps.shape[1], in_step(past.phase)
    if n is None:
        order = (past.phase[:, None] + torch.arange(d, device=taps.device)) % d  # [B, d]
        taps = taps.gather(1, order[:, :, None].expand_as(taps))
    elif n > 0:
        taps = taps.roll(-n, dims=1)
    return taps.unflatten(2, (kernel - 1, -1)).transpose(1, 2).flatten(1, 2)  # [B, (k-1) d, D]


def newest(line: Tensor, kernel: int, dilation: int) -> Tensor:
    """The taps [B, d, (k-1) D] after the end of a line [B, ., D], at phase 0 and in memory of their own."""
    last = line[:, line.shape[1] - (kernel - 1) * dilation :]  # [B, (k-1) d, D]
    by_phase = last.unflatten(1, (kernel - 1, dilation)).transpose(1, 2)  # [B, d, k-1, D]
    return by_phase.clone(memory_format=torch.contiguous_format).flatten(2)


def convolve(line: Tensor, W: Tensor, b: Tensor | None, dilation: int, stride: int = 1) -> Tensor:
    """The convolution of a line [B, (k-1) d + T, D] with W [D', k, D]: y [B, T, D'], or every `stride`-th of them.

    The product is as fast or faster for k = 2, conv2d mostly so for more taps (docs/decisions/0006).
    """
    d, k = dilation, W.shape[1]
    if k == 2:
        old, new = line[:, : line.shape[1] - d : stride], line[:, d::stride]  # [B, T, D]
        return F.linear(torch.cat([old, new], dim=-1), W.flatten(1), b)
    image = line.transpose(1, 2).unsqueeze(2)  # [B, D, 1, .], channels last in memory, so nothing is moved
    W = W.transpose(1, 2).unsqueeze(2)  # [D', D, 1, k]
    return F.conv2d(image, W, b, dilation=(1, d), stride=(1, stride)).squeeze(2).transpose(1, 2)


def right_aligned(x: Tensor, mask: Tensor) -> Tensor:
    """Rows of x [B, S, ..] moved so that each ends at S with its last real step; what stands before them is zero."""
    S = x.shape[1]
    at = torch.arange(S, device=x.device) - (S - mask.sum(1, keepdim=True))  # [B, S]
    index = at.clamp(min=0).view(*at.shape, *[1] * (x.dim() - 2)).expand_as(x)
    return without_padding(x.gather(1, index), at >= 0)


def may_reuse(taps: Tensor, x: Tensor) -> bool:
    """True where a tick may work in the memory of the state, which belongs to no graph (`Causal` sees to that)."""
    if x.shape[1] != 1 or torch.is_grad_enabled() or taps.dtype != x.dtype:
        return False
    return torch.is_inference_mode_enabled() or not taps.is_inference()


class CausalConv(Causal):
    """A causal convolution over time: x [B, T, D] -> y [B, T, D'].

    With gradients on, a state is never modified. With gradients off, one tick works in the memory of the state it was
    given: it reads and writes the k-1 inputs of its phase, whatever the dilation.

    >>> y, past = CausalConv(3, 4, kernel=2, dilation=8)(torch.zeros(2, 5, 3))
    >>> tuple(y.shape), tuple(past.taps.shape), past.phase.tolist()
    ((2, 5, 4), (2, 8, 3), [0, 0])
    """

    d_in: int

    def __init__(self, d_in: int, d_out: int, kernel: int, dilation: int = 1, bias: bool = True) -> None:
        super().__init__()
        for name, value in {"d_in": d_in, "d_out": d_out, "kernel": kernel, "dilation": dilation}.items():
            if value < 1:
                raise UsageError(f"invalid value {name} = {value}: expected an integer >= 1")
        self.d_in, self.d_out, self.kernel, self.dilation = d_in, d_out, kernel, dilation
        self.receptive_field = 1 + (kernel - 1) * dilation
        self.weight = nn.Parameter(torch.empty(d_out, kernel, d_in))  # [D', k, D], W_i = weight[:, i]
        self.bias = nn.Parameter(torch.empty(d_out)) if bias else None
        bound = (kernel * d_in) ** -0.5  # the habit of torch.nn.Conv1d
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.d_in}, {self.d_out}, kernel={self.kernel}, dilation={self.dilation}"

    def matrix(self) -> Tensor:
        """W_0 .. W_{k-1} side by side [D', k D]."""
        return self.weight.flatten(1)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if self.kernel == 1:
            return F.linear(x, self.matrix(), self.bias), ()
        past = self.initial_state(x) if state is None else self.checked(state)
        if may_reuse(past.taps, x) and (n := in_step(past.phase)) is not None:
            return self._tick(x, past, n)
        line = torch.cat([in_order(past, self.kernel), x], dim=1)  # [B, (k-1) d + T, D]
        y = convolve(line, self.matrix().unflatten(1, (self.kernel, -1)), self.bias, self.dilation)
        return y, Past(newest(line, self.kernel, self.dilation), torch.zeros_like(past.phase))

    def thinned(self, line: Tensor, n: int, stride: int) -> Tensor:
        """Outputs back from the end of a line: the last, the one `stride` entries before it, .., n at most.

        The line [B, m, D] holds no more than every d-th tick, the last one among them: its entries are the taps.
        """
        n = min(n, 1 + (line.shape[1] - 1) // stride)
        reach = (n - 1) * stride + self.kernel  # entries that these outputs depend on
        line = F.pad(line, (0, 0, reach - line.shape[1], 0))  # zeros before the beginning, or less of the line
        return convolve(line, self.matrix().unflatten(1, (self.kernel, -1)), self.bias, 1, stride)  # [B, n, D']

    def checked(self, past: Past) -> Past:
        """A state of this layer's own widths."""
        d, n = self.dilation, (self.kernel - 1) * self.d_in
        if past.taps.shape[1:] != (d, n) or past.phase.dim() != 1:
            raise UsageError(
                f"expected taps and phase of {type(self).__name__} of shapes [B, {d}, {n}] and [B], found "
                f"{list(past.taps.shape)} and {list(past.phase.shape)}"
            )
        return past

    def initial_state(self, x: Tensor) -> Past:
        B = x.shape[0]
        taps = x.new_zeros(B, self.dilation, (self.kernel - 1) * self.d_in)  # [B, d, (k-1) D]
        return Past(taps, torch.zeros(B, dtype=torch.long, device=x.device))

    def _tick(self, x: Tensor, past: Past, n: int) -> tuple[Tensor, State]:
        """One tick of rows that are all at phase n, in the memory of the state."""
        taps = past.taps[:, n]  # [B, (k-1) D]
        windows = torch.cat([taps, x.squeeze(1)], dim=1)  # [B, k D]
        y = F.linear(windows, self.matrix(), self.bias)  # [B, D']
        taps.copy_(windows[:, self.d_in :])
        past.phase.fill_((n + 1) % self.dilation)
        return y.unsqueeze(1), past


class NormedConv(CausalConv):
    """A causal convolution whose weights are g V / |V|, length and direction apart (Salimans & Kingma 2016, eq. 2).

    |V| is taken over all that enters one output. g starts at |V|, so the layer begins as the plain one does.
    """

    def __init__(self, d_in: int, d_out: int, kernel: int, dilation: int = 1, bias: bool = True) -> None:
        super().__init__(d_in, d_out, kernel, dilation, bias)
        self.length = nn.Parameter(self.weight.detach().flatten(1).norm(dim=1))  # g [D']

    def matrix(self) -> Tensor:
        V = self.weight.flatten(1)  # [D', k D]
        return V * (self.length / V.norm(dim=1))[:, None]
