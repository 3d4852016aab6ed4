"""A small random recurrent model as a bare `step(tokens, state)`, which overwrites its state when it may."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from unrolled.core.state import Fixed

N = 6


class Toy:
    """h_t = tanh(W h_{t-1} + E[token] + source), logits = O h_t; state {"h": [B, N], "source": Fixed [B, N]}."""

    def __init__(self, n_tokens: int, seed: int = 0, sharpness: float = 2.0) -> None:
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.W, self.E, self.O = random(N, N) / 2, random(n_tokens, N), sharpness * random(N, n_tokens)
        self.sources = random(100, N)
        self.n_tokens = n_tokens
        self.fed: list[Tensor] = []  # every chunk of tokens it was called with
        self.fixed: list[int] = []  # where the source lay in memory at each call

    def start(self, rows: int | list[int]) -> dict[str, object]:
        numbers = torch.arange(rows) if isinstance(rows, int) else torch.tensor(rows)
        return {"h": torch.zeros(len(numbers), N, dtype=torch.float64), "source": Fixed(self.sources[numbers])}

    def __call__(self, tokens: Tensor, state: dict) -> tuple[Tensor, dict]:
        self.fed.append(tokens.clone())
        h, source = state["h"], state["source"].tree
        self.fixed.append(source.data_ptr())
        outputs = []
        for t in range(tokens.shape[1]):
            new = torch.tanh(h @ self.W + self.E[tokens[:, t]] + source)
            h = new if torch.is_grad_enabled() else h.copy_(new)
            outputs.append(h @ self.O)
        return torch.stack(outputs, dim=1), {"h": h, "source": state["source"]}

    def log_p(self, row: int, prompt: list[int], tokens: list[int]) -> float:
        """log P(tokens | prompt), scored in one chunk."""
        everything = torch.tensor([[*prompt, *tokens]])
        logits, _ = self(everything, self.start([row]))
        log_q = logits[0].log_softmax(-1)
        return sum(float(log_q[len(prompt) - 1 + i, token]) for i, token in enumerate(tokens))

    def every_sequence(self, row: int, prompt: list[int], stop: int, max_steps: int) -> list[tuple[float, list[int]]]:
        """All finished sequences with their log P, by brute force."""
        others = [token for token in range(self.n_tokens) if token != stop]
        found = []
        for length in range(max_steps):
            for body in itertools.product(others, repeat=length):
                tokens = [*body, stop]
                found.append((self.log_p(row, prompt, tokens), tokens))
        return sorted(found, reverse=True)


@pytest.fixture
def make_toy() -> type[Toy]:
    return Toy
