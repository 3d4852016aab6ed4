"""Processes of one run that are really started: by this one, and by torchrun (needs lightning-fabric)."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import unrolled
from tests.training.conftest import SMALL
from unrolled.core.errors import Interrupted
from unrolled.runs.run import Run, load
from unrolled.training.launching import _free_port
from unrolled.training.progress import Quiet

pytest.importorskip(
    "lightning_fabric", reason="several processes need lightning-fabric: pip install 'unrolled[distributed]'"
)

Fit = Callable[..., Run]
FEW = {"steps": 50, "save_every": 1000}
KILLED = """
import os, signal, sys
from unrolled.training.loop import Loop
step = Loop._step
def killed(self):
    if (self.at.step, self.processes.rank, os.environ["TORCHELASTIC_RESTART_COUNT"]) == (23, 1, "0"):
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self)
Loop._step = killed
from unrolled.cli.main import main
main()
"""


def weights(run: Run) -> dict[str, torch.Tensor]:
    return run.directory.read_tensors("model.safetensors")


def apart(one: Run, other: Run) -> float:
    """The largest difference of two weights."""
    a, b = weights(one), weights(other)
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


def lines(run: Run) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.directory.read_metrics()]


def words(out: Path, *more: Any) -> list[str]:
    own = [f"--set={key}={json.dumps(value) if key != 'split' else value}" for key, value in {**SMALL, **FEW}.items()]
    return ["train", "text.txt", "--task", "next-token", "--model", "lstm", "-o", out.name, *own, *map(str, more)]


def torchrun(n: int, where: Path, *job: str, **environment: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n), *job]
    told = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run(call, cwd=where, env=told, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def alone(fit: Fit) -> Run:
    return fit("alone", FEW)


@pytest.mark.parametrize("n", [2, 4])
def test_processes_that_are_started_train_as_one_does(n: int, fit: Fit, alone: Run) -> None:
    many = fit("many", {**FEW, "processes": n})
    assert apart(alone, many) < 1e-5
    for one, other in zip(lines(alone), lines(many), strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert many.result["valid"] == pytest.approx(alone.result["valid"], abs=1e-5)
    files = [sorted(run.directory.names()) for run in (alone, many)]
    assert files[0] == files[1]
    assert (many.config.processes, alone.config.processes) == (n, 1)


def test_torchrun_gives_the_same_bits(fit: Fit, tmp_path: Path) -> None:
    many = fit("many", {**FEW, "processes": 2})
    done = torchrun(2, tmp_path, "-m", "unrolled", *words(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("valid data") == 1  # one of them prints
    assert apart(many, load(tmp_path / "run")) == 0
    assert lines(many) == lines(load(tmp_path / "run"))


def test_a_process_that_is_killed_is_started_again_and_nothing_differs(fit: Fit, tmp_path: Path) -> None:
    whole = fit("whole", {**FEW, "processes": 2})
    (tmp_path / "job.py").write_text(KILLED)
    job = ["--max-restarts", "1", "job.py", *words(tmp_path / "run")]
    done = torchrun(2, tmp_path, *job, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    assert done.returncode == 0, done.stderr
    assert "resuming at step 20" in done.stderr
    assert apart(whole, load(tmp_path / "run")) == 0
    assert lines(whole) == lines(load(tmp_path / "run"))
    again = torchrun(2, tmp_path, *job)
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in again.stderr  # without it they would wait forever
    unnamed = [word for word in job[2:] if word not in ("-o", "run")]
    assert "add -o" in torchrun(2, tmp_path, *unnamed).stderr


def begun(where: Path, *more: Any) -> subprocess.Popen[str]:
    """`unrolled train` of a run that takes long, when it is past its second evaluation."""
    call = [sys.executable, "-m", "unrolled", *words(where / "run", "--processes", 2, "--steps", 5000, *more)]
    call = [word for word in call if word != "--set=steps=50"]
    process = subprocess.Popen(call, cwd=where, stderr=subprocess.PIPE, text=True)
    curve, since = where / "run" / "metrics.jsonl", time.monotonic()
    while not curve.exists() or curve.read_text().count("\n") < 3:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() - since < 120
        time.sleep(0.05)
    return process


def children(process: subprocess.Popen[str]) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_one_process_saves_and_ends_all(number: int, fit: Fit, tmp_path: Path) -> None:
    process = begun_in(fit, tmp_path)
    others = children(process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == Interrupted.exit_code, said
    assert "and saved; resume with: unrolled train" in said
    assert "Traceback" not in said
    assert len(others) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in others)


def test_where_one_process_dies_the_others_say_how_to_resume(fit: Fit, tmp_path: Path) -> None:
    process = begun_in(fit, tmp_path)
    (other,) = children(process)
    os.kill(other, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == Interrupted.exit_code, said
    assert "another process of this run has ended; resume with: unrolled train" in said
    assert "Traceback" not in said


def test_a_process_does_not_outlive_the_first_while_it_waits_for_it() -> None:
    code = "from unrolled.training import following; following.LEAVING = 0.1; following.main()"
    with subprocess.Popen([sys.executable, "-c", code, "python"], stdin=subprocess.PIPE) as other:
        assert other.stdin is not None
        pickle.dump((1, 2, _free_port(), {"config": {"device": "cpu"}}), other.stdin)
        other.stdin.close()
        try:
            assert other.wait(60) == Interrupted.exit_code
        finally:
            other.kill()


def begun_in(fit: Fit, where: Path) -> subprocess.Popen[str]:
    assert fit  # it has written text.txt
    return begun(where)


class Stopping(Quiet):
    """Asks to stop at a step; before, it is shown a text, which the first process writes by itself."""

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None:
        if step == 20:
            signal.raise_signal(signal.SIGTERM)

    def sample(self, write: Callable[[], str | None]) -> None:
        assert write()


def test_a_run_of_several_is_resumed_bit_for_bit_also_by_one(fit: Fit, tmp_path: Path, alone: Run) -> None:
    whole = fit("whole", {**FEW, "processes": 2})
    for name, n in (("two", None), ("one", 1)):
        with pytest.raises(Interrupted):
            settings = SMALL | FEW | {"processes": 2}
            unrolled.train(
                tmp_path / "text.txt", model="lstm", out=tmp_path / name, settings=settings, progress=Stopping()
            )
        more = {} if n is None else {"processes": n}
        again = unrolled.train(tmp_path / "text.txt", resume=tmp_path / name, settings=more)
        assert again.result["steps"] == 50
        assert apart(whole, again) == 0 if n is None else apart(alone, again) < 1e-5


def test_a_divided_model_is_saved_whole(fit: Fit, tmp_path: Path) -> None:
    settings = {**FEW, "optimiser": "sgd"}
    plain, divided = fit("plain", settings), fit("divided", {**settings, "processes": 2, "shard": True})
    assert apart(plain, divided) < 1e-5
    assert lines(divided)[-1] == pytest.approx(lines(plain)[-1], abs=1e-5)
    saved = tmp_path / "divided" / "checkpoints" / "step-00000050"
    opened = unrolled.load(tmp_path / "divided")
    assert saved.is_dir()
    assert opened.evaluate(tmp_path / "text.txt")["nats"] == pytest.approx(
        unrolled.load(tmp_path / "plain").evaluate(tmp_path / "text.txt")["nats"], abs=1e-5
    )


def test_a_divided_model_goes_on_in_one_process(fit: Fit, tmp_path: Path) -> None:
    whole = fit("whole", {**FEW, "processes": 2, "shard": True})
    for name, n, most in (("two", None, 0.0), ("one", 1, 1e-5)):
        with pytest.raises(Interrupted):
            settings = SMALL | FEW | {"processes": 2, "shard": True}
            unrolled.train(
                tmp_path / "text.txt", model="lstm", out=tmp_path / name, settings=settings, progress=Stopping()
            )
        more = {} if n is None else {"processes": n}
        again = unrolled.train(tmp_path / "text.txt", resume=tmp_path / name, settings=more)
        assert apart(whole, again) <= most


def test_a_closed_form_is_fitted_by_one(tmp_path: Path, text: str) -> None:
    settings = {"split": "80/20", "threads": 1}
    (file := tmp_path / "text.txt").write_text(text)
    one = unrolled.train(file, model="ngram", out=tmp_path / "one", settings=settings)
    many = unrolled.train(file, model="ngram", out=tmp_path / "many", settings={**settings, "processes": 2})
    assert many.result["valid"] == one.result["valid"]
