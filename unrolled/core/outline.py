"""What a task knows of its training data that settings can be chosen from (training/recipe.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class TokenLook(NamedTuple):
    """How well a linear model of tokens and their pairs predicts validation data."""

    error: float
    spread: float
    """the standard error of it"""
    repeated: int
    """different tokens that training data has at least twice, special ones among them"""
    length: float = 0.0
    """mean number of tokens of a text"""


@dataclass(frozen=True)
class Outline:
    """Separate training examples, how long they are, and what may be done about it; by default nothing is known."""

    n_examples: int = 0
    """0: one stream, or not known"""
    positions: int = 0
    """of all examples"""
    longest: int = 0
    usual: float = 0.0
    """the length of the example that a position is in, on average: that of the long ones, where lengths differ"""
    cut: bool = False
    """whether `batching.chunk` cuts long examples"""
    joined: bool = False
    """whether `ends.input_stride` joins positions: there is one prediction for each input"""

    @property
    def mean(self) -> float:
        return self.positions / max(self.n_examples, 1)
