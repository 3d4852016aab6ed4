"""How many random patterns a memory keeps: the share of wrong bits after recall from the patterns themselves.

    classical, asynchronous to the end     about 0.138 d         Amit, Gutfreund & Sompolinsky (1985)
    classical, one synchronous update      d / z^2               P(wrong) = P(normal > sqrt(d / N)); 0.185 d at 1 %
    without any error                      d / (2 ln d)          McEliece et al. (1987)
    polynomial of degree a, one update     d^(a-1) / (z^2 (2a-3)!!)      Krotov & Hopfield (2016)
    exponential                            2^(d/2)               Demircigil et al. (2017)

z is the quantile of the normal distribution at the share that is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import NormalDist

import torch

from unrolled.layers.memory.memory import SpinMemory

Make = Callable[[], SpinMemory]


def wrong_bits(make: Make, d: int, n: int, draws: int, once: bool, seed: int = 0) -> float:
    """The mean share of wrong bits where n random patterns of d bits are stored, over several draws."""
    found = []
    for draw in range(draws):
        random = torch.Generator().manual_seed(1_000_003 * seed + 1009 * draw + n)
        patterns = torch.randint(0, 2, (n, d), generator=random).float() * 2 - 1
        memory = make()
        memory.store(patterns)
        after = memory.update(patterns) if once else memory.recall(patterns).state
        found.append(float((after != patterns).double().mean()))
    return sum(found) / len(found)


def curve(
    make: Make, d: int, numbers: Sequence[int], draws: int, once: bool, seed: int = 0
) -> Iterator[tuple[int, float]]:
    """Numbers of patterns with the share of wrong bits."""
    for n in numbers:
        yield n, wrong_bits(make, d, n, draws, once, seed)


def crossing(points: Sequence[tuple[int, float]], level: float) -> float | None:
    """The number of patterns at which the share of wrong bits passes a level, on straight lines between the points.

    >>> crossing([(10, 0.0), (20, 0.02)], 0.01)
    15.0
    """
    for (a, low), (b, high) in pairwise(points):
        if low <= level < high:
            return a + (b - a) * (level - low) / (high - low)
    return None


def theory(d: int, degree: int | None, once: bool, level: float) -> float:
    """About how many patterns are kept with this share of wrong bits; `degree` 2: the classical memory, None: the
    exponential interaction."""
    if degree is None:
        return 2.0 ** (d / 2)
    if degree == 2 and not once:
        return 0.138 * d
    z2 = NormalDist().inv_cdf(1 - level) ** 2
    odd = math.prod(range(2 * degree - 3, 0, -2))  # (2a - 3)!!
    return d ** (degree - 1) / (z2 * odd)
