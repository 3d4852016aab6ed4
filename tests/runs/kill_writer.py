"""Kill a writer again and again: `kill_writer.py DIRECTORY KILLS` prints what was found as JSON.

One warm process forks children; each child resumes from the latest checkpoint, saves without pause (a checkpoint, the
best weights, a line of metrics) and reports each finished round through a pipe. The parent kills it with SIGKILL at a
random moment and looks whether everything that was reported is still there and whole.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from unrolled.runs.storage.checkpoint import Checkpoints
from unrolled.runs.storage.directory import RunDirectory


def state(step: int) -> dict[str, torch.Tensor]:
    """Tensors from which the step can be told, large enough that a kill often comes within a write."""
    weights = torch.arange(20_000, dtype=torch.float32) + step
    return {"weights": weights, "tied": weights, "step": torch.tensor(step)}


def is_state(tensors: dict[str, torch.Tensor], step: int) -> bool:
    expected = state(step)
    return tensors.keys() == expected.keys() and all(torch.equal(tensors[name], expected[name]) for name in expected)


def seconds_of_a_round(path: Path) -> float:
    """How long a disk takes for what is saved in a round: kills come within one or two."""
    run, checkpoints, started = RunDirectory.create(path), Checkpoints(path / "checkpoints"), time.monotonic()
    for step in range(3):
        run.write_tensors("model.safetensors", state(step))
        checkpoints.save(step, state(step), {"step": step})
    return (time.monotonic() - started) / 3


def write_forever(path: Path, report: int) -> None:
    run = RunDirectory.open(path)
    checkpoints = Checkpoints(path / "checkpoints")
    found = checkpoints.latest()
    step = found.step if found else 0
    run.cut_metrics(step)
    os.write(report, step.to_bytes(8, "little"))  # it begins: only now the time to its end is counted
    while True:
        step += 1
        run.write_tensors("model.safetensors", state(step))
        run.append_metrics({"step": step, "loss": 1 / step})
        checkpoints.save(step, state(step), {"step": step})
        os.write(report, step.to_bytes(8, "little"))


def last_report(pipe: int) -> int:
    data = b""
    while block := os.read(pipe, 65536):
        data += block
    return int.from_bytes(data[-8:], "little")


def look(path: Path, reported: int) -> list[str]:
    """What is wrong after a kill; `reported` is the last round that was finished."""
    wrong = []
    found = Checkpoints(path / "checkpoints").latest()
    if found is None:
        return [f"no checkpoint after step {reported}"] if reported else []
    if not is_state(found.tensors, found.step) or found.notes or found.step < reported:
        wrong.append(f"checkpoint of step {found.step} after {reported}: {found.notes}")
    run = RunDirectory.open(path)
    run.verify()
    tensors = run.read_tensors("model.safetensors")
    best = int(tensors["step"])
    if not is_state(tensors, best) or not reported <= best:
        wrong.append(f"weights of step {best} after {reported}")
    lines = [line["step"] for line in run.read_metrics()]
    if lines != list(range(1, len(lines) + 1)) or len(lines) < reported:
        wrong.append(f"metrics end with {lines[-3:]} after {reported}")
    return wrong


def main(path: Path, kills: int) -> None:
    torch.set_num_threads(1)
    moments = random.Random(0)
    run = RunDirectory.create(path)
    run.write_json("config.json", {})
    reported, wrong, within, started = 0, [], 0, time.monotonic()
    once = seconds_of_a_round(path.with_name("timed"))
    for kill in range(kills):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                write_forever(path, writer)
            finally:
                os._exit(1)
        os.close(writer)
        reported = max(reported, int.from_bytes(os.read(reader, 8), "little"))
        time.sleep(once * moments.uniform(0.1, 2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        reported = max(reported, last_report(reader))
        os.close(reader)
        if not os.WIFSIGNALED(status):
            wrong.append(f"kill {kill}: the writer ended by itself")
        within += any(".tmp-" in file.name for file in path.rglob(".*"))
        try:
            wrong += [f"kill {kill}: {text}" for text in look(path, reported)]
        except Exception as error:  # whatever a reader would meet is a finding
            wrong.append(f"kill {kill}: {type(error).__name__}: {error}")
    RunDirectory(path).sweep()
    left = [file.name for file in path.rglob(".*")]
    names = sorted(entry.name for entry in (path / "checkpoints").iterdir())
    facts = {"kills": kills, "within_a_write": within, "wrong": wrong, "steps": reported, "left": left}
    print(json.dumps(facts | {"checkpoints": names, "seconds": round(time.monotonic() - started, 1)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
