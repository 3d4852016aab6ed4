"""Layers that obey the laws pass them, however differently they carry their state; compositions derive theirs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.causal import Causal, Conditional
from unrolled.core.compose import Each, Residual, Serial
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed
from unrolled.testing import check_causal, check_conditional

D = 4


class Ring(Causal):
    """A causal convolution; the last inputs are kept in a ring with a counter per row."""

    d_in = D
    receptive_field = 3

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, D, D))

    def forward(self, x, state=None):
        ring, n = (x.new_zeros(len(x), 3, D), torch.zeros(len(x), dtype=torch.long)) if state is None else state
        rows = torch.arange(len(x))
        if torch.is_grad_enabled():
            ring = ring.clone()
        ys = []
        for x_t in x.unbind(1):
            ring[rows, n % 3] = x_t
            ring = ring.clone() if torch.is_grad_enabled() else ring
            ys.append(sum(ring[rows, (n - k) % 3] @ self.w[k] for k in range(3)))
            n = n + 1
        return torch.stack(ys, 1), (ring, n)


class Cached(Causal):
    """Full attention with learned positions; without gradients it writes into the room it was given."""

    d_in = D
    state_grows = True
    max_length = 24

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Embedding(self.max_length, D)
        self.key = nn.Linear(D, D)

    def forward(self, x, state=None):
        if state is None:
            state = {"seen": x.new_zeros(len(x), self.max_length, D), "n": torch.zeros(len(x), dtype=torch.long)}
        n = state["n"]
        if int(n.max()) + x.shape[1] > self.max_length:
            raise UsageError(f"at most {self.max_length} steps")
        at = n[:, None] + torch.arange(x.shape[1])  # [B, T]
        seen = state["seen"].clone() if torch.is_grad_enabled() else state["seen"]
        x = x + self.position(at)
        seen[torch.arange(len(x))[:, None], at] = x
        scores = x @ self.key(seen).mT  # [B, T, max_length]
        scores = scores.masked_fill(torch.arange(self.max_length) > at[..., None], -torch.inf)
        return scores.softmax(-1) @ seen, {"seen": seen, "n": n + x.shape[1]}


class Window(Causal):
    """The mean of the last two inputs, a state that fills up before it stops growing."""

    d_in = D
    receptive_field = 2

    def forward(self, x, state=None):
        seen = x if state is None else torch.cat([state, x], 1)
        line = torch.cat([seen.new_zeros(len(x), max(0, 1 + x.shape[1] - seen.shape[1]), D), seen], 1)
        return (line[:, 1:] + line[:, :-1])[:, -x.shape[1] :], seen[:, -1:]


class LearnedStart(Causal):
    """An Elman layer from a learned initial state, zero at first; torch's own kernel."""

    input_size = D

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(D, D, num_layers=2, batch_first=True, dropout=0.5)
        self.h0 = nn.Parameter(torch.zeros(2, D))

    def forward(self, x, state=None):
        h = (self.h0.expand(len(x), -1, -1) if state is None else state).transpose(0, 1).contiguous()
        y, h = self.rnn(x, h)
        return y, h.transpose(0, 1)


class Attends(Causal):
    """A decoder that attends to a source of unequal lengths, which sits in Fixed."""

    d_in = 6

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(6, D)
        self.sum = LearnedStart()

    def forward(self, x, state=None):
        fixed, inner = state
        source, mask = fixed.tree
        q, inner = self.sum(self.embedding(x), inner["state"])
        scores = (q @ source.mT).masked_fill(~mask[:, None], -torch.inf)
        return q + scores.softmax(-1) @ source, (fixed, {"state": inner})


class Translator(Conditional):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(9, D)
        self.decoder = Attends()

    def condition(self, source, mask):
        v = self.embedding(source) * mask[..., None]
        start = v.sum(1)[:, None].expand(-1, 2, -1)
        return Fixed((v, mask)), {"state": start}


LAYERS = {
    "ring": Ring,
    "cached": Cached,
    "window": Window,
    "learned start": LearnedStart,
    "each": lambda: Each(nn.Sequential(nn.Linear(D, 3), nn.ReLU(), nn.LayerNorm(3))),
    "embedding": lambda: Each(nn.Embedding(7, 3)),
    "serial": lambda: Serial(nn.Linear(5, D), Ring(), nn.Dropout(0.3), Window()),
    "one-hot": lambda: Serial(nn.Embedding.from_pretrained(torch.eye(D)), Ring()),
    "tokens through time": lambda: Serial(nn.Embedding(7, D), LearnedStart(), nn.Linear(D, 7)),
    "residual": lambda: Serial(nn.LayerNorm(D), Residual(Ring()), Residual(nn.Linear(D, D))),
    "nested": lambda: Serial(Serial(Residual(Window()), nn.Tanh()), Residual(Serial(LearnedStart()))),
    "serial with a limit": lambda: Serial(nn.Linear(D, D), Cached()),
}


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_sound_layer_passes(make):
    passed = check_causal(make())
    assert {"form", "state", "saving", "dtype", "causality", "rows", "chunks", "padding"} <= set(passed)


def test_claims_of_compositions():
    layer = Serial(Ring(), nn.Linear(D, D), Window())
    assert layer.receptive_field == 4
    assert Serial(Ring(), LearnedStart()).receptive_field is None
    assert Serial(Ring(), Cached()).state_grows
    assert Serial(Ring(), Cached()).max_length == 24


def test_length_is_a_law_of_layers_with_a_limit():
    assert "length" in check_causal(Cached())
    assert "state size" not in check_causal(Cached())


def test_tied_weights_survive_saving():
    head = nn.Linear(D, 7, bias=False)
    entry = nn.Embedding(7, D)
    head.weight = entry.weight
    assert "saving" in check_causal(Serial(entry, Ring(), head))


def test_conditional_with_attention_passes():
    source = torch.tensor([[1, 2, 3, 4, 5], [8, 7, 6, 5, 4], [0, 1, 0, 2, 2]])
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    passed = check_conditional(Translator(), source, mask, torch.randint(6, (3, 4)))
    assert {"condition", "padding", "causality"} <= set(passed)


@pytest.mark.parametrize("seed", range(3))
def test_seeds_change_the_draws_not_the_verdict(seed):
    assert check_causal(Ring(), seed=seed)
