"""Sequence in, sequence out: a short sequence written backwards is learned, and the alignment shows how."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.thorough import every
from unrolled.core.spec import Ports, SourcePorts
from unrolled.core.trace import trace
from unrolled.decode.beam import beam_search
from unrolled.runs.build import build
from unrolled.runs.config import Ends, RunConfig

START, STOP, V = 0, 1, 10


def batch(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Letters of length 3 to 6, their mask, <start> and the letters backwards, and these with <stop> behind."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 7, (rows,), generator=random)
    source = torch.randint(2, V, (rows, 6), generator=random)  # [B, S]
    mask = torch.arange(6) < lengths[:, None]
    x, y = torch.full((rows, 7), STOP), torch.full((rows, 7), -100)
    for i, n in enumerate(lengths.tolist()):
        backwards = source[i, :n].flip(0)
        x[i, 0], x[i, 1 : n + 1] = START, backwards
        y[i, :n], y[i, n] = backwards, STOP
    return source, mask, x, y


SETTINGS = {
    "seq2seq": ({"d_state": 32}, 250, 1e-2),
    "encdec-transformer": ({"d_model": 32, "n_layers": 1, "n_heads": 2, "d_ff": 64}, 400, 1e-2),
}


@pytest.mark.parametrize("name", every(2, SETTINGS))
def test_reversal_is_learned(name: str) -> None:
    own, steps, lr = SETTINGS[name]
    config = RunConfig(model=name, model_settings=own, ends=Ends(d_embedding=32))
    model = build(config, Ports(V, V, source=SourcePorts(V)), ("conditional",))
    optimiser = torch.optim.Adam(model.parameters(), lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, lr, total_steps=steps)
    for step in range(steps):
        source, mask, x, y = batch(48, step)
        logits, _ = model.decoder(x, model.condition(source, mask))
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    source, mask, x, y = batch(100, 10_000)
    with torch.no_grad():
        found = beam_search(model.decoder, model.condition(source, mask), torch.full((100,), START), STOP, 3, 8)
    right = [best[0].tokens == row[row >= 0].tolist() for best, row in zip(found, y, strict=True)]
    assert sum(right) >= 95
    if name == "seq2seq":
        with torch.no_grad(), trace() as seen:
            model.decoder(x, model.condition(source, mask))
        alpha = seen["attention"][0][:, 0]  # [B, T, S]
        at = mask.sum(1, keepdim=True) - 1 - torch.arange(7)  # [B, T] where the letter that is written stands
        off = (alpha.argmax(-1) - at).abs()[at >= 0]
        assert (off <= 1).float().mean() > 0.9
