"""What stands before and behind a body: the quick way for one token gives what the plain way gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.layers.parts.embedding import Table


@pytest.mark.parametrize("scale", [1.0, 5**0.5])
def test_a_row_alone_is_the_row_among_others(scale: float) -> None:
    table = Table(7, 5, scale)
    tokens = torch.tensor([[3, 6, 0]])
    with torch.no_grad():
        together = table(tokens)
        alone = [table(tokens[:, t : t + 1]) for t in range(3)]
    torch.testing.assert_close(torch.cat(alone, 1), together)
    torch.testing.assert_close(table(tokens), together)  # and so with gradients


def test_a_scaled_table_begins_with_entries_of_size_one_and_moves_further() -> None:
    table, usual = Table(200, 64, scale=8.0), nn.Embedding(200, 64)
    tokens = torch.arange(200)
    assert table(tokens).std().item() == pytest.approx(1.0, abs=0.05)
    moved = []
    for each in (table, usual):
        optimiser = torch.optim.Adam(each.parameters(), 1e-3)
        before = each(tokens).detach()
        each(tokens).sum().backward()
        optimiser.step()
        moved.append((each(tokens) - before).abs().mean().item())
    assert moved[0] / moved[1] == pytest.approx(8.0, rel=0.01)  # sqrt(64)
