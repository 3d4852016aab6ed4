"""How often intervals cover the truth, and equal models are called different: `python -m benchmarks.coverage`.

Draws test sets whose truth is known and writes results/coverage.json: for rates and for means the share of intervals
that cover the truth (95 % is said), and the share of equal pairs that are called significantly different (at most 5 %
is said), for ours and for the percentile bootstrap.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unrolled.comparison.statistics import Array, Sample, interval, is_better
from unrolled.core.metric import Metric

SIZES = (5, 10, 30, 100)
TIMES, DRAWS = 400, 300
RESULT = Path(__file__).parent / "results" / "coverage.json"
LOSS = Metric("loss")


def sample(x: Array, formula: str) -> Sample:
    return Sample(np.stack([x, np.ones_like(x)], axis=1)[None], formula)


def bootstrap(x: Array, random: np.random.Generator) -> tuple[float, float]:
    w = random.multinomial(len(x), np.full(len(x), 1 / len(x)), size=DRAWS) / len(x)
    low, high = np.percentile(w @ x, (2.5, 97.5))
    return float(low), float(high)


def covered(
    draw: Callable[[int], Array], truth: float, formula: str, n: int, random: np.random.Generator
) -> list[float]:
    found = np.zeros(2)
    for _ in range(TIMES):
        x = draw(n)
        ends = interval(sample(x, formula)), bootstrap(x, random)
        found += [each is not None and each[0] <= truth <= each[1] for each in ends]
    return [round(float(each), 3) for each in found / TIMES]


def called(draw: Callable[[int], Array], formula: str, n: int, random: np.random.Generator) -> list[float]:
    found = np.zeros(2)
    for _ in range(TIMES):
        x, y = draw(n), draw(n)
        one, other = sample(x, formula), sample(y, formula)
        low, high = bootstrap(x - y, random)
        found += [is_better(LOSS, one, other) or is_better(LOSS, other, one), low > 0 or high < 0]
    return [round(float(each), 3) for each in found / TIMES]


def main() -> None:
    random = np.random.default_rng(0)
    rates = {f"rate {p}": (lambda n, p=p: (random.random(n) < p).astype(float), p) for p in (0.01, 0.05, 0.1, 0.3, 0.5)}
    means = {
        "normal": (lambda n: random.normal(1, 1, n), 1.0),
        "exponential": (lambda n: random.exponential(1, n), 1.0),
        "square of normal": (lambda n: random.normal(0, 1, n) ** 2, 1.0),
    }
    found: dict[str, dict[str, dict[str, list[float]]]] = {"covered": {}, "called different": {}}
    for formula, kinds in (("rate", rates), ("ratio", means)):
        for name, (draw, truth) in kinds.items():
            found["covered"][name] = {str(n): covered(draw, truth, formula, n, random) for n in SIZES}
            found["called different"][name] = {str(n): called(draw, formula, n, random) for n in SIZES}
    RESULT.write_text(
        json.dumps({"times": TIMES, "columns": ["ours", "percentile bootstrap"], **found}, indent=1) + "\n"
    )
    for what, table in found.items():
        print(f"\n| {what} (ours; bootstrap) | {' | '.join(f'n = {n}' for n in SIZES)} |\n|{'---|' * (len(SIZES) + 1)}")
        for name, row in table.items():
            print(f"| {name} | {' | '.join(f'{one:.3f}; {other:.3f}' for one, other in row.values())} |")


if __name__ == "__main__":
    main()
