"""One answer for a sequence: averages find a keyword, memory compares the first symbol with the last.

Whether the first symbol is of the kind of the last cannot be seen at any one position: a model without memory stays at
chance where it answers at the last position, and knows little more from an average; one that reads both ways learns it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.spec import Sizes
from unrolled.layers.attention.readout import readout_named
from unrolled.layers.parts.assembled import Reader
from unrolled.objectives.calibration import expected_calibration_error, fit_temperature, reliability
from unrolled.objectives.losses import cross_entropy

V, D = 8, 12


def model_of(name: str, readout: str, **settings: Any) -> nn.Module:
    """Embedding, body, readout and head, as a task puts them together."""
    torch.manual_seed(0)
    module = discover.models.load(name)
    body = module.make(module.Config(**settings), Sizes(D, 2))
    pooled = readout_named(readout, body.d_out)
    return Reader(nn.Embedding(V, D), body, pooled, nn.Linear(pooled.d_out, 2))


def answer(model: nn.Module, tokens: Tensor, mask: Tensor) -> Tensor:
    return model(tokens, mask)[0][:, 0]  # [B, 2]


def batch(n: int, longest: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(V, (n, longest), generator=generator)
    lengths = torch.randint(3, longest + 1, (n,), generator=generator)
    return tokens, torch.arange(longest) < lengths[:, None]


def keyword(tokens: Tensor, mask: Tensor) -> Tensor:
    """Whether symbol 3 occurs."""
    return ((tokens == 3) & mask).any(1).long()


def ends_agree(tokens: Tensor, mask: Tensor) -> Tensor:
    """Parity of the first symbol equals that of the last: both answers are equally frequent."""
    last = tokens.gather(1, mask.sum(1, keepdim=True) - 1)[:, 0]
    return (tokens[:, 0] % 2 == last % 2).long()


def accuracy(model: nn.Module, question: Any, longest: int, steps: int, lr: float = 0.01) -> float:
    optimiser = torch.optim.Adam(model.parameters(), lr)
    for step in range(steps):
        tokens, mask = batch(64, longest, step)
        total, count = cross_entropy(answer(model, tokens, mask), question(tokens, mask), ignore=-1)
        optimiser.zero_grad()
        (total / count).backward()
        optimiser.step()
    model.eval()
    tokens, mask = batch(1000, longest, 10_000)
    with torch.no_grad():
        predicted = answer(model, tokens, mask).argmax(-1)
    return float((predicted == question(tokens, mask)).double().mean())


def test_dan_learns_a_keyword() -> None:
    assert accuracy(model_of("dan", "mean", d_hidden=16, word_dropout=0.05), keyword, 8, 400) > 0.97


def test_bigru_compares_both_ends() -> None:
    assert accuracy(model_of("bigru", "last", d_state=16), ends_agree, 8, 400) > 0.97


@pytest.mark.long
def test_a_memoryless_model_cannot() -> None:
    assert accuracy(model_of("memoryless", "last", d_state=16), ends_agree, 8, 400) < 0.6
    assert accuracy(model_of("memoryless", "mean", d_state=16), ends_agree, 8, 400) < 0.75


def test_attention_pooling_finds_the_position_that_matters() -> None:
    model = model_of("memoryless", "attention", d_state=16)
    assert accuracy(model, keyword, 8, 300) > 0.97


def doubtful(tokens: Tensor, mask: Tensor) -> Tensor:
    """The keyword's label, wrong in one case of five."""
    wrong = torch.rand(len(tokens), generator=torch.Generator().manual_seed(int(tokens.sum()))) < 0.2
    return keyword(tokens, mask) ^ wrong.long()


def test_a_temperature_from_validation_calibrates_held_out_answers() -> None:
    model = model_of("dan", "mean", d_hidden=16, word_dropout=0.0)
    accuracy(model, keyword, 8, 60)  # trained on labels that were never wrong, so it is too sure
    valid, test = batch(1000, 8, 20_000), batch(2000, 8, 30_000)
    with torch.no_grad():
        z_valid, z_test = answer(model, *valid), answer(model, *test)
    T = fit_temperature(z_valid, doubtful(*valid))
    labels = doubtful(*test)
    before = expected_calibration_error(reliability(z_test.softmax(-1), labels))
    after = expected_calibration_error(reliability((z_test / T).softmax(-1), labels))
    assert T > 1.5
    assert before > 0.1
    assert after < before / 2
