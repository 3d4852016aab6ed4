"""How many random patterns a memory keeps: what is wrong after recall from the patterns themselves.

Of bits that is the share of wrong ones, of numbers (normal, variance 1) the share of patterns that are not recalled
within a tenth of their length.

    classical, asynchronous to the end     about 0.138 d         Amit, Gutfreund & Sompolinsky (1985)
    classical, one synchronous update      d / z^2               P(wrong) = P(normal > sqrt(d / N)); 0.185 d at 1 %
    without any error                      d / (2 ln d)          McEliece et al. (1987)
    polynomial of degree a, one update     d^(a-1) / (z^2 (2a-3)!!)      Krotov & Hopfield (2016)
    exponential                            2^(d/2)               Demircigil et al. (2017)
    numbers                                E[1 - P(z < |x|)^(N-1)] = share: others are more like x than x itself

z is the quantile of the normal distribution at the share that is allowed, or a normal number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import NormalDist

import torch

from unrolled.layers.memory.memory import Memory, SpinMemory

Make = Callable[[], Memory]
CLOSE = 0.1  # distance to a pattern of numbers, relative to its length, below which it is recalled


def wrong_share(make: Make, d: int, n: int, draws: int, once: bool, seed: int = 0) -> float:
    """The share that is wrong where n random patterns of d bits or numbers are stored: the mean of several draws."""
    found = []
    for draw in range(draws):
        random = torch.Generator().manual_seed(1_000_003 * seed + 1009 * draw + n)
        memory = make()
        bits = isinstance(memory, SpinMemory)
        x = (
            torch.randint(0, 2, (n, d), generator=random).float() * 2 - 1
            if bits
            else torch.randn(n, d, generator=random)
        )
        memory.store(x)
        after = memory.update(x) if once else memory.recall(x).state
        wrong = after != x if bits else (after - x).norm(dim=1) > CLOSE * x.norm(dim=1)
        found.append(float(wrong.double().mean()))
    return sum(found) / len(found)


def curve(
    make: Make, d: int, numbers: Sequence[int], draws: int, once: bool, seed: int = 0
) -> Iterator[tuple[int, float]]:
    """Numbers of patterns with the share that is wrong."""
    for n in numbers:
        yield n, wrong_share(make, d, n, draws, once, seed)


def crossing(points: Sequence[tuple[int, float]], level: float) -> float | None:
    """The number of patterns at which the share that is wrong passes a level, on straight lines between the points.

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


def theory_of_numbers(d: int, level: float) -> float:
    """About how many normal patterns of d numbers there are where this share of them is not separated from the others,
    Delta_n <= 0 (layers/memory/continuous.py), and so is not recalled under any beta.

    The products with the others are normal with deviation |x|, and |x| has d degrees of freedom.
    """
    r = torch.linspace(1e-3, d**0.5 + 10, 4001, dtype=torch.double)  # |x|
    density, below = ((d - 1) * r.log() - r.square() / 2).softmax(0), torch.special.log_ndtr(r)
    low, high = 0.0, math.log(1e300)
    for _ in range(60):
        middle = (low + high) / 2
        lost = -torch.expm1(math.exp(middle) * below)  # of patterns of this length, with exp(middle) others
        low, high = (middle, high) if float((density * lost).sum()) < level else (low, middle)
    return 1 + math.exp(high)
