"""Planned comparisons that many processes join: no run is lost, none is done twice, and the table is that of one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.commands import Ended, attempt, run_unrolled
from tests.tables import SMALL, WORDS, scores, told, write_words
from unrolled.comparison import joining
from unrolled.comparison.api import make_plan
from unrolled.comparison.claims import PLACE
from unrolled.comparison.engine import Processes
from unrolled.comparison.files import read_plan, write_plan
from unrolled.comparison.joining import Joining, before, planned
from unrolled.comparison.orders import Given
from unrolled.comparison.plan import Plan
from unrolled.comparison.saved import Comparison
from unrolled.comparison.view import Silent
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.storage.locks import in_use

FAST = SMALL | {"evaluate_every": 3}
LEASE = 6.0  # seconds: the machine may be busy
TOLD = told(FAST)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_words(tmp_path_factory.mktemp("text"))


def plan(text: Path, out: Path, lease: float = LEASE, **settings: Any) -> Plan:
    """A planned comparison with a short lease."""
    run_unrolled("compare", text, "--plan-only", "-o", out, *TOLD, *told(settings))
    found = read_plan(out)
    assert found.joins is not None
    write_plan(out, found.model_copy(update={"joins": found.joins.updated({"lease": lease})}))
    return found


def joined(text: Path, out: Path, n: int) -> list[Ended]:
    """Processes that join at once, to their ends."""
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda _: attempt("compare", text, "--join", out, forked=True), range(n)))


class Killer(threading.Thread):
    """Sends each of these signals to a process that has the run of a model and has begun to train it."""

    def __init__(self, out: Path, signals: list[int]) -> None:
        super().__init__(daemon=True)
        self.out, self.signals, self.sent = out, signals, dict[int, int]()

    def run(self) -> None:
        while len(self.sent) < len(self.signals):
            for path in sorted((self.out / PLACE).glob("*-[01].[0-9]*")):
                run, open_ = path.name.rsplit(".", 1)[0], not path.with_name(f"{path.name}.end").exists()
                if path.suffix in (".beat", ".end") or not open_ or not (self.out / run / "config.json").exists():
                    continue
                process = json.loads(path.read_text())["process"]
                if process not in self.sent and len(self.sent) < len(self.signals):
                    number = self.signals[len(self.sent)]
                    self.sent[process] = number
                    with suppress(ProcessLookupError):
                        os.kill(process, number)
            time.sleep(0.05)


def dones(out: Path) -> Counter[str]:
    """How many claims on each run ended with the run done."""
    ends = [path for path in (out / PLACE).glob("*.end") if json.loads(path.read_text())["event"] == "done"]
    return Counter(path.name.rsplit(".", 2)[0] for path in ends)


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("alone") / "words"
    run_unrolled("compare", text, "-o", out, "--jobs", "1", *TOLD, "--steps", "40", "--seeds", "2", forked=True)
    return Comparison(out)


def test_ten_processes_and_kills(text: Path, alone: Comparison, tmp_path: Path) -> None:
    """Three of ten are killed and two are asked to leave, each with a run: what they had is continued by others."""
    out = tmp_path / "out"
    plan(text, out, steps=40, seeds=2)
    killer = Killer(out, [signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL])
    killer.start()
    ended = joined(text, out, 10)
    codes = Counter(each.code for each in ended)
    assert all("Traceback" not in each.err for each in ended)
    assert codes[-signal.SIGKILL] == 3 and codes[75] == 2 and codes[0] == 5, [each.err for each in ended]
    runs = [job.folder for job in read_plan(out).jobs if job.kind != "ensemble"]
    assert all((out / run / "result.json").exists() for run in runs)
    done = dones(out)
    assert max(done.values()) == 1 and len(runs) - 3 <= len(done)  # a kill may come between the result and its claim
    assert len([path for path in (out / PLACE).iterdir() if path.suffix == ".2"]) >= 2
    for run in runs:
        path = out / run / "metrics.jsonl"
        steps = [json.loads(line)["step"] for line in path.read_text().splitlines()] if path.exists() else []
        assert steps == sorted(set(steps)), run
    assert "runs are left" not in run_unrolled("compare", "--collect", out).stderr
    assert scores(Comparison(out)) == scores(alone)
    assert Comparison(out).table["finished"] and (out / "report.html").exists()


def test_a_process_alone_does_all_and_the_next_finds_nothing(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = plan(text, out, steps=2, ensemble="false")
    n = len(whole.jobs)
    assert (
        f"{n} of {n} runs were done by this process" in run_unrolled("compare", text, "--join", out, forked=True).stderr
    )
    assert (
        f"0 of {n} runs were done by this process" in run_unrolled("compare", text, "--join", out, forked=True).stderr
    )
    found = unrolled.compare(collect=out)
    assert all(row["score"] is not None for row in found.rows)
    assert found.best.path.parent == out


def test_the_table_at_any_time(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = plan(text, out, steps=2)
    found = run_unrolled("compare", "--collect", out)
    n = len(whole.jobs)
    assert f"{n} of {n} runs are left: unrolled compare {text} --join {out}" in found.stderr
    assert "not run yet" in found.stdout and not Comparison(out).table["finished"]


def test_a_run_whose_process_is_gone_is_continued(text: Path, tmp_path: Path) -> None:
    """Not begun again: its steps before the kill are not made twice."""
    out = tmp_path / "out"
    settings = {"save_every": "0.1s", "evaluate_every": 100, "ensemble": "false", "elman.steps": 600}
    plan(text, out, lease=1.0, steps=2, **settings)
    command = [sys.executable, "-m", "unrolled.cli.main", "compare", str(text), "--join", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    place = out / "elman-0" / "checkpoints" / "latest"
    for _ in range(600):
        if place.exists() and "step-00000000" not in place.read_text():
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    run_unrolled("compare", text, "--join", out, forked=True)
    claim = json.loads((out / PLACE / "elman-0.2").read_text())
    assert claim["at"] > "step-00000000" and max(dones(out).values()) == 1
    unrolled.compare(collect=out)
    steps = [json.loads(line)["step"] for line in (out / "elman-0" / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps)) and steps[-1] == 600


def test_every_run_has_its_share_of_a_time_budget(text: Path) -> None:
    whole = planned(make_plan(text, None, {**FAST, "time": 300, "jobs": 10}, started=time.monotonic()), text)
    assert whole.share is not None and whole.at_once == min(10, len(whole.jobs))
    assert whole.asked.match == "time" and any(note.startswith("no race") for note in whole.notes)
    few = planned(make_plan(text, None, {**FAST, "time": 300, "jobs": 1}, started=time.monotonic()), text)
    assert few.share is not None and 0.8 * 300 / few.n_trained < few.share < whole.share / 2
    assert planned(make_plan(text, None, {**FAST, "steps": 5}), text).share is None


def test_what_must_end_before_a_run_begins(text: Path) -> None:
    rows = [{"text": word, "kind": "ab"[i % 2]} for i, word in enumerate(WORDS)]
    folds = make_plan(rows, "classify", {"steps": 2, "models": "dan", "folds": 2})
    first = {job.folder: {each.folder for each in before(folds, job)} for job in folds.jobs}
    assert first["dan-fold-0"] == {name for name in first if name.startswith("baseline") and name.endswith("fold-0")}
    assert first["dan"] > {"dan-fold-0", "dan-fold-1"} and "dan" not in first["dan"]
    assert first["ensemble"] == set(first) - {"ensemble"}
    assert all(not needs for name, needs in first.items() if name.startswith("baseline") and "fold" in name)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            ["--join", "{out}"],
            3,
            "opened only if you name it explicitly; give it again: unrolled compare {text} --join",
        ),
        (["{other}", "--join", "{out}"], 3, "{other}: not the data that {out} was planned with ({text}), or it has"),
        (["{out}/nothing.txt", "--join", "{out}"], 3, "nothing.txt"),
        (["{text}", "--join", "{out}", "--steps", "3"], 2, "a planned comparison keeps its settings"),
        (["{text}", "--join", "{out}", "--resume", "{out}"], 2, "give only one of --resume and --join"),
        (
            ["{text}", "--join", "{out}/nowhere"],
            3,
            "nowhere: no such directory; to join a comparison, all machines must share",
        ),
        (["{text}", "--join", "{alone}"], 2, "was not planned with --plan-only; resume it with"),
        (["--collect", "{alone}"], 2, "was not planned with --plan-only"),
        (["{text}", "--join", "{out}", "--engine", "ray"], 2, "--engine is for a comparison that one process leads"),
        (["{text}", "--engine", "slurm", "--steps", "2"], 2, "expected processes, ray, or ray://HOST:PORT"),
    ],
)
def test_wrong_wishes(
    text: Path, alone: Comparison, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    out, other = tmp_path / "out", tmp_path / "other.txt"
    shutil.copytree(alone.path, out)
    for run in ("elman-0", "gru-0"):
        shutil.rmtree(out / run)
    write_plan(out, planned(read_plan(out), text))
    other.write_text("something else\n" * 500)
    names = {"out": out, "other": other, "text": text, "alone": alone.path}
    found = attempt("compare", *(word.format(**names) for word in words), forked=True)
    assert found.code == code, found.err
    assert sentence.format(**names) in found.err and "Traceback" not in found.err
    assert not (out / PLACE).exists() or not list((out / PLACE).iterdir())


def test_another_version_is_refused(
    text: Path, alone: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(alone.path, out)
    found = planned(read_plan(out), text)
    assert found.joins is not None
    before = found.joins.updated({"versions": {**found.joins.versions, "unrolled": "9.9"}})
    write_plan(out, found.model_copy(update={"joins": before}))
    with pytest.raises(UsageError, match=r"planned with unrolled 9\.9, this is .*; join it with the same version"):
        unrolled.compare(str(found.data), join=out)


class AtOnce:
    """Runs that are done at once."""

    def events(self, orders: list[dict[str, Any]], _stop: Any) -> list[dict[str, Any]]:
        return [{"event": "done", "folder": order["folder"]} for order in orders]

    def abandon(self) -> None: ...

    def close(self) -> None: ...


def test_nothing_is_taken_while_one_process_resumes_the_comparison(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    n = len(plan(text, out, steps=2).jobs)
    taken: list[int] = []

    def sleep(_: float) -> None:
        taken.append(len(list((out / PLACE).iterdir())))
        resuming.close()

    clock = {"sleep": staticmethod(sleep), "monotonic": time.monotonic, "time": time.time}
    monkeypatch.setattr(joining, "time", type("clock", (), clock))
    with ExitStack() as resuming:
        resuming.enter_context(in_use(out))
        work = Joining(out, read_plan(out), Given(text, None), Silent(), 0.0, AtOnce)  # type: ignore[arg-type]
        assert work.all() == n
    assert taken == [0]


def test_who_waits_for_a_silent_process_is_told_once(text: Path, alone: Comparison, tmp_path: Path) -> None:
    """One that is suspended keeps the lock of its run, so that nobody takes it over."""
    said: list[str] = []

    class Says(Silent):
        def say(self, text: str) -> None:
            said.append(text)

    out = tmp_path / "out"
    shutil.copytree(alone.path, out)
    write_plan(out, planned(read_plan(out), text))
    work = Joining(out, read_plan(out), Given(text, None), Says(), 0.0, lambda: Processes(1, 1))
    (out / PLACE / "elman-0.1").write_text('{"host": "node7", "process": 12}')
    work.claims.lease = -1.0
    with in_use(out / "elman-0"):
        for _ in range(2):
            look = work.claims.look()
            assert not work.claims.is_free("elman-0", look["elman-0"])
            work._tell_silent(dict(look))
    lock = out / "elman-0" / ".lock"
    assert len(said) == 1 and "elman-0: process 12 on node7 has not been heard of" in said[0]
    assert f"if its machine is gone, remove {lock}" in said[0]


def test_data_in_memory_cannot_be_planned(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="save what is in memory to a file"):
        unrolled.compare(WORDS, out=tmp_path / "out", plan_only=True, settings=FAST)
    assert not (tmp_path / "out").exists()


def test_a_planned_comparison_is_resumed_only_when_nobody_has_a_run(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan(text, out, steps=2, ensemble="false")
    (out / PLACE / "elman-0.1").write_text('{"host": "node7", "process": 12}')
    with pytest.raises(UsageError, match="elman-0 belongs to process 12 on node7; wait for it, or take over"):
        unrolled.compare(text, resume=out)
    (out / PLACE / "elman-0.1.end").write_text('{"event": "stopped"}')
    run_unrolled("compare", text, "--resume", out, forked=True)
    assert Comparison(out).table["finished"]


def test_nothing_a_plan_names_is_opened(text: Path, tmp_path: Path) -> None:
    """X1: data that only the plan names, and a user's file."""
    out = tmp_path / "out"
    plan(text, out, steps=2)
    found = attempt("compare", "--join", out)
    assert found.code == 3 and str(text) not in found.opened
    with pytest.raises(DataError, match="opened only if you name it explicitly"):
        unrolled.compare(join=out)
    write_plan(out, read_plan(out).model_copy(update={"own_file": "evil.py", "own_file_sha256": "0" * 64}))
    with pytest.raises(DataError, match="run only if you name it explicitly"):
        unrolled.compare(text, join=out)
