"""What other engines cost beside the processes of one machine: `python -m benchmarks.scale [--rounds N] [--steps N]`.

The same 24 runs on two cores, one thread each: by `compare`, by two processes that `--join` a plan, and by
`--engine ray` (the extra [ray]), in turn. Wall-clock time of the whole, planning, start and table included; ratios to
the process engine of the best of all rounds, with the load of the machine before each.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS, SEEDS = "elman,gru", 8  # and memoryless, which every comparison has: 24 runs
RESULT = Path(__file__).parent / "results" / "scale.json"
COMMAND = [sys.executable, "-m", "unrolled.cli.main", "compare"]


def words(steps: int) -> list[str]:
    return ["builtin:unicode-names", "--models", MODELS, "--seeds", str(SEEDS), "--steps", str(steps), "--jobs", "2",
            "--no-ensemble", "--set", "threads=1", "--set", "gru.d_state=64", "--set", "elman.d_state=64"]  # fmt: skip


def run(*more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        if process.wait() != 0:
            raise SystemExit(f"{' '.join(map(str, process.args))} ended with exit code {process.returncode}")


def by_processes(out: str, steps: int) -> None:
    wait(run(*words(steps), "-o", out))


def by_joining(out: str, steps: int) -> None:
    wait(run(*words(steps), "--plan-only", "-o", out))
    wait(*(run("--join", out) for _ in range(2)))
    wait(run("--collect", out))


def by_ray(out: str, steps: int) -> None:
    wait(run(*words(steps), "--engine", "ray", "-o", out))


def scores(out: str) -> list[object]:
    rows = json.loads(Path(out, "table.json").read_text())["rows"]
    return sorted((row["label"], row["valid"], row["score"]) for row in rows)


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--steps", type=int, default=400)
    given = asked.parse_args()
    engines = {"processes": by_processes, "join": by_joining}
    if importlib.util.find_spec("ray") is not None:
        engines["ray"] = by_ray
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    loads, found = [], set()
    for _ in range(given.rounds):
        for name, engine in engines.items():
            with tempfile.TemporaryDirectory() as folder:
                loads.append(round(os.getloadavg()[0], 1))
                begun = time.monotonic()
                engine(f"{folder}/c", given.steps)
                seconds[name].append(round(time.monotonic() - begun, 1))
                found.add(json.dumps(scores(f"{folder}/c")))
            print(name, seconds[name][-1], "s, load before", loads[-1], flush=True)
    best = {name: min(each) for name, each in seconds.items()}
    result = {
        "runs": 24, "steps": given.steps, "cores": os.cpu_count(), "rounds": given.rounds, "loads": loads,
        "ratios": {name: round(best[name] / best["processes"], 3) for name in engines}, "same_scores": len(found) == 1,
    }  # fmt: skip
    print(json.dumps(result))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
