"""Cells: the mathematics of one tick, h = cell(x_t, h'), with ONE state tensor [B, N].

How a cell is run along time (step by step, by a fast kernel, in parallel) is the business of a scan; see `scan.py`.
A new cell says its sizes and its equation, and every scan, stack, inspector and check accepts it:

>>> class Leaky(Cell):
...     '''h = a h' + (1 - a) x.'''
...     def __init__(self, d_in: int) -> None:
...         super().__init__(d_in, d_in)
...         self.a = nn.Parameter(torch.tensor(0.9))
...     def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
...         return self.a * h + (1 - self.a) * x_t
>>> Leaky(3)(torch.ones(2, 3), torch.zeros(2, 3))[0, 0].item() < 0.2
True
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.errors import UsageError, nearest

Activation = Callable[[Tensor], Tensor]


def identity(z: Tensor) -> Tensor:
    return z


def softmax(z: Tensor) -> Tensor:
    return z.softmax(-1)


ACTIVATIONS: dict[str, Activation] = {
    "tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "identity": identity, "softmax": softmax,
}  # fmt: skip


def activation_named(activation: str | Activation) -> Activation:
    """The function behind a name; a function stands for itself."""
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise UsageError(f"there is no activation '{activation}'; {nearest(activation, ACTIVATIONS)}")
    return ACTIVATIONS[activation]


class Cell(nn.Module):
    """One tick: x_t [B, D] and the previous state h [B, N] -> the next state [B, N]; `output` reads y [B, D'] off it.

    Both treat every row alone and accept more leading axes ([B, T, D] for all ticks at once), which is what lets
    scans project all inputs in one product and solvers evaluate all ticks in parallel.
    """

    receptive_field: int | None = None  # how many inputs up to t reach the state at t; None: the whole past

    def __init__(self, input_size: int, state_size: int, output_size: int | None = None) -> None:
        super().__init__()
        self.input_size = input_size
        self.state_size = state_size
        self.output_size = state_size if output_size is None else output_size

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define forward(x_t, h) -> h")

    def output(self, h: Tensor) -> Tensor:
        return h

    def parts(self, h: Tensor) -> dict[str, Tensor]:
        """The state by what it is made of, for looking inside; a packed state names its parts."""
        return {"state": h}

    def gates(self, x_t: Tensor, h: Tensor) -> dict[str, Tensor]:
        """Of a gated cell, what its gates and its candidate are, by name."""
        return {}

    def recurrent_matrix(self) -> Tensor | None:
        """What the last state is multiplied by, [gates * N, N]; None: no such matrix."""
        return None


def uniform(width: int, *shape: int) -> nn.Parameter:
    """U(-1/sqrt(width), 1/sqrt(width)), the initialisation of torch.nn's recurrent layers."""
    bound = width**-0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


class Memoryless(Cell):
    """h = sigma(W_ih x + b): each tick decided alone, the baseline that shows what memory is worth."""

    receptive_field = 1

    def __init__(self, d_in: int, d_state: int, activation: str | Activation = "tanh") -> None:
        super().__init__(d_in, d_state)
        self.activation = activation_named(activation)
        self.weight_ih = uniform(d_state, d_state, d_in)
        self.bias = uniform(d_state, d_state)

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        return self.activation(F.linear(x_t, self.weight_ih, self.bias))


class Elman(Cell):
    """h = sigma(W_hh h' + W_ih x + b)   (Elman 1990; book eq. 7.2), with one bias where torch.nn.RNN has two."""

    def __init__(
        self, d_in: int, d_state: int, activation: str | Activation = "tanh", bias: bool = True
    ) -> None:  # fmt: skip
        super().__init__(d_in, d_state)
        self.activation = activation_named(activation)
        self.weight_ih = uniform(d_state, d_state, d_in)
        self.weight_hh = uniform(d_state, d_state, d_state)
        self.bias = uniform(d_state, d_state) if bias else None

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        return self.activation(F.linear(h, self.weight_hh) + F.linear(x_t, self.weight_ih, self.bias))

    def recurrent_matrix(self) -> Tensor:
        return self.weight_hh


class LinearUnit(Elman):
    """h = W_hh h' + W_ih x: the linear recurrent unit (W_rec = W_hh, W_in = W_ih).

    With the shift matrix as W_hh the state holds the last inputs, and a linear read-out is an AR model.
    """

    def __init__(self, d_in: int, d_state: int) -> None:
        super().__init__(d_in, d_state, activation="identity", bias=False)


def long_memory(bias: Tensor, steps: int) -> None:
    """Set the bias of a gate that keeps to log u, u uniform in [1, T - 1]: units forget within 1 to T steps.

    A unit whose gate is sigmoid(log u) = u / (1 + u) halves what it holds in about u steps: Tallec & Ollivier (2018),
    section 2, there called chrono initialisation.
    """
    with torch.no_grad():
        bias.uniform_(1, max(steps - 1, 1)).log_()


class LSTM(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; book eqs 7.16-7.17):

        i, f, o = sigmoid(W_i. x + W_h. h' + b)      g = tanh(W_ig x + W_hg h' + b_g)
        c = f c' + i g                               h = o tanh(c)        (d_proj: h = W_hr (o tanh(c)))

    The state packs (h, c) side by side; y = h. Names, gate order i, f, g, o and the two biases are those of
    torch.nn.LSTM, so weights interchange.
    """

    def __init__(self, d_in: int, d_state: int, d_proj: int | None = None, bias: bool = True) -> None:
        d_out = d_state if d_proj is None else d_proj
        super().__init__(d_in, d_out + d_state, d_out)
        self.weight_ih = uniform(d_state, 4 * d_state, d_in)
        self.weight_hh = uniform(d_state, 4 * d_state, d_out)
        self.bias_ih = uniform(d_state, 4 * d_state) if bias else None
        self.bias_hh = uniform(d_state, 4 * d_state) if bias else None
        self.weight_hr = None if d_proj is None else uniform(d_state, d_proj, d_state)

    def remember(self, steps: int) -> LSTM:
        """Begin with memories of 1 to `steps` ticks: the forget gate by `long_memory`, the input gate its opposite."""
        assert self.bias_ih is not None
        assert self.bias_hh is not None
        i, f, _, _ = self.bias_ih.detach().chunk(4)
        long_memory(f, steps)
        i.copy_(-f)
        self.bias_hh.detach()[: 2 * len(f)] = 0
        return self

    def gates(self, x_t: Tensor, h: Tensor) -> dict[str, Tensor]:
        h = self.output(h)
        z = F.linear(x_t, self.weight_ih, self.bias_ih) + F.linear(h, self.weight_hh, self.bias_hh)  # [B, 4 H]
        i, f, g, o = z.chunk(4, dim=-1)
        return {"input": i.sigmoid(), "forget": f.sigmoid(), "candidate": g.tanh(), "output": o.sigmoid()}

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        c = h[..., self.output_size :]  # [B, H]
        gate = self.gates(x_t, h)
        c = gate["forget"] * c + gate["input"] * gate["candidate"]
        h = gate["output"] * c.tanh()
        if self.weight_hr is not None:
            h = F.linear(h, self.weight_hr)
        return torch.cat([h, c], dim=-1)  # [B, N]

    def output(self, h: Tensor) -> Tensor:
        return h[..., : self.output_size]

    def parts(self, h: Tensor) -> dict[str, Tensor]:
        return {"state": h[..., : self.output_size], "cell": h[..., self.output_size :]}

    def recurrent_matrix(self) -> Tensor:
        return self.weight_hh


class GRU(Cell):
    """Gated recurrent unit as in torch.nn.GRU: the reset gate acts AFTER the matrix product (after Cho et al. 2014).

        r, z = sigmoid(W_i. x + b_i. + W_h. h' + b_h.)
        n = tanh(W_in x + b_in + r (W_hn h' + b_hn))
        h = (1 - z) n + z h'

    Here z KEEPS the old state (z = 1 - u of `BookGRU`). Only this form loads the weights of torch.nn.GRU.
    """

    def __init__(self, d_in: int, d_state: int, bias: bool = True) -> None:
        super().__init__(d_in, d_state)
        self.weight_ih = uniform(d_state, 3 * d_state, d_in)
        self.weight_hh = uniform(d_state, 3 * d_state, d_state)
        self.bias_ih = uniform(d_state, 3 * d_state) if bias else None
        self.bias_hh = uniform(d_state, 3 * d_state) if bias else None

    def remember(self, steps: int) -> GRU:
        """Begin with memories of 1 to `steps` ticks: z by `long_memory`."""
        assert self.bias_ih is not None
        assert self.bias_hh is not None
        _, z, _ = self.bias_ih.detach().chunk(3)
        long_memory(z, steps)
        self.bias_hh.detach().chunk(3)[1].zero_()
        return self

    def gates(self, x_t: Tensor, h: Tensor) -> dict[str, Tensor]:
        i_r, i_z, i_n = F.linear(x_t, self.weight_ih, self.bias_ih).chunk(3, dim=-1)  # 3 x [B, N]
        h_r, h_z, h_n = F.linear(h, self.weight_hh, self.bias_hh).chunk(3, dim=-1)  # 3 x [B, N]
        r = (i_r + h_r).sigmoid()
        z = (i_z + h_z).sigmoid()
        return {"reset": r, "update": z, "candidate": (i_n + r * h_n).tanh()}

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        gate = self.gates(x_t, h)
        z, n = gate["update"], gate["candidate"]
        return (1 - z) * n + z * h

    def recurrent_matrix(self) -> Tensor:
        return self.weight_hh


class BookGRU(Cell):
    """Gated recurrent unit as in the book, eqs (7.18)-(7.19): the reset gate acts BEFORE the matrix product.

        r, u = sigmoid(W_h. h' + W_i. x + b)
        n = tanh(W_hn (r h') + W_in x + b_n)
        h = (1 - u) h' + u n

    Here u lets the NEW state in (u = 1 - z of `GRU`). One bias per gate; rows stand in the order r, u, n. The two forms
    are different functions: weights of torch.nn.GRU do not fit here.
    """

    def __init__(self, d_in: int, d_state: int, bias: bool = True) -> None:
        super().__init__(d_in, d_state)
        self.weight_ih = uniform(d_state, 3 * d_state, d_in)
        self.weight_hh = uniform(d_state, 3 * d_state, d_state)
        self.bias = uniform(d_state, 3 * d_state) if bias else None

    def remember(self, steps: int) -> BookGRU:
        """Begin with memories of 1 to `steps` ticks: 1 - u by `long_memory`."""
        assert self.bias is not None
        _, u, _ = self.bias.detach().chunk(3)
        long_memory(u, steps)
        u.neg_()
        return self

    def gates(self, x_t: Tensor, h: Tensor) -> dict[str, Tensor]:
        N = self.state_size
        i_r, i_u, i_n = F.linear(x_t, self.weight_ih, self.bias).chunk(3, dim=-1)  # 3 x [B, N]
        h_r, h_u = F.linear(h, self.weight_hh[: 2 * N]).chunk(2, dim=-1)  # 2 x [B, N]
        r = (h_r + i_r).sigmoid()
        u = (h_u + i_u).sigmoid()
        return {"reset": r, "update": u, "candidate": (F.linear(r * h, self.weight_hh[2 * N :]) + i_n).tanh()}

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        gate = self.gates(x_t, h)
        u, n = gate["update"], gate["candidate"]
        return (1 - u) * h + u * n

    def recurrent_matrix(self) -> Tensor:
        return self.weight_hh


class Feedback(Cell):
    """A cell whose own last output y' is part of its next input: an inner cell, a way to merge x and y', a read-out.

    What is carried of the output is z, before sigma_y, and z is also what `output` gives, so that losses and samplers
    get logits; y' = sigma_y(z'). The zero state stands for y' = sigma_y(0), which for softmax is uniform.
    Free-running this is a cell like others; with the true y' given as data the same weights run as `Forced`.
    """

    def __init__(self, d_in: int, inner: Cell, d_out: int, memory: int, output_activation: str | Activation) -> None:
        super().__init__(d_in, memory + d_out, d_out)
        self.inner = inner
        self.memory = memory  # how much of the inner state is carried from tick to tick
        self.output_activation = activation_named(output_activation)
        self.weight_yh = uniform(inner.output_size, d_out, inner.output_size)
        self.bias_y = uniform(inner.output_size, d_out)

    def merge(self, x_t: Tensor, y: Tensor) -> Tensor:
        """The inner cell's input made of x_t and y' (with leading axes [B] or [B, T])."""
        raise NotImplementedError(f"{type(self).__name__} must define merge(x_t, y) -> input of the inner cell")

    def read(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight_yh, self.bias_y)

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        y = self.output_activation(self.output(h))  # [B, q]
        h = self.inner(self.merge(x_t, y), h[..., : self.memory])
        z = self.read(self.inner.output(h))
        return torch.cat([h, z], dim=-1) if self.memory else z

    def output(self, h: Tensor) -> Tensor:
        return h[..., self.memory :]

    def parts(self, h: Tensor) -> dict[str, Tensor]:
        fed_back = {"output": self.output(h)}
        return {"state": h[..., : self.memory], **fed_back} if self.memory else fed_back


class Jordan(Feedback):
    """h = sigma_h(W_hx x + W_hy y' + b_h), z = W_yh h + b_y, y = sigma_y(z)   (Jordan 1986).

    The only memory is the output: the state is z [B, q], and `output` is z too (logits), not y. W_hx and W_hy stand
    side by side in `inner.weight_ih`.
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int,
        d_out: int,
        activation: str | Activation = "tanh",
        output_activation: str | Activation = "softmax",
    ) -> None:
        super().__init__(d_in, Memoryless(d_in + d_out, d_hidden, activation), d_out, 0, output_activation)

    def merge(self, x_t: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x_t, y], dim=-1)


class OutputFeedback(Feedback):
    """Book eq. (7.3): h = S_h(W_hh h' + W_hx (x + T(y')) + b_h), z = W_yh h + b_y, y = S_y(z).

    T is a learned matrix `weight_t` from the width of y to that of x, or with `transform="identity"`, where the widths
    must agree, y' itself. The state packs (h, z); `output` is z (logits), not y.
    """

    def __init__(
        self,
        d_in: int,
        d_state: int,
        d_out: int,
        activation: str | Activation = "tanh",
        output_activation: str | Activation = "softmax",
        transform: str = "linear",
    ) -> None:
        if transform not in ("linear", "identity") or (transform == "identity" and d_in != d_out):
            raise UsageError(
                f"invalid value transform='{transform}' with widths {d_in} (x) and {d_out} (y): "
                "expected 'linear', or 'identity' when the widths agree"
            )
        super().__init__(d_in, Elman(d_in, d_state, activation), d_out, d_state, output_activation)
        self.weight_t = uniform(d_out, d_in, d_out) if transform == "linear" else None

    def merge(self, x_t: Tensor, y: Tensor) -> Tensor:
        return x_t + (y if self.weight_t is None else F.linear(y, self.weight_t))
