"""A recurrent cell that attends to a source: at each tick its own last state asks, and the answer is part of its input.

    alpha^(t) = softmax over tau of s(s^(t-1), v^(tau))          u^(t) = sum_tau alpha_tau^(t) v^(tau)
    s^(t) = f(s^(t-1), [x^(t); u^(t)])

Bahdanau et al. (2015); Liquet, Moka & Nazarathy (2024), eqs (7.20)-(7.22), Fig. 7.10; lecture notes (4.3)-(4.5). Of an
LSTM, h asks. What does not hang on the state is made for all ticks at once: W_x x + b before the first tick, and since

    W [x; u] = W_x x + sum_tau alpha_tau (W_u v^(tau))

also W_u v, once for a source. A tick is left with the scores, one weighted sum and the product with W_hh.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.bare import bare
from unrolled.core.compose import without_padding
from unrolled.core.errors import UsageError
from unrolled.layers.attention.scores import score_named
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, LinearUnit
from unrolled.layers.recurrent.scan import check_sizes


class Attended(NamedTuple):
    """A source as a cell attends to it, made once."""

    keys: Tensor  # [B, S, n] what the score makes of them
    values: Tensor  # v [B, S, D], zero at padding
    entering: Tensor  # W_u v [B, S, G]; without columns for a cell whose equation is not split
    bias: Tensor  # [B, 1, S] added to the scores: 0 where real, -inf at padding


class Steps(NamedTuple):
    """A cell's equation, split where its input comes in as a sum: h = step(cell, W_ih x + b, h')."""

    bias: Callable[[Cell], Tensor | None]  # all that is added before the state is known
    step: Callable[[Cell, Tensor, Tensor], Tensor]  # a [B, G], h' [B, N] -> h [B, N]


def _bias(cell: Cell) -> Tensor | None:
    assert isinstance(cell, Elman | BookGRU)
    return cell.bias


def _step_elman(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    assert isinstance(cell, Elman)
    return cell.activation(torch.addmm(a, h, cell.weight_hh.t()))


def _bias_lstm(cell: Cell) -> Tensor | None:
    assert isinstance(cell, LSTM)
    return None if cell.bias_ih is None or cell.bias_hh is None else cell.bias_ih + cell.bias_hh


def _step_lstm(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    assert isinstance(cell, LSTM)
    h, c = h[:, : cell.output_size], h[:, cell.output_size :]
    i, f, g, o = torch.addmm(a, h, cell.weight_hh.t()).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    if cell.weight_hr is not None:
        h = F.linear(h, cell.weight_hr)
    return torch.cat([h, c], dim=-1)  # [B, N]


def _bias_gru(cell: Cell) -> Tensor | None:
    assert isinstance(cell, GRU)
    return cell.bias_ih


def _step_gru(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    assert isinstance(cell, GRU)
    N = cell.state_size
    b = F.linear(h, cell.weight_hh, cell.bias_hh)  # [B, 3 N]
    r, z = (a[:, : 2 * N] + b[:, : 2 * N]).sigmoid().chunk(2, dim=-1)
    n = torch.addcmul(a[:, 2 * N :], r, b[:, 2 * N :]).tanh()
    return torch.lerp(n, h, z)


def _step_book_gru(cell: Cell, a: Tensor, h: Tensor) -> Tensor:
    assert isinstance(cell, BookGRU)
    N = cell.state_size
    r, u = torch.addmm(a[:, : 2 * N], h, cell.weight_hh[: 2 * N].t()).sigmoid().chunk(2, dim=-1)
    n = torch.addmm(a[:, 2 * N :], r * h, cell.weight_hh[2 * N :].t()).tanh()
    return torch.lerp(h, n, u)


STEPS: dict[type[Cell], Steps] = {  # by exact class: a subclass may have changed the equation
    Elman: Steps(_bias, _step_elman), LinearUnit: Steps(_bias, _step_elman), LSTM: Steps(_bias_lstm, _step_lstm),
    GRU: Steps(_bias_gru, _step_gru), BookGRU: Steps(_bias, _step_book_gru),
}  # fmt: skip


class Aligned(nn.Module):
    """Any cell whose input is x [d_in] and u [d_source] side by side, with a score by which its state asks.

    An inner product needs keys as wide as the state; where they are not, W_k v are the keys (and v the values still).

    >>> aligned = Aligned(GRU(3 + 4, 5), 3, 4, "additive")
    >>> source = aligned.attended(torch.randn(2, 6, 4), torch.ones(2, 6, dtype=torch.bool))
    >>> states, alpha, last = aligned(torch.randn(2, 7, 3), source, torch.zeros(2, 5))
    >>> tuple(states.shape), tuple(alpha.shape), tuple(last.shape)
    ((2, 7, 5), (2, 7, 6), (2, 5))
    """

    def __init__(self, cell: Cell, d_in: int, d_source: int, score: str = "additive") -> None:
        super().__init__()
        if cell.input_size != d_in + d_source:
            raise UsageError(
                f"the cell has input width {cell.input_size}, but input and source have widths {d_in} and {d_source}"
            )
        fits = cell.output_size == d_source or score not in ("dot", "scaled-dot")
        self.cell = cell
        self.d_in, self.d_source = d_in, d_source
        self.W_k = None if fits else nn.Linear(d_source, cell.output_size, bias=False)
        self.score = score_named(score, cell.output_size, d_source if fits else cell.output_size)

    def attended(self, source: Tensor, mask: Tensor) -> Attended:
        """What no tick changes, from source [B, S, D] and mask [B, S]; a row without a source gets u = 0."""
        v = without_padding(source, mask)  # [B, S, D]
        keys = self.score.keys(v if self.W_k is None else self.W_k(v))  # [B, S, n]
        hidden = ~mask & mask.any(1, keepdim=True)
        bias = torch.zeros_like(v[:, None, :, 0]).masked_fill(hidden[:, None], -torch.inf)  # [B, 1, S]
        W_u = self.W_ih[:, self.d_in :]  # [G, D]
        return Attended(keys, v, v @ W_u.to(v).t(), bias)

    @property
    def steps(self) -> Steps | None:
        """The cell's equation where it is known and a call of the cell would be nothing else (`bare`)."""
        return STEPS.get(type(self.cell)) if bare(self.cell) else None

    @property
    def W_ih(self) -> Tensor:
        """[G, d_in + d_source]; no rows for a cell whose equation is not split."""
        W = self.cell.weight_ih if self.steps is not None else torch.zeros(0, self.d_in + self.d_source)
        return cast(Tensor, W)

    def align(self, h: Tensor, source: Attended) -> Tensor:
        """alpha [B, 1, S] of eq. (7.20) for the query s^(t-1)."""
        q = self.cell.output(h).unsqueeze(1)  # [B, 1, m_q]
        return (self.score.meet(q, source.keys) + source.bias).softmax(-1)

    def forward(self, x: Tensor, source: Attended, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [B, T, d_in] and the state before -> the states h_1 .. h_T [B, T, N], alpha [B, T, S] and h_T [B, N]."""
        check_sizes(self.cell, x, h, self.d_in)
        states, alphas = [], []
        steps = self.steps
        if steps is None or source.entering.shape[-1] == 0:  # or it was not so when the source was attended
            for x_t in x.unbind(1):
                alphas.append(self.align(h, source))
                u = (alphas[-1] @ source.values).squeeze(1)  # [B, D]
                h = self.cell(torch.cat([x_t, u], dim=-1), h)
                states.append(h)
            return torch.stack(states, 1), torch.cat(alphas, 1), h
        a = F.linear(x, self.W_ih[:, : self.d_in], steps.bias(self.cell))  # [B, T, G]
        for a_t in a.split(1, dim=1):
            alphas.append(self.align(h, source))
            h = steps.step(self.cell, torch.baddbmm(a_t, alphas[-1], source.entering).squeeze(1), h)
            states.append(h)
        return torch.stack(states, 1), torch.cat(alphas, 1), h
