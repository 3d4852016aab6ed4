"""How a run begins and ends: in a directory of its own, which an earlier start may have left behind half-made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.training.conftest import SMALL
from unrolled.core.errors import DataError, Interrupted, UsageError
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.locks import in_use, is_idle
from unrolled.training import api, finishing, writers
from unrolled.training.progress import Quiet
from unrolled.training.signals import StopFlag

SETTINGS = SMALL | {"steps": 2, "examples": "stream"}


def nothing(path: Path) -> None:
    path.mkdir()


def only_temp_files(path: Path) -> None:
    path.mkdir()
    (path / ".MANIFEST.json.tmp-4194303-0a1b2c3d-0").write_text("{")


def a_lock(path: Path) -> None:
    path.mkdir()
    (path / ".lock").touch()


def a_manifest(path: Path) -> None:
    RunDirectory.create(path)


def a_codec(path: Path) -> None:
    run = RunDirectory.create(path)
    run.write_json("baselines.json", {})
    (path / "codec").mkdir()
    (path / "codec" / "tokenizer.json").write_text("{")
    run.write_json("data.json", {})
    (path / ".config.json.tmp-4194303-0a1b2c3d-0").write_text("{")


def of_an_earlier_release(path: Path) -> None:
    a_codec(path)
    (path / "checkpoints").mkdir()


STATES = [nothing, only_temp_files, a_lock, a_manifest, a_codec, of_an_earlier_release]


@pytest.mark.parametrize("state", STATES)
def test_what_a_kill_in_the_preparation_leaves_is_begun_again(
    text: str, tmp_path: Path, state: Callable[[Path], None]
) -> None:
    state(tmp_path / "run")
    seen = Quiet()
    run = unrolled.train([text], out=tmp_path / "run", settings=SETTINGS, progress=seen)
    assert run.result["steps"] == 2
    assert not [entry.name for entry in run.path.iterdir() if entry.name.startswith(".")]
    told = any("stopped here before training started" in line for line in seen.said)
    assert told is (state not in (nothing, a_lock))
    whole = unrolled.train([text], out=tmp_path / "whole", settings=SETTINGS)
    assert (run.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()


@pytest.mark.parametrize("state", STATES[1:])
@pytest.mark.parametrize("name", ["notes.txt", "codec-2/labels.json", "checkpoints/step-00000001/facts.json"])
def test_files_of_a_user_are_never_overwritten(
    text: str, tmp_path: Path, state: Callable[[Path], None], name: str
) -> None:
    state(tmp_path / "run")
    (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "run" / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="is not empty: name another directory"):
        unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "run" / name).read_text() == "mine"


def test_there_is_nothing_to_resume_before_training_began(tmp_path: Path) -> None:
    a_codec(tmp_path / "run")
    with pytest.raises(
        DataError, match="nothing to resume, because training had not started; run the original command again"
    ):
        unrolled.train(resume=tmp_path / "run")


def test_what_a_kill_left_while_a_run_was_removed_goes_with_the_next(text: str, tmp_path: Path) -> None:
    """A directory that is given up is renamed first, so that never half of it stands at its place."""
    aside, other = (tmp_path / f".{name}.tmp-4194303-0a1b2c3d-0" for name in ("run", "run2"))
    for place in (aside, other):
        a_codec(place)
    unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
    assert not aside.exists() and other.exists()


def test_a_name_is_free_again_when_its_run_did_not_begin(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a_codec(tmp_path / "runs" / "lstm-memory")
    with in_use(tmp_path / "runs" / "lstm-memory"):  # somebody is preparing data there
        assert unrolled.train([text], settings=SETTINGS).path == Path("runs/lstm-memory-2")
    assert unrolled.train([text], settings=SETTINGS).path == Path("runs/lstm-memory")
    assert unrolled.train([text], settings=SETTINGS).path == Path("runs/lstm-memory-3")


def test_a_directory_in_which_data_is_prepared_is_left_alone(text: str, tmp_path: Path) -> None:
    """Of two trainings in one directory the second is refused before it changes anything."""
    a_codec(tmp_path / "run")
    with in_use(tmp_path / "run"):
        before = sorted(tmp_path.rglob("*"))
        assert not is_idle(tmp_path / "run")
        with pytest.raises(UsageError, match="in use by another process"):
            unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
        assert sorted(tmp_path.rglob("*")) == before
    assert is_idle(tmp_path / "run")


@pytest.mark.parametrize("name", ["README.md", "recipe.toml", "units.safetensors", "figures/surprise.json"])
def test_a_run_is_finished_when_nothing_is_missing(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its results are written last: a kill before that leaves a run that is resumed."""

    class Killed(BaseException):
        pass

    replace = RunDirectory._replace

    def killed(self: RunDirectory, file: str, *others: Any) -> None:
        if file == name:
            raise Killed
        replace(self, file, *others)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(RunDirectory, "_replace", killed)
        unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
    assert not (tmp_path / "run" / "result.json").exists()
    run = unrolled.train([text], resume=tmp_path / "run")
    assert (run.path / name).exists() and (run.path / "result.json").exists()


def test_what_a_kill_at_the_very_end_leaves_is_removed(text: str, tmp_path: Path) -> None:
    run = unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
    before = sorted(run.path.rglob("*"))
    (run.path / ".lock").touch()
    (run.path / ".report.html.tmp-4194303-0a1b2c3d-0").write_text("<")
    unrolled.train(resume=run.path)
    assert sorted(run.path.rglob("*")) == before


@pytest.fixture
def no_nohup() -> Iterator[None]:
    """SIGHUP acts, also where the tests themselves were started by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def send(number: int) -> Callable[..., None]:
    def sent(*_: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    return sent


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("room", "moment", "error"),
    [
        (api.build, "make_task", KeyboardInterrupt),
        (api, "_baselines", Interrupted),
        (finishing, "write_card", Interrupted),
    ],
)
def test_a_signal_before_and_after_the_loop(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: Any, moment: str, error: Any, number: int
) -> None:
    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr(room, moment, send(number))
        unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
    if error is KeyboardInterrupt:  # nothing was worth keeping
        assert not (tmp_path / "run").exists()
        return
    assert unrolled.train([text], resume=tmp_path / "run").result["steps"] == 2


def test_a_signal_that_comes_after_the_last_step_is_heard(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Interrupted, match="stopped at step 2 and saved"):
        patch.setattr(writers.Events, "close", lambda _: os.kill(os.getpid(), signal.SIGTERM))
        unrolled.train([text], out=tmp_path / "run", settings=SETTINGS)
    assert unrolled.train([text], resume=tmp_path / "run").result["steps"] == 2


def test_whoever_began_us_by_nohup_closes_the_terminal_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN if number == signal.SIGHUP else None)
    with StopFlag() as stop:
        assert signal.SIGHUP not in stop._before


def test_the_second_ctrl_c_leaves_at_once() -> None:
    """And a second SIGTERM does not: whoever ends processes sends several."""
    code = "from unrolled.training.signals import StopFlag; from signal import *; flag = StopFlag().__enter__(); "
    for sent, left in ((("SIGINT", "SIGINT"), 130), (("SIGTERM", "SIGINT"), 130), (("SIGINT", "SIGTERM"), 7)):
        calls = "; ".join(f"raise_signal({name})" for name in sent)
        words = [sys.executable, "-c", f"{code}{calls}; raise SystemExit(7 if flag.asked else 0)"]
        assert subprocess.run(words, check=False).returncode == left
