"""Inverse autoregressive flows: noise becomes a sequence in one parallel pass, whose probability is known.

    x^0 = z,     z_t ~ Logistic(0, 1)
    x^i_t = x^{i-1}_t s^i_t + mu^i_t,        (mu^i_t, log s^i_t) = f^i(x^{i-1}_{<t}, h)           i = 1 .. n

Each f^i is a causal body that reads what the flow before it gave, one step late. So given all noise before t, x^n_t is
a logistic variable with

    mu_t = sum_i mu^i_t prod_{j>i} s^j_t,     s_t = prod_i s^i_t,     x^n_t = z_t s_t + mu_t

Kingma et al. 2016 (eq. 7 to 10); of sound van den Oord et al. 2018 (Parallel WaveNet, eq. 4 to 7). The inverse needs
a step for each t, because what is before t must be known first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Causal
from unrolled.core.compose import Serial
from unrolled.core.state import State
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.conditioning import Told

LEAST, MOST = -7.0, 3.0  # of log s of one flow
FIRST = 0.1  # of the initial weights of a head


class FlowHead(nn.Linear):
    """(mu, log s) of a flow; at first nearly x = e^first z, whatever is read."""

    def __init__(self, d_in: int, first: float) -> None:
        super().__init__(d_in, 2)
        with torch.no_grad():
            self.weight.mul_(FIRST)
            self.bias.copy_(torch.tensor([0.0, first]))

    def forward(self, x: Tensor) -> Tensor:
        mu, log_s = super().forward(x).unbind(-1)
        return torch.stack([mu, log_s.clamp(LEAST, MOST)], dim=-1)  # [B, T, 2]


class Flows(Causal):
    """z [B, T, 1] -> (x, mu, log s) [B, T, 3]; the state is the last input of each flow and the state of its body."""

    d_in = 1
    d_out = 3

    def __init__(self, flows: Sequence[Decoder]) -> None:
        super().__init__()
        self.flows = nn.ModuleList(flows)
        fields = [flow.receptive_field for flow in flows]
        self.receptive_field = None if None in fields else 1 + sum(f for f in fields if f is not None)
        self.max_length = min((f.max_length for f in flows if f.max_length is not None), default=None)
        self.state_grows = any(flow.state_grows for flow in flows)

    def start(self, bodies: Sequence[State], x: Tensor) -> State:
        """The state before the first tick from those of the bodies; x [B, ...] gives rows, type and device."""
        return tuple((x.new_zeros(len(x), 1, 1), body) for body in bodies)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        state = self.start([None] * len(self.flows), x) if state is None else state
        mu, log_s, after = torch.zeros_like(x), torch.zeros_like(x), []
        for flow, (before, inner) in zip(self.flows, state, strict=True):
            y, inner = flow(torch.cat([before, x[:, :-1]], dim=1), inner)  # [B, T, 2]
            after.append((x[:, -1:].clone(), inner))
            m, log = y.split(1, dim=-1)
            x, mu, log_s = x * log.exp() + m, mu * log.exp() + m, log_s + log
        return torch.cat([x, mu, log_s], dim=-1), tuple(after)

    @torch.no_grad()
    def inverse(self, x: Tensor, state: State | None = None) -> tuple[Tensor, Tensor]:
        """The noise z [B, T, 1] that gives x [B, T, 1], and log p(x_t) [B, T]: tick by tick."""
        state = self.start([None] * len(self.flows), x) if state is None else state
        found, log_p = [], []
        for x_t in x.split(1, dim=1):
            told, after = [], []
            for flow, (before, inner) in zip(self.flows, state, strict=True):
                y, inner = flow(before, inner)
                told.append(y)
                after.append(inner)
            h, log_s, inputs = x_t, torch.zeros_like(x_t), []
            for y in reversed(told):
                m, log = y.split(1, dim=-1)
                h, log_s = (h - m) * (-log).exp(), log_s + log
                inputs.append(h)
            state = tuple(zip(reversed(inputs), after, strict=True))
            found.append(h)
            log_p.append((F.logsigmoid(h) + F.logsigmoid(-h) - log_s).squeeze(-1))
        return torch.cat(found, dim=1), torch.cat(log_p, dim=1)


class ToldFlows(Told):
    """p(x | c) by flows, each with the condition beside its input."""

    decoder: Flows

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        mapped = self.outer(torch.tanh(self.inner(source)))  # [B, M, L]
        bodies = []
        for flow in self.decoder.flows:
            body: Serial = flow.body  # type: ignore[assignment]
            held, *others = body
            bodies.append((held.start(mapped, mask), *[None] * len(others)))
        return self.decoder.start(bodies, mapped)
