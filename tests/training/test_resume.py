"""A run that is killed and resumed ends with the same bits as one that was not."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from tests.thorough import every
from tests.training.conftest import SMALL
from unrolled.core.errors import DataError, Interrupted, UsageError
from unrolled.runs.storage.locks import in_use
from unrolled.training import api
from unrolled.training.loop import Loop
from unrolled.training.progress import Quiet

WORDS = [f"{key}={value}" for key, value in SMALL.items()]
OPTIONS = [word for pair in WORDS for word in ("--set", pair)]
OPTIONS += ["--steps", "240", "--save-every", "0.02s", "--set", "ends.dropout=0.1"]


@pytest.fixture(scope="module")
def file(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "text.txt"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def whole(file: Path) -> Path:
    """The run that nobody interrupts."""
    run_unrolled("train", file, "-o", file.parent / "whole", *OPTIONS)
    return file.parent / "whole"


def start(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "unrolled.cli.main", "train", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_checkpoint(process: subprocess.Popen[str], run: Path) -> None:
    limit = time.monotonic() + 60
    while not (run / "checkpoints" / "latest").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)


def lines(run: Path) -> list[dict[str, object]]:
    found = unrolled.load(run).directory.read_metrics()
    return [{key: value for key, value in line.items() if key != "seconds"} for line in found]


def assert_same(a: Path, b: Path) -> None:
    for name in ("model.safetensors", "predictions.jsonl"):
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    assert lines(a) == lines(b)


@pytest.mark.long
def test_killed_at_random_moments(file: Path, whole: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    process = start(file, "-o", broken, *OPTIONS)
    kills, moments = 0, random.Random(3)
    while kills < 2:
        wait_for_checkpoint(process, broken)
        time.sleep(moments.uniform(0.0, 0.25) + (0 if kills == 0 else 1.5))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        process = start(file, "--resume", broken)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert kills == 2, "the run was too quick to be killed: make it longer"
    assert_same(whole, broken)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop(file: Path, whole: Path, tmp_path: Path, number: int) -> None:
    broken = tmp_path / "broken"
    process = start(file, "-o", broken, *OPTIONS)
    wait_for_checkpoint(process, broken)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 75, errors
    assert "--resume" in errors and "Traceback" not in errors
    run_unrolled("train", file, "--resume", broken)
    assert_same(whole, broken)


MEMORY = {"examples": "stream"}  # data that is passed from Python: a list with one long text


def stopped(step: int, *words: object, **more: object) -> None:
    """A run that was stopped after so many steps."""

    def show(self: Loop, loss: float) -> None:
        self.stop.asked = self.at.step == step

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Loop, "_show", show)
        unrolled.train(*words, **more)  # type: ignore[arg-type]


def interrupted(text: str, path: Path) -> None:
    stopped(34, [text], out=path, settings=SMALL | MEMORY | {"steps": 100})


@pytest.mark.parametrize("model", every(2, ["seq2seq", "encdec-transformer"]))
def test_a_model_with_a_source_goes_on_as_if_nothing_had_happened(tmp_path: Path, model: str) -> None:
    """With every kind of noise: dropout, hidden words, and words of its own mixed in."""
    own = {"d_state": 8} if model == "seq2seq" else {"d_model": 8, "n_layers": 1, "d_ff": 8, "n_heads": 2}
    settings = own | {"d_embedding": 8, "ends.dropout": 0.2, "target_dropout": 0.2, "teacher": 0.8, "steps": 30,
                      "evaluate_every": 10, "batch_size": 8}  # fmt: skip
    asked = ("builtin:reversal,length=6,examples=200", "translate", model)
    stopped(17, *asked, out=tmp_path / "run", settings=settings)
    unrolled.train(asked[0], resume=tmp_path / "run")
    unrolled.train(*asked, out=tmp_path / "whole", settings=settings)
    assert_same(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("step", [20, 50])
def test_stopped_in_the_middle_of_an_evaluation(text: str, tmp_path: Path, step: int) -> None:
    """The evaluation is given up at once and made up for later, so that nothing is missing in the end; its line has the
    rate of the last step, which another process made."""
    original = Loop._evaluate

    def slow(self: Loop) -> None:
        self.stop.asked = self.at.step == step
        original(self)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted, match=f"step {step}"):
        patch.setattr(Loop, "_evaluate", slow)
        unrolled.train([text], out=tmp_path / "run", settings=SMALL | MEMORY | {"steps": 50})
    unrolled.train([text], resume=tmp_path / "run")
    unrolled.train([text], out=tmp_path / "whole", settings=SMALL | MEMORY | {"steps": 50})
    assert_same(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("moment", ["_baselines", "finish"])
def test_stopped_outside_the_loop(text: str, tmp_path: Path, moment: str) -> None:
    def terminated(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted, match=r"train\(DATA, resume="):
        patch.setattr(api, moment, terminated)
        unrolled.train([text], out=tmp_path / "run", settings=SMALL | MEMORY | {"steps": 10})
    assert unrolled.train([text], resume=tmp_path / "run").result["steps"] == 10


def test_resuming_other_data_is_refused(text: str, tmp_path: Path) -> None:
    interrupted(text, tmp_path / "run")
    with pytest.raises(DataError, match="memory"):
        unrolled.train(resume=tmp_path / "run")
    with pytest.raises(DataError, match="changed"):
        unrolled.train([text.replace("layer", "sheet")], resume=tmp_path / "run")
    assert unrolled.train([text], resume=tmp_path / "run").result["steps"] == 100


def test_a_damaged_checkpoint_falls_back_and_says_so(text: str, tmp_path: Path) -> None:
    interrupted(text, tmp_path / "run")
    places = sorted((tmp_path / "run" / "checkpoints").glob("step-*/state.safetensors"))
    assert len(places) == 2
    raw = bytearray(places[-1].read_bytes())
    raw[len(raw) // 2] ^= 1
    places[-1].write_bytes(raw)
    run = unrolled.train([text], resume=tmp_path / "run")
    events = [line["event"] for line in run.directory.read_metrics() if "event" in line]
    assert any("state.safetensors" in event for event in events)
    whole = unrolled.train([text], out=tmp_path / "whole", settings=SMALL | MEMORY | {"steps": 100})
    for name, value in whole.directory.read_tensors("model.safetensors").items():
        assert torch.equal(value, run.directory.read_tensors("model.safetensors")[name])


def test_with_all_checkpoints_damaged_it_does_not_begin_again(text: str, tmp_path: Path) -> None:
    interrupted(text, tmp_path / "run")
    for place in (tmp_path / "run" / "checkpoints").glob("step-*/state.safetensors"):
        place.write_bytes(place.read_bytes()[:-9])
    with pytest.raises(DataError, match="no checkpoint"):
        unrolled.train([text], resume=tmp_path / "run")


def test_a_resumed_run_keeps_its_settings(text: str, tmp_path: Path) -> None:
    interrupted(text, tmp_path / "run")
    with pytest.raises(UsageError, match=r"keeps its settings: leave out lr"):
        unrolled.train([text], resume=tmp_path / "run", settings={"lr": 1})


def test_stopped_before_the_first_step_it_starts_again_and_says_so(text: str, tmp_path: Path) -> None:
    def killed(self: Loop) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    settings = SMALL | MEMORY | {"steps": 20}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Loop, "train", killed)
        unrolled.train([text], out=tmp_path / "run", settings=settings)
    seen = Quiet()
    unrolled.train([text], resume=tmp_path / "run", progress=seen)
    assert any("no training step: starting at step 0" in line for line in seen.said)
    unrolled.train([text], out=tmp_path / "whole", settings=settings)
    assert_same(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("step", [11, 34])
def test_lost_checkpoints_are_said_to_be_lost(text: str, tmp_path: Path, step: int) -> None:
    """Steps that were made are neither repeated nor denied, and what is there stays as it is."""
    stopped(step, [text], out=tmp_path / "run", settings=SMALL | MEMORY | {"steps": 100})
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    evaluated = step // 10 * 10
    with pytest.raises(DataError, match=rf"the checkpoints are gone.* up to step {evaluated} .*start a new run"):
        unrolled.train([text], resume=tmp_path / "run")
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_a_kill_within_the_first_steps_leaves_a_checkpoint(text: str, tmp_path: Path) -> None:
    """An evaluation after a step without any checkpoint before it would look like checkpoints that were lost."""

    class Killed(BaseException):
        pass

    def killed(self: Loop) -> None:
        raise Killed

    settings = SMALL | MEMORY | {"steps": 20}
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        save = Loop.save
        patch.setattr(
            Loop, "save", lambda self, target=False: save(self, target) if self.at.step == 0 else killed(self)
        )
        unrolled.train([text], out=tmp_path / "run", settings=settings)
    assert unrolled.load(tmp_path / "run").directory.read_metrics()[-1]["step"] == 10
    unrolled.train([text], resume=tmp_path / "run")
    unrolled.train([text], out=tmp_path / "whole", settings=settings)
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_a_finished_run_is_left_alone(text: str, tmp_path: Path) -> None:
    unrolled.train([text], out=tmp_path / "run", settings=SMALL | MEMORY | {"steps": 5})
    before = (tmp_path / "run" / "MANIFEST.json").read_bytes()
    unrolled.train(resume=tmp_path / "run")
    assert (tmp_path / "run" / "MANIFEST.json").read_bytes() == before
    with pytest.raises(UsageError, match="not empty"):
        unrolled.train([text], out=tmp_path / "run", settings=SMALL | MEMORY | {"steps": 5})


def test_a_second_trainer_is_refused(fit, tmp_path):
    run = fit("one", {"steps": 3})
    (run.path / "result.json").unlink()
    with in_use(run.path), pytest.raises(UsageError, match="in use by another process"):
        unrolled.train(tmp_path / "text.txt", resume=run.path)


def test_data_that_was_prepared_again_is_told(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note that the run has from its start is not repeated."""
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    interrupted(text, tmp_path / "run")
    largest = max((tmp_path / "cache").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else -1)
    largest.write_bytes(bytes(largest.stat().st_size))
    said: list[str] = []
    shown = Quiet()
    monkeypatch.setattr(shown, "say", said.append)
    unrolled.train([text], resume=tmp_path / "run", progress=shown)
    assert sum("prepared again" in each for each in said) == 1


def test_another_level_of_the_kernels_is_told(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNROLLED_NATIVE", "off")
    now = api.versions()
    assert now.pop("native") == "off"
    monkeypatch.setattr(api, "versions", lambda: now)  # as by a release without kernels
    interrupted(text, tmp_path)
    monkeypatch.setattr(api, "versions", lambda: now | {"native": "v2"})
    shown = Quiet()
    unrolled.train([text], resume=tmp_path, progress=shown)
    assert "note: native kernels were off and are v2; last digits may differ" in shown.said
