"""Searches end to end, small: trials are runs, half of them are stopped, and interruptions change nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.commands import attempt, run_unrolled
from unrolled.cli.trials import print_search
from unrolled.comparison.saved import Comparison
from unrolled.comparison.view import Silent
from unrolled.core.errors import DataError, Interrupted, UnrolledError, UsageError
from unrolled.training.api import configure
from unrolled.tuning import work
from unrolled.tuning.files import FILE, read_search, write_search
from unrolled.tuning.study import JOURNAL, Study, imported
from unrolled.tuning.work import RUNGS, continues

ROWS = [{"text": f"{'abcdefgh'[i % 8] * 3} {'uvwxyz'[i % 6] * 2}", "value": i * 7 % 11} for i in range(60)]
SMALL = {"target": "value", "d_embedding": 4, "threads": 1, "trials": 7, "steps": 20, "evaluate_every": 5,
         "search": "lr,batch_size,dropout"}  # fmt: skip

needs_optuna = pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None,
    reason="the package optuna is not installed; `make test-scale` installs it",
)


def tuned(out: Path, **more: Any) -> Comparison:
    return unrolled.tune(ROWS, "regress", "dan", out=out, settings={**SMALL, **more.pop("settings", {})}, **more)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return tuned(tmp_path_factory.mktemp("search") / "rows")


def trials(found: Comparison) -> list[dict[str, Any]]:
    return list(dict(found.table)["tuning"]["trials"])


@needs_optuna
def test_trials_are_runs_and_the_best_opens(done: Comparison) -> None:
    states = [each["state"] for each in trials(done)]
    assert len(states) == 7 and set(states) == {"done", "stopped"}
    finished = [each for each in trials(done) if each["state"] == "done"]
    assert {row["label"] for row in done.rows} == {each["run"] for each in finished}
    best = min(finished, key=lambda each: each["value"])
    run = unrolled.load(done.path)
    assert run.path.name == best["run"] and run.config.optimiser.lr == best["settings"]["optimiser.lr"]
    assert run.result["valid"][run.result["criterion"]] == best["value"]
    assert isinstance(run.predict([ROWS[0]["text"]])[0], dict)
    assert (done.path / "report.html").read_text(encoding="utf-8").count("What mattered") >= 1


@needs_optuna
def test_the_first_trial_has_the_defaults_and_the_advice_of_the_model(done: Comparison) -> None:
    config = configure("regress", "dan", ROWS, {"target": "value"})
    assert trials(done)[0]["settings"] == {
        "optimiser.lr": config.optimiser.lr, "batching.batch_size": 32, "ends.dropout": 0.0, "model.dropout": 0.0,
    }  # fmt: skip


@needs_optuna
def test_who_is_stopped_is_behind_at_a_rung(done: Comparison) -> None:
    """By the rule, from the scores that are kept, and never without them."""
    kept = trials(done)
    for number, trial in enumerate(kept):
        for rung in range(len(RUNGS)):
            if trial["scores"][rung] is None:
                continue
            so_far = [each["scores"][rung] for each in kept[: number + 1] if each["scores"][rung] is not None]
            last = rung + 1 == len(RUNGS) or trial["scores"][rung + 1] is None
            stopped_here = trial["state"] == "stopped" and last
            assert continues(trial["scores"][rung], so_far) is not stopped_here, (number, rung)
    stopped = next(each["run"] for each in kept if each["state"] == "stopped")
    assert not (done.path / stopped / "result.json").exists()  # test data is not looked at
    assert not (done.path / stopped / "checkpoints").exists()


@needs_optuna
@pytest.mark.parametrize("moment", ["evaluation", "done", "paused"])
def test_a_search_that_is_interrupted_is_the_same(done: Comparison, tmp_path: Path, moment: str) -> None:
    class Stops(Silent):
        left = 4

        def event(self, event: dict[str, Any]) -> None:
            self.left -= event["event"] == moment
            if event["event"] == moment and self.left == 0:
                signal.raise_signal(signal.SIGTERM)

    out = tmp_path / "rows"
    with pytest.raises(Interrupted, match=r"stopped and saved; resume with: unrolled.tune\(DATA, resume="):
        tuned(out, view=Stops())
    half = trials(Comparison(out))
    assert len(half) < 7 or any(each["state"] == "running" for each in half)
    found = unrolled.tune(ROWS, resume=out)
    assert trials(found) == trials(done)
    assert dict(found.table)["tuning"]["importance"] == dict(done.table)["tuning"]["importance"]


@needs_optuna
def test_a_kill_in_the_middle_of_a_line_is_mended(done: Comparison, tmp_path: Path) -> None:
    out = tmp_path / "rows"
    shutil.copytree(done.path, out)
    whole = (out / JOURNAL).read_bytes()
    lines = whole.splitlines(keepends=True)
    (out / JOURNAL).write_bytes(b"".join(lines[:-1]) + lines[-1][:-5])
    os.symlink(out / JOURNAL, out / f"{JOURNAL}.lock")  # of the process that was killed
    assert trials(unrolled.tune(ROWS, resume=out)) == trials(done)


@needs_optuna
def test_a_kill_between_the_plan_and_the_journal_loses_no_trial(
    done: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that is done is written into both; whichever comes first, the other is made up for."""
    written: list[str] = []

    def counted(name: str, write: Any) -> Any:
        def call(*given: Any) -> None:
            written.append(name)
            if len(written) == 2:
                raise KeyboardInterrupt
            write(*given)

        return call

    out = tmp_path / "rows"
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(work, "write_plan", counted("plan", work.write_plan))
        tell = Study.tell
        patched.setattr(Study, "tell", lambda *given: (tell if given[2] is None else counted("journal", tell))(*given))
        tuned(out)
    assert sorted(written) == ["journal", "plan"]
    found = unrolled.tune(ROWS, resume=out)
    assert trials(found) == trials(done)
    assert {row["label"] for row in found.rows} == {row["label"] for row in done.rows}


ENGINES = ["processes", *(["ray"] if importlib.util.find_spec("ray") else [])]


@needs_optuna
@pytest.mark.parametrize("engine", ENGINES)
def test_batches_are_proposed_together(tmp_path: Path, engine: str) -> None:
    """With files, two at a time: the same by each engine and again."""
    data = tmp_path / "rows.csv"
    data.write_text("text,value\n" + "".join(f"{row['text']},{row['value']}\n" for row in ROWS))
    told = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    outs = [tmp_path / "one", tmp_path / "two"]
    for out, by in zip(outs, ("processes", engine)):
        words = ["--task", "regress", "--model", "dan", "--jobs", "2", "-o", out, "--engine", by, *told]
        said = run_unrolled("tune", data, *words, forked=by == "processes")
        assert "What mattered: " in said.stdout and "the directory opens as this run" in said.stdout
    assert trials(Comparison(outs[0])) == trials(Comparison(outs[1]))
    again = run_unrolled("tune", data, "--resume", outs[0], forked=True)  # nothing is left to do
    assert "7 trials of dan" in again.stdout


@needs_optuna
def test_a_time_budget(tmp_path: Path) -> None:
    found = tuned(tmp_path / "rows", settings={"steps": None, "time": 22, "trials": 3})
    assert 1 <= len(trials(found)) <= 3 and found.best.path.parent == tmp_path / "rows"
    search = read_search(tmp_path / "rows")
    assert search.seconds == pytest.approx((22 - 4) / 3, abs=0.01) and search.used > 0
    assert found.best.config.budget.time == search.seconds


@needs_optuna
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": None, "time": 5}, "are not enough for 7 trials, 1 at a time: use a time=... of about"),
        ({"search": "lrr"}, "there is no setting 'lrr' to search"),
        ({"rubbish": 1}, "there is no setting 'rubbish'"),
    ],
)
def test_wrong_wishes_are_told_before_any_trial(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        tuned(tmp_path / "out", settings=settings)
    assert not (tmp_path / "out").exists()


@needs_optuna
def test_a_model_in_closed_form_is_not_searched(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the model 'ngram' is fitted in closed form"):
        unrolled.tune([row["text"] for row in ROWS], "next-token", "ngram", out=tmp_path / "out")


@needs_optuna
def test_a_search_in_which_all_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnrolledError, match=r"no trial of this search was trained to the end .*batch_size"):
        tuned(tmp_path / "out", settings={"search": "batch_size=-5|-3", "trials": 2})


@needs_optuna
def test_what_is_no_search_is_refused(done: Comparison, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not a search for settings: it has no tune\.json"):
        unrolled.tune(ROWS, resume=tmp_path)
    with pytest.raises(UsageError, match="a resumed search keeps its settings"):
        unrolled.tune(ROWS, resume=done.path, settings={"lr": 1})
    out = tmp_path / "rows"
    shutil.copytree(done.path, out)
    (out / JOURNAL).write_text('{"op_code": 4}\n')
    with pytest.raises(DataError, match="not the journal of a search"):
        unrolled.tune(ROWS, resume=out)
    (out / JOURNAL).unlink()
    (out / JOURNAL).symlink_to(tmp_path / "outside.log")
    with pytest.raises(DataError, match="points outside"):
        unrolled.tune(ROWS, resume=out)
    assert not (tmp_path / "outside.log").exists()
    (out / JOURNAL).unlink()
    shutil.copy(done.path / JOURNAL, out / JOURNAL)
    (out / f"{JOURNAL}.lock").mkdir()  # which would be waited for
    assert Study(out, read_search(out).space, 0, {}).trials()


@needs_optuna
def test_nothing_a_search_names_is_opened(done: Comparison, tmp_path: Path) -> None:
    """X1."""
    out = tmp_path / "rows"
    shutil.copytree(done.path, out)
    with pytest.raises(DataError, match="its data came from memory; give the same data again"):
        unrolled.tune(resume=out)
    search = read_search(out)
    evil = search.space[0].model_copy(update={"key": "start.from_run", "kind": "choice", "values": ["/etc/evil"]})
    write_search(out, search.model_copy(update={"space": [evil]}))
    with pytest.raises(DataError, match="searches for a path"):
        unrolled.tune(ROWS, resume=out)
    (out / FILE).write_text((done.path / FILE).read_text().replace('"trials": 7', '"trials": 8'))
    with pytest.raises(DataError, match="damaged"):
        unrolled.tune(ROWS, resume=out)


@needs_optuna
def test_what_is_drawn_depends_on_the_trials_before_alone(done: Comparison, tmp_path: Path) -> None:
    """And on the seed."""
    out = tmp_path / "rows"
    shutil.copytree(done.path, out)
    search = read_search(out)
    drawn = [Study(out, search.space, 0, search.first).ask().settings]
    shutil.copy(done.path / JOURNAL, out / JOURNAL)
    drawn += [Study(out, search.space, 0, search.first).ask().settings]
    shutil.copy(done.path / JOURNAL, out / JOURNAL)
    drawn += [Study(out, search.space, 1, search.first).ask().settings]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_trial_continues_in_the_better_half() -> None:
    assert [continues(score, [1.0, 2.0, 3.0, 4.0]) for score in (1.0, 2.0, 2.02, 2.03)] == [True, True, True, False]
    assert continues(9.0, [1.0, 2.0, 9.0])  # too few are known
    assert continues(-1.0, [-1.0, -2.0, -3.0, -4.0]) is False


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        UsageError, match=r"optuna is not installed; `unrolled tune` needs .*pip install 'unrolled\[tune\]'"
    ):
        unrolled.tune(ROWS, out=tmp_path / "out")
    with pytest.raises(UsageError):
        imported()
    assert not (tmp_path / "out").exists()


@needs_optuna
def test_the_lines_for_people(done: Comparison, capsys: pytest.CaptureFixture[str]) -> None:
    print_search(done.path, json.loads((done.path / "table.json").read_text()), sys.stdout)
    said = capsys.readouterr().out
    assert "▸ trial-" in said and "batch size" in said and "What mattered: " in said and "fANOVA" in said


def test_the_command_says_what_it_is() -> None:
    found = attempt("tune", "--help")
    assert found.code == 0 and "--trials" in found.out and "--search" in found.out
