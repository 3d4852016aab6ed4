"""How many patterns memories keep, and how fast they recall: `python -m benchmarks.recall [PIECE ...]`.

    classical     1 % wrong bits of d = 1000, recalled to the end; and without any error
    once          the same after one synchronous update
    polynomial    1 % wrong bits after one update for degrees 2, 3, 4 and several d: the slope of log N over log d
    exponential   10,000 patterns of 64 bits, recalled from 6 flipped bits
    continuous    10,000 normal patterns of 64 numbers with noise of half their deviation, one update
    speed         1,000 queries against 100,000 patterns of 256 numbers, beside the speed of a matrix product

Each piece is kept as benchmarks/results/recall-PIECE.json.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.pieces import run_pieces
from unrolled.layers.memory.capacity import crossing, theory, wrong_share
from unrolled.layers.memory.classical import Classical
from unrolled.layers.memory.continuous import Continuous
from unrolled.layers.memory.dense import Dense
from unrolled.layers.memory.memory import SpinMemory

LEVEL = 0.01


def measured(
    make: Callable[[], SpinMemory], d: int, numbers: list[int], draws: int, once: bool, level: float = LEVEL
) -> dict[str, Any]:
    points = [(n, wrong_share(make, d, n, draws, once)) for n in numbers]
    found = crossing(points, level)
    return {
        "d": d, "draws": draws, "points": points, "patterns": found, "share": None if found is None else found / d,
    }  # fmt: skip


def classical() -> dict[str, Any]:
    d = 1000
    near = [round(share * d) for share in (0.1, 0.12, 0.13, 0.135, 0.14, 0.145, 0.15, 0.16)]
    found = measured(lambda: Classical(d), d, near, 5, once=False)
    few = [round(share * d / (2 * math.log(d))) for share in (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)]
    errors = [(n, wrong_share(lambda: Classical(d), d, n, 20, once=True)) for n in few]
    return {**found, "theory": theory(d, 2, False, LEVEL), "error_free": d / (2 * math.log(d)), "few": errors}


def once() -> dict[str, Any]:
    d = 1000
    numbers = [150, 165, 175, 180, 185, 190, 195, 205, 220]
    found = measured(lambda: Classical(d, updates="synchronous"), d, numbers, 10, once=True)
    return {**found, "theory": theory(d, 2, True, LEVEL)}


def polynomial() -> dict[str, Any]:
    sizes = {2: (100, 200, 400, 800), 3: (40, 60, 90, 130), 4: (20, 28, 40, 56)}
    found = {}
    for degree, widths in sizes.items():
        rows = []
        for d in widths:
            numbers = [
                max(2, round(share * theory(d, degree, True, LEVEL)))
                for share in (0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2, 3)
            ]
            make = lambda d=d, degree=degree: Dense(d, degree, updates="synchronous")  # noqa: E731
            rows.append(measured(make, d, numbers, 5, once=True) | {"theory": theory(d, degree, True, LEVEL)})
        kept = [(math.log(row["d"]), math.log(row["patterns"])) for row in rows if row["patterns"]]
        slope = float(np.polyfit(*zip(*kept), 1)[0])
        found[str(degree)] = {"rows": rows, "slope": slope, "expected": degree - 1}
    return {"level": LEVEL, "degrees": found}


def exponential() -> dict[str, Any]:
    random = torch.Generator().manual_seed(0)
    N, d, flipped = 10_000, 64, 6
    X = torch.randint(0, 2, (N, d), generator=random).float() * 2 - 1
    chosen = torch.rand(N, d, generator=random).argsort(1) < flipped
    memory = Dense(d, None, updates="synchronous")
    memory.store(X)
    before = time.perf_counter()
    after = memory.update(torch.where(chosen, -X, X))
    wrong = int((after != X).any(1).sum())
    return {"patterns": N, "d": d, "flipped": flipped, "queries": N, "not_recalled": wrong, "updates": 1,
            "seconds": round(time.perf_counter() - before, 2)}  # fmt: skip


def continuous() -> dict[str, Any]:
    random = torch.Generator().manual_seed(0)
    N, d, found = 10_000, 64, {}
    X = torch.randn(N, d, generator=random)
    for name, scaled in (("as they are", False), ("mean 0, deviation 1", True)):
        own = (X - X.mean(1, keepdim=True)) / X.std(1, keepdim=True) if scaled else X
        memory = Continuous(d)
        memory.store(own)
        noisy = own + 0.5 * torch.randn(N, d, generator=random)
        error = (memory.update(noisy) - own).norm(dim=1) / own.norm(dim=1)
        found[name] = {"beta": float(memory.beta), "recalled": float((error <= 0.1).double().mean())}
    return {"patterns": N, "d": d, "noise": 0.5, "updates": 1, "found": found}


def speed() -> dict[str, Any]:
    random = torch.Generator().manual_seed(0)
    N, d, B = 100_000, 256, 1000
    X, xi = torch.randn(N, d, generator=random), torch.randn(B, d, generator=random)
    memory = Continuous(d, 1.0)
    memory.store(X)
    a, b = torch.randn(B, d), torch.randn(d, 2048)
    ours, product = [], []
    for _ in range(7):  # one after the other, by processor seconds, so that other work on the machine counts little
        before = time.process_time()
        memory.update(xi)
        ours.append(time.process_time() - before)
        before = time.process_time()
        for _ in range(50):
            a @ b
        product.append((time.process_time() - before) / 50)
    peak, reached = 2 * B * d * 2048 / min(product), 4 * B * d * N / min(ours)
    grown = _grown(lambda: memory.update(xi))
    return {"patterns": N, "d": d, "queries": B, "threads": torch.get_num_threads(), "processor_seconds": min(ours),
            "megabytes": grown, "megabytes_of_all_scores": round(4 * B * N / 2**20),
            "gigaflops": reached / 1e9, "matrix_product_gigaflops": peak / 1e9, "share": reached / peak}  # fmt: skip


def _grown(call: Callable[[], Any]) -> float:
    """Megabytes by which the peak of this process's memory rises in a call."""
    from unrolled.runs.cost import forget_peak, peak_megabytes

    forget_peak()
    before = peak_megabytes() or 0.0
    call()
    return round((peak_megabytes() or 0.0) - before, 1)


PIECES: dict[str, Callable[..., dict[str, Any]]] = {
    "classical": classical, "once": once, "polynomial": polynomial, "exponential": exponential,
    "continuous": continuous, "speed": speed,
}  # fmt: skip

if __name__ == "__main__":
    run_pieces(PIECES, "recall", __doc__)
