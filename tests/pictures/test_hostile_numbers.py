"""Numbers of saved pictures that nobody would have written."""

from __future__ import annotations

import pytest

from unrolled.pictures.kinds import Tokens
from unrolled.pictures.markup import ends, strength


@pytest.mark.parametrize("low", [0.0, 5.0, 1e20, 1e308])
def test_colours_begin_and_end_at_different_numbers(low: float) -> None:
    picture = Tokens(title="t", alt="a", tokens=["a", "b"], values=[1.0, 2.0], low=low)
    first, last = ends(picture)
    assert last > first
    assert -1 <= strength(1.0, first, last) <= 1
