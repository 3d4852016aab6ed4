"""Distilled flows: the loss against numerical integrals, a saved run that generates, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.data.config import DataConfig
from unrolled.objectives import sound
from unrolled.runs.run import Run
from unrolled.runs.storage.directory import RunDirectory
from unrolled.tasks import next_sample, sound_flow
from unrolled.training.distilling import distill

DATA = "builtin:tones,kind=tone,examples=40,seconds=0.05,rate=1000"
TINY = {
    "batch_size": 4, "d_embedding": 4, "model.d_model": 4, "model.d_skip": 4, "model.n_dilations": 3, "threads": 1,
    "evaluate_every": 6, "warmup": 1, "lr": 0.01,
}  # fmt: skip
TEACHER = TINY | {"output": "logistic-mixture", "components": 2, "condition": "note", "steps": 12}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("teacher") / "run"
    return unrolled.train(DATA, "next-sample", "wavenet", out, settings=TEACHER, baselines={})


@pytest.fixture(scope="module")
def student(teacher: Run) -> Run:
    settings = TINY | {"task.flows": 2, "task.contrast": 0.2, "task.draws": 2, "steps": 12}
    return distill(teacher.path, out=teacher.path.parent / "student", settings=settings)


class One(torch.nn.Module):
    """A teacher that always gives the same outputs."""

    def __init__(self, y: torch.Tensor) -> None:
        super().__init__()
        self.y = y

    def forward(self, x: torch.Tensor, state: object = None) -> tuple[torch.Tensor, object]:
        return self.y.expand(*x.shape[:2], -1), state


def test_the_divergence_is_the_integral() -> None:
    task = sound_flow.Task(sound_flow.Config(draws=1000), DataConfig())
    task.teaches = next_sample.Task(next_sample.Config(output="logistic-mixture", components=2), DataConfig()).emission
    y = torch.tensor([0.3, -0.4, -0.2, 0.3, math.log(0.1), math.log(0.2)])
    task.teacher = One(y)  # type: ignore[assignment]
    mu, s = 0.1, 0.15
    given = torch.tensor([0.0, mu, math.log(s)]).expand(1, 300, 3)
    found = task.kl(given, torch.ones(1, 300, dtype=torch.bool), None, None, torch.Generator().manual_seed(0))
    x = torch.linspace(-6, 6, 240_001, dtype=torch.float64)
    z = (x - mu) / s
    log_s = torch.nn.functional.logsigmoid(z) + torch.nn.functional.logsigmoid(-z) - math.log(s)
    log_t = task.teaches.log_mass(y.double().expand(len(x), -1), x) - math.log(2 * task.teaches.half)
    wanted = torch.trapezoid(log_s.exp() * (log_s - log_t), x)
    assert float(found.mean()) == pytest.approx(float(wanted), abs=0.01)


def test_entropy_in_closed_form() -> None:
    x = torch.linspace(-60, 60, 200_001, dtype=torch.float64)
    log_p = torch.nn.functional.logsigmoid(x / 1.7) + torch.nn.functional.logsigmoid(-x / 1.7) - math.log(1.7)
    wanted = torch.trapezoid(-log_p.exp() * log_p, x)
    assert float(sound.logistic_entropy(torch.tensor(1.7).log())) == pytest.approx(float(wanted), abs=1e-6)


def test_power_is_that_of_the_equation() -> None:
    x = torch.randn(1, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
    frames = [x[0, m : m + 16].numpy() * window for m in range(0, 25, 4)]
    wanted = np.mean([np.abs(np.fft.rfft(f)) ** 2 for f in frames], axis=0) / window.sum() ** 2
    found = sound.mean_power(x, 16)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-9)
    assert float(sound.power_loss(2 * x, x, 16)) == pytest.approx(9)  # (4 - 1)^2
    assert float(sound.power_loss(x, x, 16)) == 0
    assert float(sound.spectral_distance(10 * x, x, 16)) == pytest.approx(20, abs=0.1)


def test_a_student_is_a_run_that_generates(student: Run, teacher: Run, tmp_path: Path) -> None:
    again = unrolled.load(student.path)
    made = again.generate(condition="note=A", seconds=0.05, n=2)
    assert [len(each["samples"]) for each in made] == [50, 50]
    assert made[0]["logp"] >= made[1]["logp"]
    same = student.generate(condition="note=A", seconds=0.05, n=2)
    np.testing.assert_array_equal(made[0]["samples"], same[0]["samples"])
    quiet = again.generate(condition="note=A", seconds=0.05, temperature=0)[0]
    other = again.generate(condition="note=A", seconds=0.05, temperature=0, seed=5)[0]
    np.testing.assert_array_equal(quiet["samples"], other["samples"])
    assert again.task.conditions == teacher.task.conditions
    done = run_unrolled("generate", student.path, "--seconds", "0.05", "--condition", "A", "-o", tmp_path / "a.wav")
    assert "x real time" in done.stderr
    assert soundfile.info(tmp_path / "a.wav").frames == 50


def test_figures_need_the_teacher_for_the_divergence_alone(student: Run) -> None:
    assert set(student.result["test"]) == {"spectral_distance", "kl", "tokens"}
    figures = unrolled.load(student.path, trained_on=DATA).evaluate()
    assert figures["spectral_distance"] == pytest.approx(student.result["test"]["spectral_distance"], rel=1e-4)
    assert "kl" not in figures


def test_what_is_refused(student: Run, teacher: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot continue a prompt"):
        student.generate(np.zeros(4), condition="A")
    with pytest.raises(UsageError, match="they make no predictions"):
        student.predict([np.zeros(4)], conditions=["A"])
    with pytest.raises(UsageError, match="is a run of sound-flow; expected one of next-sample"):
        distill(student.path)
    levels = unrolled.train(
        DATA, "next-sample", "wavenet", tmp_path / "levels", settings=TINY | {"steps": 1}, baselines={}
    )
    with pytest.raises(UsageError, match="no gradient in the samples; train the teacher"):
        distill(levels.path, out=tmp_path / "a")
    with pytest.raises(UsageError, match="gives predictions itself"):
        distill(teacher.path, model="jordan", out=tmp_path / "b")
    with pytest.raises(DataError, match="samples a second, but the teacher has 1,000"):
        distill(teacher.path, DATA.replace("rate=1000", "rate=1200"), out=tmp_path / "c", settings=TINY)
    with pytest.raises(UsageError, match="its bits is 8; set the same here"):
        distill(teacher.path, out=tmp_path / "d", settings=TINY | {"task.bits": 16})


def test_a_resumed_student_asks_for_its_teacher(teacher: Run, tmp_path: Path) -> None:
    import shutil

    place = shutil.copytree(teacher.path, tmp_path / "teacher")
    settings = TINY | {"task.flows": 1, "steps": 8, "save_every": 0.0001}
    made = distill(place, out=tmp_path / "run", settings=settings)
    shutil.copytree(made.path, tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()
    with pytest.raises(DataError, match=r"its teacher_run is .* opened only if you name it"):
        unrolled.train(DATA, resume=tmp_path / "cut")
    shutil.copytree(tmp_path / "cut", tmp_path / "other")
    again = unrolled.train(DATA, resume=tmp_path / "cut", settings={"teacher_run": str(place)})
    assert again.result["test"]["kl"] == pytest.approx(made.result["test"]["kl"], rel=1e-5)
    changed = {name: value * 2 for name, value in teacher.model.state_dict().items()}
    RunDirectory(place).write_tensors("model.safetensors", changed)
    with pytest.raises(DataError, match="its weights have changed since this run began to learn from them"):
        unrolled.train(DATA, resume=tmp_path / "other", settings={"teacher_run": str(place)})


def test_without_a_teacher_there_is_the_power_loss(tmp_path: Path) -> None:
    made = unrolled.train(DATA, "sound-flow", "gru", tmp_path / "run", settings=TINY_GRU, baselines={})
    assert set(made.result["test"]) == {"spectral_distance", "tokens"}
    assert len(made.generate(seconds=0.02)[0]["samples"]) == 20


TINY_GRU = {"task.flows": 2, "d_state": 4, "d_embedding": 4, "steps": 3, "batch_size": 4, "threads": 1}
