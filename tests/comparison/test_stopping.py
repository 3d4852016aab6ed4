"""How a comparison ends that does not end well: models that fail, signals, processes that are gone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unrolled
from unrolled.comparison import engine as engines
from unrolled.comparison import worker
from unrolled.comparison.engine import Inline, Processes
from unrolled.core.errors import (
    DataError,
    Diverged,
    Interrupted,
    NotTrained,
    OutOfMemory,
    UnrolledError,
    UsageError,
)
from unrolled.runs.storage.locks import in_use
from unrolled.training import api as training
from unrolled.training.signals import StopFlag

ROWS = [{"text": f"{'abcdefgh'[i % 8] * 3} {'uvwxyz'[i % 6] * 2}", "value": i * 7 % 11} for i in range(40)]
SETTINGS = {"steps": 2, "models": "memoryless,dan", "target": "value", "d_embedding": 4, "batch_size": 8, "threads": 1}
TRAIN = training.train


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Models fail in turn with these errors, baselines do not; returns the models that were tried."""

    def failing(*errors: UnrolledError | None) -> list[str]:
        tried: list[str] = []

        def train(data: Any = None, task: Any = None, model: str | None = None, **given: Any) -> Any:
            name = Path(given["out"]).name
            if name.startswith("baseline"):
                return TRAIN(data, task, model, **given)
            error = errors[len(tried) % len(errors)]
            tried.append(name)
            if error is not None:
                raise error
            return TRAIN(data, task, model, **given)

        monkeypatch.setattr(training, "train", train)
        return tried

    return failing


def compare(path: Path, **more: Any) -> unrolled.Comparison:
    return unrolled.compare(ROWS, "regress", out=path, settings=SETTINGS | more)


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([DataError("no such file")], DataError),
        ([Diverged("nan")], Diverged),
        ([OutOfMemory("too large")], OutOfMemory),
        ([NotTrained("no time", needs=90.0)], UsageError),
        ([DataError("no such file"), Diverged("nan")], UnrolledError),
    ],
)  # fmt: skip
def test_an_error_where_every_model_failed(
    failing: Any, tmp_path: Path, errors: list[UnrolledError], kind: type[UnrolledError]
) -> None:
    failing(*errors)
    budget = {"steps": None, "time": 600, "folds": 2} if isinstance(errors[0], NotTrained) else {}
    with pytest.raises(UnrolledError, match="no model of this comparison was trained") as caught:
        compare(tmp_path / "out", **budget)
    assert caught.value.exit_code == kind.exit_code
    told = ["needs about 1 min 30 s"] if budget else map(str, errors)
    assert all(each in str(caught.value) for each in told)
    table = json.loads((tmp_path / "out" / "table.json").read_text())
    assert table["finished"] and all(row["runs"] for row in table["rows"] if row["kind"] == "baseline")


def test_a_baseline_whose_process_was_killed_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that every model is set beside it."""
    tried: list[str] = []

    def train(data: Any = None, task: Any = None, model: str | None = None, **given: Any) -> Any:
        tried.append(Path(given["out"]).name)
        if len(tried) == 1:
            raise OutOfMemory("its process was killed")
        return TRAIN(data, task, model, **given)

    monkeypatch.setattr(training, "train", train)
    found = compare(tmp_path / "out", models="memoryless")
    assert tried == ["baseline-mean", "baseline-mean", "memoryless-0"]
    assert all(row["failed"] is None for row in found.rows)
    assert set(found.run("memoryless-0").result["baselines"]) == {"mean"}


def test_the_page_of_a_run_is_made_up_for(tmp_path: Path) -> None:
    """A kill came after the run was finished and before its page was written."""
    found = compare(tmp_path / "out", models="memoryless")
    (found.path / "memoryless-0" / "report.html").unlink()
    (found.path / "memoryless-0" / ".lock").touch()
    unrolled.compare(ROWS, resume=found.path)
    names = {entry.name for entry in (found.path / "memoryless-0").iterdir()}
    assert "report.html" in names and ".lock" not in names


def test_one_model_is_enough(failing: Any, tmp_path: Path) -> None:
    failing(DataError("no such file"), None)
    failed = {row["label"]: row["failed"] for row in compare(tmp_path / "out").rows if row["kind"] == "model"}
    assert sorted(failed.values(), key=str) == [None, "no such file"]


def test_resuming_tries_again_what_may_go_well_now(failing: Any, tmp_path: Path) -> None:
    """And leaves alone what would diverge again."""
    tried = failing(Diverged("nan"), OutOfMemory("too large"))
    with pytest.raises(UnrolledError):
        compare(tmp_path / "out")
    first, second = tried
    tried = failing(None)
    found = unrolled.compare(ROWS, resume=tmp_path / "out")
    assert tried == [second]
    rows = {row["label"]: row for row in found.rows}
    assert rows[first.removesuffix("-0")]["failed"] == "nan" and not rows[first.removesuffix("-0")]["runs"]
    assert rows[second.removesuffix("-0")]["failed"] is None and rows[second.removesuffix("-0")]["score"] is not None


def test_a_model_that_diverged_alone_stays_an_error(failing: Any, tmp_path: Path) -> None:
    failing(Diverged("nan"))
    with pytest.raises(Diverged, match="nan"):
        compare(tmp_path / "out", models="memoryless")
    with pytest.raises(Diverged, match="nan"):
        unrolled.compare(ROWS, resume=tmp_path / "out")


def test_two_comparisons_in_one_directory_are_refused(failing: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with in_use(tmp_path / "out"), pytest.raises(UsageError, match="in use by another process"):
        compare(tmp_path / "out")
    (tmp_path / "out" / ".plan.json.tmp-4194303-0a1b2c3d-0").write_text("{")  # and after a kill
    found = compare(tmp_path / "out")
    assert not [entry.name for entry in found.path.iterdir() if entry.name.startswith(".")]
    with in_use(tmp_path / "out"), pytest.raises(UsageError, match="in use by another process"):
        unrolled.compare(ROWS, resume=tmp_path / "out")


SILENT = "import sys, time; sys.stdin.readline(); time.sleep(20)"


def silent(*_: object, **given: Any) -> subprocess.Popen[str]:
    """A worker that is busy for long and tells nothing meanwhile."""
    return subprocess.Popen([sys.executable, "-c", SILENT], **given)


def test_a_stop_is_heard_while_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "subprocess", type("other", (), {**vars(subprocess), "Popen": silent}))
    engine, flag = Processes(at_once=1, threads=1), StopFlag()
    threading.Timer(0.5, lambda: setattr(flag, "asked", True)).start()
    ends = [event["event"] for event in engine.events([{"folder": "one"}, {"folder": "two"}], flag)]
    engine.close()
    assert ends == ["begin", "stopped"]


def test_nothing_begins_after_a_stop() -> None:
    flag = StopFlag()
    flag.asked = True
    assert list(Inline([], print).events([{"folder": "one"}], flag)) == []


def test_a_signal_while_data_in_memory_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison stops at once, not after all of its runs."""
    begun = []

    def train(*_: object, **given: Any) -> None:
        begun.append(Path(given["out"]).name)
        signal.raise_signal(signal.SIGINT)
        time.sleep(5)

    monkeypatch.setattr(training, "train", train)
    with pytest.raises(Interrupted, match="resume"):
        compare(tmp_path / "out")
    assert len(begun) == 1
    monkeypatch.undo()
    assert unrolled.compare(ROWS, resume=tmp_path / "out").table["finished"]


def test_a_worker_saves_when_nobody_listens_any_more(tmp_path: Path) -> None:
    """Its orders and its listener end at once, as by a kill of the process that compares."""
    data = tmp_path / "rows.csv"
    data.write_text("text,value\n" + "".join(f"{row['text']},{row['value']}\n" for row in ROWS))
    settings = {"target": "value", "d_embedding": 4, "batch_size": 8, "threads": 1, "budget.steps": 10**6}
    order = {"task": "regress", "model": "memoryless", "settings": settings, "own_file": None, "baselines": {},
             "data": str(data), "folder": "one", "out": str(tmp_path / "one")}  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", worker.__name__, "python"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        if json.loads(line)["event"] == "step":
            break
    process.stdout.close()
    time.sleep(0.5)  # it tells of a step meanwhile, to nobody
    process.stdin.close()
    assert process.wait(timeout=60) == 75, process.stderr.read()
    process.stderr.close()
    assert json.loads((tmp_path / "one" / "checkpoints" / "latest").read_text())["checkpoint"] > "step-00000000"
