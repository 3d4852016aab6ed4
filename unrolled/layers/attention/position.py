"""Positions: what tells an attention layer, which sees a set, where each element stands.

Every encoding takes absolute positions 0, 1, 2, .. and no other state, so chunks agree with the whole. `Placed` counts
them per row and makes a causal layer of any encoding, `PlacedAll` makes an encoder layer.

The book counts t from 1 and the lecture notes (6.1)-(6.2) from 0: `first` is the number of the first position. A
table is the same either way. Only `Rotary` works on queries and keys instead of the input.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Causal, Encoder
from unrolled.core.errors import UsageError, nearest
from unrolled.core.state import State
from unrolled.layers.recurrent.cells import uniform


class Position(nn.Module):
    """x [B, T, D] and positions `at` [B, T] or [T], counted from 0 -> [B, T, D']."""

    max_length: int | None = None

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.d_in, self.d_out = d_in, d_out

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define forward(x, at)")

    def tick_multiply_adds(self, position: int) -> int:
        """A position is looked up or added."""
        return 0


class OneHot(Position):
    """x~ = (x, e_t): the unit vector of the position appended, D' = D + max_length."""

    def __init__(self, d_in: int, max_length: int) -> None:
        super().__init__(d_in, d_in + max_length)
        self.max_length = max_length

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        e = F.one_hot(at, self.d_out - self.d_in).to(x.dtype)
        return torch.cat([x, e.expand(*x.shape[:2], -1)], dim=-1)  # [B, T, D + max_length]


class Joint(Position):
    """x~ = W_1 S(W_2 x + W_3 e_t + b), S = relu   (eq. 7.28); W_3 e_t is row t of a table."""

    def __init__(self, d_in: int, d_out: int, max_length: int) -> None:
        super().__init__(d_in, d_out)
        self.max_length = max_length
        self.W_1 = uniform(d_out, d_out, d_out)
        self.W_2 = uniform(d_in, d_out, d_in)
        self.W_3 = uniform(d_in, max_length, d_out)  # its columns, one per position
        self.b = uniform(d_in, d_out)

    def tick_multiply_adds(self, position: int) -> int:
        return self.W_1.numel() + self.W_2.numel()

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return F.linear(torch.relu(F.linear(x, self.W_2, self.b) + F.embedding(at, self.W_3)), self.W_1)


class Learned(Position):
    """x~ = x + row t of a learned table."""

    def __init__(self, d_in: int, max_length: int) -> None:
        super().__init__(d_in, d_in)
        self.max_length = max_length
        self.table = nn.Parameter(torch.randn(max_length, d_in).mul_(0.02))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return x + F.embedding(at, self.table)


def angles(at: Tensor, width: int, base: float) -> Tensor:
    """t / M^(2i / p_e) for i = 0 .. p_e/2 - 1: [..., p_e/2] in float64, for positions may be large."""
    i = torch.arange(0, width, 2, dtype=torch.float64, device=at.device)
    return at.unsqueeze(-1) * base ** (-i / width)


def sinusoids(at: Tensor, width: int, base: float = 10_000.0) -> Tensor:
    """r_2i = sin(t / M^(2i / p_e)), r_2i+1 = cos(..)   (eq. 7.29): [..., p_e] in float64.

    The pair (r_2i, r_2i+1) at t + k is the pair at t, rotated by the angle k / M^(2i / p_e), which does not hang on t.

    >>> sinusoids(torch.tensor([0, 1]), 2).round(decimals=3).tolist()
    [[0.0, 1.0], [0.841, 0.54]]
    """
    a = angles(at, width, base)
    return torch.stack([a.sin(), a.cos()], dim=-1).flatten(-2)


class SinusoidAppended(Position):
    """x~ = (x, r)   (eq. 7.29), D' = D + d_position."""

    def __init__(self, d_in: int, d_position: int, base: float = 10_000.0, first: int = 1) -> None:
        super().__init__(d_in, d_in + d_position)
        if d_position % 2:
            raise UsageError(
                f"invalid value d_position = {d_position}: expected an even number, because sinusoids come in pairs"
            )
        self.base, self.first = base, first

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        r = sinusoids(at + self.first, self.d_out - self.d_in, self.base).to(x.dtype)
        return torch.cat([x, r.expand(*x.shape[:2], -1)], dim=-1)  # [B, T, D + p_e]


class SinusoidAdded(Position):
    """x~ = x + r   (eq. 7.30); of an odd width the last cosine is left out."""

    def __init__(self, d_in: int, base: float = 10_000.0, first: int = 1) -> None:
        super().__init__(d_in, d_in)
        self.base, self.first = base, first

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        width = self.d_in + self.d_in % 2
        return x + sinusoids(at + self.first, width, self.base)[..., : self.d_in].to(x.dtype)


class Rotary(nn.Module):
    """Each pair of a query or key is rotated by an angle that grows with its position   (Su et al. 2021).

        (a_i, b_i) -> (a_i cos w - b_i sin w,  b_i cos w + a_i sin w),        w = t / M^(2i / m)

    So q_t . k_tau depends on t - tau alone. a and b are the two halves of the vector.
    """

    def __init__(self, base: float = 10_000.0) -> None:
        super().__init__()
        self.base = base

    def forward(self, z: Tensor, at: Tensor) -> Tensor:
        """z [B, H, T, m], at [T] or [B, T]."""
        w = angles(at if at.dim() == 1 else at.unsqueeze(1), z.shape[-1], self.base)  # [T, m/2] or [B, 1, T, m/2]
        cos, sin = w.cos().to(z.dtype), w.sin().to(z.dtype)
        a, b = z.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def check_length(position: Position, longest: int) -> None:
    """The sentence that is said before any work is done."""
    if position.max_length is not None and longest > position.max_length:
        raise UsageError(
            f"position {longest} is beyond max_length = {position.max_length} of {type(position).__name__}: use "
            "shorter sequences, a larger table (n_positions of a transformer), or positions without a table, "
            "such as sinusoid or rotary"
        )


class Placed(Causal):
    """Any encoding along a stream: the state is each row's number of positions so far, [B].

    >>> y, state = Placed(Learned(4, max_length=8))(torch.zeros(2, 5, 4))
    >>> state.tolist()
    [5, 5]
    """

    receptive_field = 1

    def __init__(self, position: Position) -> None:
        super().__init__()
        self.position = position
        self.max_length = position.max_length
        self.d_in, self.d_out = position.d_in, position.d_out

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        B, T = x.shape[:2]
        steps = torch.arange(T, device=x.device)  # [T]
        if state is not None and state.dim() != 1:
            raise UsageError(f"expected a state of positions of shape [B], found {list(state.shape)}")
        if state is None:
            check_length(self.position, T)
            return self.position(x, steps), steps.new_full((B,), T)
        if self.max_length is not None and not torch.compiler.is_exporting():
            check_length(self.position, int(state.max()) + T)
        if T == 1 and not torch.is_grad_enabled() and (here := state.tolist()).count(here[0]) == B:
            return self.position(x, state[:1]), state + T  # rows at one place, as beams are: it is made once
        return self.position(x, state[:, None] + steps), state + T


class PlacedAll(Encoder):
    """Any encoding of a whole sequence."""

    def __init__(self, position: Position) -> None:
        super().__init__()
        self.position = position
        self.max_length = position.max_length
        self.d_in, self.d_out = position.d_in, position.d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        at = torch.arange(x.shape[1], device=x.device)  # [S]
        if self.max_length is not None:
            if not torch.compiler.is_exporting():
                check_length(self.position, int((mask * (at + 1)).max()))
            at = at.clamp(max=self.max_length - 1)  # padding may stand beyond the table
        return self.position(x.masked_fill(~mask.unsqueeze(-1), 0), at), mask


def position_named(kind: str, d_in: int, d_model: int, max_length: int) -> Position | None:
    """The encoding of an input of width d_in for a body of width d_model; None for rotary and none, which have none.

    What is appended changes the width, so a linear map back to d_model belongs behind it (text after eq. 7.29).
    """
    kinds: dict[str, Callable[[], Position | None]] = {
        "rotary": lambda: None,
        "none": lambda: None,
        "sinusoid": lambda: SinusoidAdded(d_in),
        "sinusoid-appended": lambda: SinusoidAppended(d_in, d_model + d_model % 2),
        "learned": lambda: Learned(d_in, max_length),
        "one-hot": lambda: OneHot(d_in, max_length),
        "joint": lambda: Joint(d_in, d_model, max_length),
    }
    if kind not in kinds:
        raise UsageError(f"there is no position kind '{kind}'; {nearest(kind, kinds)}")
    return kinds[kind]()
