"""The recurrent family against torch.nn: `python -m benchmarks.recurrent [--threads 1 2] [--levels v3] [--repeats 7]`.

Ours and theirs take turns within one run, and the best time of several counts for both, so that a busy machine hurts
them alike; with one thread it is the time of the processor. A training step is forward and backward with gradients of
all weights, at each of the levels of the native kernels (docs/native.md; without an option: off and the one that serves
here). The figures are printed and kept in benchmarks/results/recurrent.json; ticks are the subject of streaming.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.kernels import native
from unrolled.layers.recurrent import deer
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Recurrent

RESULTS = Path(__file__).parent / "results" / "recurrent.json"
SIZES = [(16, 1000, 16, 32), (1, 1024, 64, 128), (32, 128, 64, 128), (64, 256, 128, 256)]  # B, T, D, H
TWINS: list[tuple[str, type[nn.RNNBase], type[Cell]]] = [
    ("gru", nn.GRU, GRU), ("elman", nn.RNN, Elman), ("lstm", nn.LSTM, LSTM),
]  # fmt: skip
BY_LEVEL = {"v3": (13.0, 16.0, 1.8, 1.3), "v4": (15.0, 15.0, 2.2, 1.3), "off": (2.0, 2.0, None, 0.95)}  # of GRU, Elman
LSTMS = {"v3": (1.3, 1.3, 0.98, 0.98), "v4": (1.3, 1.3, 0.98, 0.98), "off": 4 * (0.95,)}
GOALS = {  # the least ratio theirs / ours, by what is run, its size and the level of the kernels
    **{("train", name, size, level): goal for name in ("gru", "elman") for level, goals in BY_LEVEL.items()
       for size, goal in zip(SIZES, goals, strict=True)},
    **{("train", "lstm", size, level): goal for level, goals in LSTMS.items()
       for size, goal in zip(SIZES, goals, strict=True)},
}  # fmt: skip


def interleaved(
    runs: list[Callable[[], Any]], repeats: int, inner: int = 1, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The best seconds of each, measured in turns."""
    best = [float("inf")] * len(runs)
    for run in runs:
        run()
    for _ in range(repeats):
        for i, run in enumerate(runs):
            start = clock()
            for _ in range(inner):
                run()
            best[i] = min(best[i], (clock() - start) / inner)
    return best


def clock() -> Callable[[], float]:
    """With one thread the time of the processor, which work beside ours disturbs less."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def training_step(module: nn.Module, x: Tensor, level: str = "off") -> Callable[[], None]:
    def step() -> None:
        with native.using(level):
            module.zero_grad()
            y: Tensor = module(x)[0]
            y.backward(torch.ones_like(y))

    return step


def bench_training(repeats: int, levels: list[str]) -> list[dict[str, Any]]:
    rows = []
    for size in SIZES:
        B, T, D, H = size
        x = torch.randn(B, T, D)
        for name, theirs, ours in [*TWINS, ("book-gru", nn.GRU, BookGRU)]:
            times = []
            for _ in range(3):  # anew, for where the weights happen to lie in memory decides over a third of some times
                own = Recurrent(ours(D, H))
                runs = [training_step(theirs(D, H, batch_first=True), x)]
                runs += [training_step(own, x, level) for level in levels]
                turns = max(1, repeats // 2) if size == SIZES[-1] else repeats
                times.append(interleaved(runs, turns, clock=clock()))
            best, *bests = map(min, zip(*times, strict=True))
            rows += [row("train", name, size, best, t, level) for level, t in zip(levels, bests, strict=True)]
    return rows


def bench_deer(repeats: int) -> list[dict[str, Any]]:
    """Forward over T = 10,000; on a CPU the gain is the depth, the time is for the record."""
    rows = []
    for H in (2, 8, 16):
        cell, module, x, h0 = GRU(2, H), nn.GRU(2, H, batch_first=True), torch.randn(1, 10_000, 2), torch.zeros(1, H)
        runs: list[Callable[[], Any]] = [
            partial(module, x),
            partial(deer.deer, cell, x, h0),
            partial(fused, cell, x, h0),
        ]
        with torch.no_grad():
            theirs, ours, step_by_step = interleaved(runs, max(2, repeats // 2), clock=clock())
            solution = deer.solve(cell, x, h0)
        found = {"iterations": solution.iterations, "depth": solution.depth, "fused_ms": round(1e3 * step_by_step, 3)}
        rows.append(row("deer forward", "gru", (1, 10_000, 2, H), theirs, ours) | found)
    return rows


def row(
    what: str, name: str, size: tuple[int, ...], theirs: float, ours: float, level: str | None = None
) -> dict[str, Any]:
    level = level or native.loaded().level
    goal = GOALS.get((what, name, size, level))
    result = {"what": what, "cell": name, "size": list(size), "level": level, "torch_ms": round(1e3 * theirs, 4),
              "ours_ms": round(1e3 * ours, 4), "ratio": round(theirs / ours, 3), "goal": goal}  # fmt: skip
    verdict = "" if goal is None else f"  goal {goal:.2f} {'met' if theirs / ours >= goal else 'MISSED'}"
    print(f"{what:12} {name:9} {size!s:22} {level:4} torch.nn {1e3 * theirs:9.3f} ms  ours {1e3 * ours:9.3f} ms  "
          f"ratio {theirs / ours:6.2f}{verdict}", flush=True)  # fmt: skip
    return result


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[torch.get_num_threads()], help="thread counts to run"
    )
    served = native.loaded().level
    parser.add_argument(
        "--levels", nargs="+", default=sorted({"off", served}), help="levels of the kernels to train by"
    )
    parser.add_argument("--repeats", type=int, default=7, help="turns of each; the best counts")
    options = parser.parse_args()
    results = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        print(f"--- {threads} thread(s), {cpu_name()}, torch {torch.__version__}")
        rows = [
            *bench_training(options.repeats, options.levels),
            *bench_deer(options.repeats),
        ]
        results.append({"threads": threads, "rows": rows})
    report = {
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "results": results,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
