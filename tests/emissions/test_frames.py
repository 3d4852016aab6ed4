"""Rollouts of frames: draws by temperature, noise that belongs to the bit, chunks that join."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from unrolled.core.errors import DataError, UsageError
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import rollout
from unrolled.emissions.bits import Bits
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent


def constant(p: list[float]):
    def step(x: Tensor, state: object) -> tuple[Tensor, object]:
        return torch.logit(torch.tensor(p)).expand(*x.shape[:2], -1), state

    return step


def draw(step, prompt: Tensor, n: int, temperature: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    bits = Bits(prompt.shape[2])
    with torch.no_grad():
        choose = bits.chooser(Decoding(temperature=temperature))
        frames = list(rollout(step, None, prompt, None, choose, (), n, seed=seed, of=bits))
    return torch.stack([f.tokens for f in frames], 1), torch.stack([f.log_p for f in frames], 1)


def test_bits_are_drawn_with_their_probabilities() -> None:
    p = [0.1, 0.5, 0.97]
    bits, log_p = draw(constant(p), torch.zeros(1, 1, 3), 8000)
    torch.testing.assert_close(bits.mean((0, 1)), torch.tensor(p), atol=0.02, rtol=0)
    q = torch.tensor(p).double()
    wanted = (bits * q.log() + (1 - bits) * (1 - q).log()).sum(-1)
    torch.testing.assert_close(log_p, wanted.double(), atol=1e-6, rtol=0)
    correlation = torch.corrcoef(bits[0, :, :2].T)[0, 1]
    assert abs(correlation.item()) < 0.05


def test_temperature_sharpens_and_flattens() -> None:
    p = [0.3, 0.8]
    cold, _ = draw(constant(p), torch.zeros(1, 1, 2), 50, temperature=0)
    assert cold.unique(dim=1).tolist() == [[[0.0, 1.0]]]
    hot, _ = draw(constant(p), torch.zeros(1, 1, 2), 8000, temperature=3)
    wanted = torch.sigmoid(torch.logit(torch.tensor(p)) / 3)
    torch.testing.assert_close(hot.mean((0, 1)), wanted, atol=0.02, rtol=0)


def test_without_temperature_a_bit_is_set_as_soon_as_it_is_likelier_than_not() -> None:
    p = [0.45, 0.55, 0.5]
    bits, log_p = draw(constant(p), torch.zeros(2, 1, 3), 1, temperature=0)
    assert bits.tolist() == [[[0.0, 1.0, 0.0]]] * 2
    assert log_p.tolist() == [[pytest.approx(math.log(0.55 * 0.55 * 0.5))]] * 2


def test_the_last_frame_is_not_fed() -> None:
    calls = []

    def step(x: Tensor, state: object) -> tuple[Tensor, object]:
        calls.append(tuple(x.shape))
        return torch.zeros_like(x), state

    draw(step, torch.zeros(2, 3, 4), 3)
    assert calls == [(2, 3, 4), (2, 1, 4), (2, 1, 4)]


def test_a_row_is_the_same_alone_in_a_batch_and_resumed() -> None:
    torch.manual_seed(0)
    layer = Recurrent(GRU(4, 4)).eval()
    prompt = torch.randint(0, 2, (3, 2, 4)).float()
    bits, _ = draw(layer, prompt, 12, seed=5)
    alone, _ = draw(layer, prompt[:1], 12, seed=5)
    torch.testing.assert_close(alone, bits[:1])
    later, _ = draw(layer, torch.cat([prompt, bits[:, :7]], 1), 5, seed=5)
    torch.testing.assert_close(later, bits[:, 7:])
    other, _ = draw(layer, prompt, 12, seed=6)
    assert not torch.equal(other, bits)
    assert not torch.equal(bits[0], bits[1])


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(DataError, match="not finite after 1"):
        draw(constant([math.nan]), torch.zeros(1, 1, 1), 3)
    with pytest.raises(UsageError, match="an integer >= 1"):
        draw(constant([0.5]), torch.zeros(1, 1, 1), 0)
    with pytest.raises(UsageError, match="at least one"):
        draw(constant([0.5]), torch.zeros(1, 0, 1), 2)
