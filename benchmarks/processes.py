"""One run on two processes: `python -m benchmarks.processes [--rounds N] [--steps N]` (the extra [distributed]).

The GPT of benchmarks.attention (4 layers of width 256, 16 rows of 256 characters) is trained for a few steps by one
process and by two, each with one thread, in turn, by the command that a user gives. Tokens per second are those that
the run keeps: of the training loop, start and figures left out. The best of all rounds counts for both; goal: 1.5 times
on two cores. `make bench` runs it where SCALE_PYTHON names the python of an environment that has the extras.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.attention import D_MODEL, N_HEADS, N_LAYERS, B, T
from benchmarks.recurrent import cpu_name

GOAL = 1.5
RESULT = Path(__file__).parent / "results" / "processes.json"
SETTINGS: dict[str, Any] = {
    "d_model": D_MODEL, "n_layers": N_LAYERS, "n_heads": N_HEADS, "length": T, "batch_size": B, "threads": 1,
    "tokens": "char", "evaluate_every": 100_000, "evaluate_tokens": 2000, "held_out": 2000, "precision": "fp32",
}  # fmt: skip


def train(processes: int, steps: int, data: str) -> dict[str, float]:
    """Tokens per second in training and the last loss, of a run that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        told = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "unrolled.cli.main", "train", data, "--task", "next-token", "--model"]
        more = ["transformer", "--steps", str(steps), "--processes", str(processes), "-o", f"{folder}/run", *told]
        subprocess.run([*command, *more], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        result = json.loads(Path(folder, "run", "result.json").read_text())
        return {"tokens_per_second": result["tokens_per_second"], "valid": result["valid"]["nats"]}


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rounds", type=int, default=2)
    asked.add_argument("--steps", type=int, default=30)
    asked.add_argument("--data", default="builtin:python-docs")
    given = asked.parse_args()
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    loads = []
    for _ in range(given.rounds):
        for n, each in found.items():
            loads.append(round(os.getloadavg()[0], 1))
            begun = time.monotonic()
            each.append(train(n, given.steps, given.data))
            print(n, each[-1], f"{time.monotonic() - begun:.0f} s in all, load before {loads[-1]}", flush=True)
    best = {n: max(one["tokens_per_second"] for one in each) for n, each in found.items()}
    valid = [one["valid"] for each in found.values() for one in each]
    result = {
        "cpu": cpu_name(), "cores": os.cpu_count(), "steps": given.steps, "rounds": given.rounds, "loads": loads,
        "tokens_per_second": best, "ratio": round(best[2] / best[1], 3), "goal": GOAL,
        "largest_difference_of_loss": max(valid) - min(valid),
    }  # fmt: skip
    print(json.dumps(result))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
