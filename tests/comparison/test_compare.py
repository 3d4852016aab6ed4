"""Comparisons end to end, small: the same conditions for all, failures, resumption, equal sizes, equal scores."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.cli.table import print_comparison
from unrolled.comparison import plan as plans
from unrolled.comparison.api import make_plan
from unrolled.comparison.engine import Processes
from unrolled.comparison.files import read_plan, write_table
from unrolled.comparison.match import TOLERANCE
from unrolled.comparison.orders import Given, order_of
from unrolled.comparison.plan import ENSEMBLE, Job
from unrolled.comparison.saved import Comparison
from unrolled.comparison.view import Silent
from unrolled.core import discover
from unrolled.core.errors import DataError, Interrupted, NotTrained, UsageError
from unrolled.report.listing import list_all
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig
from unrolled.runs.guess import guess_task
from unrolled.runs.selection import read_table
from unrolled.training import api as training
from unrolled.training.signals import StopFlag

WORDS = ["one two three four five six seven eight nine ten"[i % 7 : i % 7 + 24] for i in range(400)]
MEMORY = {"examples": "stream"}
FAST = {"steps": 6, "batch_size": 8, "evaluate_every": 3, "d_embedding": 8, "models": "elman,tcn", "threads": 1}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_text("\n".join(WORDS * 4), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def memory(text):
    """The same text as Python hands it over: no other processes are begun for it."""
    return [text.read_text(encoding="utf-8")]


def compared(text, out, **settings):
    """A comparison by processes of its own, as the command line makes one; they are forked (tests/commands.py)."""
    told = [word for key, value in (FAST | settings).items() for word in ("--set", f"{key}={value}")]
    run_unrolled("compare", text, "-o", out, *told, forked=True)
    return Comparison(out, trained_on=text)


@pytest.fixture(scope="module")
def done(text, tmp_path_factory):
    """One finished comparison of two models and two seeds, by two processes."""
    return compared(text, tmp_path_factory.mktemp("comparison") / "words", seeds=2, jobs=2)


def test_every_row_is_there_and_sorted(done):
    labels = [row["label"] for row in done.rows]
    assert set(labels) == {"elman", "tcn", "memoryless", "unigram", "bigram", "trigram", "6-gram"}
    scores = [row["valid"] for row in done.rows]
    assert scores == sorted(scores)
    assert done.table["finished"] and done.table["task"] == "next-token" and done.table["guessed"]
    assert (done.path / "report.html").exists()


def test_rows_hold_what_a_choice_needs(done):
    for row in done.rows:
        low, high = row["interval"]
        assert low <= row["score"] <= high
        for name in ("parameters", "training_seconds", "tick_microseconds", "memory_megabytes", "serial_depth"):
            assert row[name] is not None, (row["label"], name)
        if row["kind"] == "model":
            assert len(row["runs"]) == 2 and row["spread"] >= 0 and row["tokens_per_second"] > 0
    by_label = {row["label"]: row for row in done.rows}
    assert by_label["elman"]["receptive_field"] is None
    assert by_label["memoryless"]["receptive_field"] == 1
    assert by_label["6-gram"]["score"] < by_label["unigram"]["score"]
    beaten = {other["label"] for other in done.rows if other["kind"] == "baseline"}
    for row in done.rows:
        expected = {n for n in beaten if by_label[n]["score"] <= row["score"]} if row["kind"] == "model" else set()
        assert set(row["beaten_by"]) == expected


def test_the_score_of_a_row_is_that_of_its_runs(done):
    row = next(row for row in done.rows if row["label"] == "tcn")
    runs = [done.run(folder) for folder in row["runs"]]
    assert row["score"] == pytest.approx(sum(run.result["test"]["nats"] for run in runs) / 2, rel=1e-6)
    assert {run.config.seed for run in runs} == {0, 1}
    assert runs[0].evaluate()["nats"] == pytest.approx(runs[0].result["test"]["nats"], rel=1e-5)
    assert set(runs[0].result["baselines"]) == {"unigram", "bigram", "trigram", "6-gram"}
    assert isinstance(done.best.generate("one ", max_tokens=5)[0]["text"], str)


def test_a_comparison_opens_as_the_model_that_validation_selects(done, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(done.path, folder)
    table = read_table(folder)
    rows = {row["label"]: row for row in table["rows"]}
    rows["tcn"] |= {"score": 0.1, "valid": 2.0, "valid_of_runs": [2.0, 2.0]}  # best on test data only
    rows["elman"] |= {"score": 9.0, "valid": 0.5, "valid_of_runs": [0.6, 0.4]}
    table["rows"].sort(key=lambda row: row["score"])
    write_table(folder, table)
    assert unrolled.load(folder).path.name == "elman-1"
    assert Comparison(folder).best.path.name == "elman-1"
    assert [entry.model for entry in list_all([folder])] == ["elman"]


def test_a_model_without_a_step_is_named_and_never_ranked(memory, tmp_path, monkeypatch):
    train = training.train

    def slow(data, task, model, settings, **more):
        if model == "tcn":
            raise NotTrained("no time", needs=90.0)
        few = {key: value for key, value in settings.items() if key != "budget.time"} | {"budget.steps": 2}
        return train(data, task, model, settings=few, **more)

    monkeypatch.setattr(training, "train", slow)
    settings = {**FAST, **MEMORY, "steps": None, "time": 600}
    found = unrolled.compare(memory, out=tmp_path / "out", settings=settings)
    last = found.rows[-1]
    assert (last["label"], last["score"], last["interval"], last["runs"]) == ("tcn", None, None, [])
    assert last["not_trained"].startswith("not trained: needs about 1 min 30 s, a budget of ")
    ranked = {row["label"]: row for row in found.rows if row["score"] is not None}
    assert ranked["6-gram"]["steps"] == 0 and ranked["elman"]["steps"] == 2  # fitted in closed form: ranked
    assert "not trained: needs about 1 min 30 s" in (found.path / "report.html").read_text(encoding="utf-8")
    told = io.StringIO()
    print_comparison(found.path, found.table, told)
    assert "tcn: not trained: needs about 1 min 30 s" in told.getvalue()


def test_a_model_with_few_steps_is_named_and_never_ranked(memory, tmp_path, monkeypatch):
    train, given = training.train, {"elman": 60, "memoryless": 60, "tcn": 2}

    def timed(data, task, model, settings, **more):
        few = {key: value for key, value in settings.items() if key != "budget.time"} | {
            "budget.steps": given.get(model)
        }
        return train(data, task, model, settings=few, **more)

    monkeypatch.setattr(training, "train", timed)
    settings = {**FAST, **MEMORY, "steps": None, "time": 600, "evaluate_every": 30, "ensemble": False}
    found = unrolled.compare(memory, out=tmp_path / "out", settings=settings)
    last = found.rows[-1]
    assert (last["label"], last["score"], last["valid"], last["runs"]) == ("tcn", None, None, [])
    assert last["not_trained"].startswith("not ranked, because it made 2 steps: needs about ")
    assert all(row["score"] is not None for row in found.rows[:-1])
    plan = read_plan(found.path)
    tried = order_of(found.path, plan, Given(memory, None), Job(folder="e", label="e", kind=ENSEMBLE, model="e"))
    assert not any(path.endswith("tcn-0") for path in tried["candidates"]["runs"])


@pytest.mark.long
def test_the_same_steps_give_the_same_scores(done, text, tmp_path):
    again = compared(text, tmp_path / "again", models="elman", jobs=1)
    for folder in ("elman-0", "memoryless-0", "baseline-6-gram"):
        assert again.run(folder).result["test"] == done.run(folder).result["test"]


def test_a_comparison_can_be_resumed(done, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(done.path, folder)
    shutil.rmtree(folder / "tcn-1")
    (folder / "table.json").unlink()
    run_unrolled("compare", done.trained_on, "--resume", folder, forked=True)
    again = Comparison(folder)
    assert [(row["label"], row["score"]) for row in again.rows] == [(row["label"], row["score"]) for row in done.rows]


@pytest.fixture
def breaks(tmp_path):
    """A user's own model that fails in training; it leaves the room with the test."""
    own = tmp_path / "breaks.py"
    own.write_text(
        '"""breaks: fails in training."""\n'
        "import torch\nfrom torch import nn\nfrom unrolled.core.causal import Causal\n"
        "from unrolled.core.config import Config as Base\n"
        "from unrolled.core.spec import ModelSpec\n\n\nclass Config(Base):\n    width: int = 4\n\n\n"
        "class Breaks(Causal):\n    d_out = 4\n\n    def __init__(self, d_in):\n        super().__init__()\n"
        "        self.map = nn.Linear(d_in, 4)\n\n    def forward(self, x, state=None):\n"
        "        if torch.is_grad_enabled():\n            raise RuntimeError('as asked for')\n"
        "        return self.map(x), ()\n\n\ndef make(config, sizes):\n    return Breaks(sizes.d_in)\n\n\n"
        'MODEL = ModelSpec(summary="it breaks", kind="causal", config=Config, tiny=Config(), make=make)\n',
        encoding="utf-8",
    )
    yield own
    discover.models.forget("breaks")


def test_one_model_that_fails_does_not_stop_the_others(memory, tmp_path, breaks):
    settings = {**FAST, **MEMORY, "models": "elman"}
    found = unrolled.compare(memory, out=tmp_path / "out", settings=settings, own_file=breaks)
    by_label = {row["label"]: row for row in found.rows}
    assert "as asked for" in by_label["breaks"]["failed"]
    assert by_label["elman"]["score"] is not None and by_label["elman"]["failed"] is None
    assert found.rows[-1]["label"] == "breaks"
    assert found.table["winner"] != "breaks"


def test_a_process_that_is_killed_is_a_row_that_says_so(text, tmp_path):
    engine = Processes(at_once=1, threads=1)
    order = {"task": "next-token", "model": "elman", "settings": {"steps": 100_000}, "own_file": None, "baselines": {},
             "data": str(text)}  # fmt: skip
    orders = [{**order, "folder": name, "out": str(tmp_path / name)} for name in ("one", "two")]
    orders[1]["settings"] = {"steps": 2}
    seen = []
    for event in engine.events(orders, StopFlag()):
        seen.append((event["event"], event["folder"], event.get("why")))
        if event["event"] == "evaluation" and event["folder"] == "one":
            engine.workers[0].process.kill()
    engine.close()
    ends = {folder: (kind, why) for kind, folder, why in seen if kind in ("done", "failed")}
    assert ends["one"][0] == "failed" and "killed" in ends["one"][1]
    assert ends["two"][0] == "done"


@pytest.mark.long
def test_a_signal_saves_and_says_how_to_go_on(text, tmp_path):
    command = [sys.executable, "-m", "unrolled.cli.main", "compare", str(text), "--models", "elman", "--steps",
               "100000", "-o", str(tmp_path / "out"), "--jobs", "1"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    place = tmp_path / "out" / "elman-0" / "metrics.jsonl"
    for _ in range(600):
        if place.exists() and place.stat().st_size:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 75
    assert f"unrolled compare {text} --resume {tmp_path / 'out'}" in said
    assert json.loads((tmp_path / "out" / "table.json").read_text())["finished"] is False
    assert list((tmp_path / "out" / "elman-0" / "checkpoints").iterdir())


def test_data_in_memory_is_compared_in_this_process(tmp_path):
    found = unrolled.compare(WORDS, out=tmp_path / "out", settings={**FAST, "models": "elman", "fractions": "0.5,1"})
    assert {row["label"] for row in found.rows if row["kind"] == "model"} == {
        "elman 0.5", "elman 1", "memoryless 0.5", "memoryless 1"}  # fmt: skip
    assert found.table["data"] == "memory"
    small, whole = (found.run(f"elman-{name}-0") for name in ("0.5", "1"))
    assert small.config.data.fraction == 0.5 and whole.config.data.fraction == 1.0
    with pytest.raises(DataError, match="came from memory"):
        unrolled.compare(resume=found.path)


@pytest.mark.parametrize(
    "size", ["small", *(pytest.param(size, marks=pytest.mark.long) for size in ("medium", "large"))]
)
def test_sizes_agree_within_five_percent(text, size):
    asked = {"match": "params", "size": size, "steps": 1, "preset": "thorough"}
    plan = make_plan(text, None, asked)
    task = make_task(RunConfig())
    task.prepare(text)
    sizes, _ = plans.sizes_of(plan.asked, [job.model for job in plan.jobs if job.kind == "model"], task)
    counts = [sized.parameters for sized in sizes.values()]
    assert len(counts) >= 8
    assert max(counts) <= (1 + TOLERANCE) * min(counts)


@pytest.mark.long
def test_a_matched_run_has_the_size_that_was_planned(memory, tmp_path):
    settings = {"steps": 1, "models": "elman,transformer", "match": "params", "size": "small", "length": 16, **MEMORY}
    found = unrolled.compare(memory, out=tmp_path / "out", settings=settings)
    counts = [row["parameters"] for row in found.rows if row["kind"] == "model"]
    assert len(counts) == 3
    assert max(counts) <= (1 + TOLERANCE) * min(counts)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"models": "lstn"}, "there is no model 'lstn'"),
        ({"models": "transformer-encoder"}, "does not fit the task 'next-token'"),
        ({"fractions": "0,1"}, "is not a list of fractions"),
        ({"time": "soon"}, "to limit the training time"),
        ({"rubbish": 1}, "there is no setting 'rubbish'"),
        ({"seed": 3}, "'seed' is decided run by run in a comparison: use seeds"),
        ({"models": "elman", "elman.seed": 3}, "'elman.seed' is decided run by run"),
        ({"data.fraction": 0.5}, "use fractions"),
        ({"models": "elman", "gru.d_state": 8}, "settings for gru, but the models compared are elman"),
        ({"models": "elman", "elman.kernel": 8}, "there is no setting 'kernel'"),
    ],
)
def test_wrong_wishes_are_told_before_any_run(text, tmp_path, settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        unrolled.compare(text, out=tmp_path / "out", settings=settings)
    assert not (tmp_path / "out").exists()


def test_a_setting_that_few_tasks_have_tells_the_task(tmp_path):
    rows = [{"text": f"one {i}", "genres": "war;love" if i % 2 else ""} for i in range(20)]
    assert guess_task(rows, {})[0] == "next-token"
    assert guess_task(rows, {"target": "genres", "class_separator": ";"})[0] == "classify"
    with pytest.raises(UsageError, match="name one of classify, denoise, forecast, recall, regress and tag, which"):
        guess_task(rows, {"target": "genres"})  # some of these answers are empty
    assert guess_task(rows, {"order": 3, "model.window": 8})[0] == "next-token"  # models have these too


def test_a_short_time_is_not_spent_on_held_out_data(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("\n".join(WORDS * 60), encoding="utf-8")
    plan = make_plan(path, None, {"time": 60, "models": "elman,gru", "split": "80/10/10", "jobs": 2})
    assert plan.settings["held_out"] == 40_000  # a thousand tokens per second of each run, three runs two at a time
    assert "40,000 tokens of valid and test" in plan.notes[0]
    assert "held_out" not in make_plan(path, None, {"time": 60, "models": "elman", "held_out": 100}).notes
    assert make_plan(path, None, {"steps": 5, "models": "elman"}).settings == {}


def test_without_equal_conditions_runs_end_when_they_stop_getting_better(text):
    plan = make_plan(text, None, {"match": "none", "time": 600, "models": "elman,gru"})
    jobs = [job for job in plan.jobs if job.kind == "model"]
    assert {job.settings["patience"] for job in jobs} == {plans.PATIENCE}
    for other in ({"match": "time", "time": 600}, {"match": "none", "steps": 5}):
        plan = make_plan(text, None, {**other, "models": "elman"})
        assert all("patience" not in job.settings for job in plan.jobs)


@pytest.mark.long
def test_a_setting_may_be_for_one_model(memory, tmp_path):
    settings = {"steps": 1, "models": "elman,gru", "d_state": 6, "gru.d_state": 9, "gru.steps": 2, **MEMORY}
    found = unrolled.compare(memory, out=tmp_path / "out", settings={**settings, "memoryless.d_state": 4})
    widths = {name: found.run(f"{name}-0").config.model_settings["d_state"] for name in ("elman", "gru")}
    assert widths == {"elman": 6, "gru": 9}
    assert {name: found.run(f"{name}-0").result["steps"] for name in ("elman", "gru")} == {"elman": 1, "gru": 2}
    assert "gru.d_state=9" in found.table["command"]
    for own in ({"time": 600, "elman.steps": 2}, {"steps": 5, "elman.time": 60}):
        with pytest.raises(UsageError, match="the budget is shared equally"):
            make_plan(memory, None, {"models": "elman", **MEMORY, **own})


def test_a_budget_that_is_too_short_is_refused(memory, tmp_path):
    with pytest.raises(UsageError, match="not enough for"):
        unrolled.compare(memory, out=tmp_path / "out", settings={"time": 2, "models": "elman", **MEMORY})


def test_what_is_no_comparison_is_refused(tmp_path, done):
    with pytest.raises(DataError, match="is not a comparison"):
        unrolled.compare(resume=tmp_path)
    with pytest.raises(UsageError, match="already exists"):
        unrolled.compare("builtin:unicode-names", out=done.path, settings=FAST)
    with pytest.raises(UsageError, match="no data was given"):
        unrolled.compare()


def test_interrupted_is_an_error_that_can_be_resumed():
    assert Interrupted("x").exit_code == 75


@pytest.mark.long
def test_a_run_that_saw_other_data_is_no_row_of_the_same_table(memory, tmp_path):
    data = list(memory)

    class Editor(Silent):
        def event(self, event):
            if event["event"] == "done" and event["folder"].startswith("elman"):
                data[0] = data[0].replace("one", "two")

    done = unrolled.compare(data, out=tmp_path / "c", settings={**MEMORY, **FAST, "steps": 1}, view=Editor())
    rows = {row["label"]: row for row in done.rows}
    assert rows["elman"]["runs"] and rows["elman"]["failed"] is None
    assert not rows["tcn"]["runs"]
    assert "the data changed during the comparison" in rows["tcn"]["failed"]
    assert done.table["verdict"]
