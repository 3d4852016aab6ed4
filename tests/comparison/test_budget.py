"""The time of a comparison: who gets how much of it, told by a clock of our own; nothing here waits."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

import unrolled
from unrolled.comparison import api, budget, engine, work
from unrolled.comparison.api import make_plan
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.plan import Job, Plan
from unrolled.comparison.view import Lines, Live
from unrolled.comparison.worker import seconds_of
from unrolled.core.errors import DataError, NotTrained, UnrolledError
from unrolled.core.task import Baseline
from unrolled.runs.build import make_model, make_task
from unrolled.runs.config import RunConfig
from unrolled.tasks.next_token import Task
from unrolled.training import api as training
from unrolled.training import estimate, loop
from unrolled.training.estimate import Pace

WORDS = [" ".join(["one two three four five six seven eight"[i % 7 :] for i in range(300)])]
SETTINGS = {"models": "elman,gru,tcn", "examples": "stream", "threads": 1, "ensemble": False, "match": "time"}


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.module = SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    for module in (api, work, loop, training):
        monkeypatch.setattr(module, "time", made.module)
    return made


def timed(monkeypatch, clock, slow):
    """The seconds that each run of a comparison is given, where some take longer than that."""
    given = {}

    def perform(order, data, tell):
        if order["trained"]:
            seconds = given[order["model"]] = seconds_of(order["budget"], clock.now)
            clock.now += seconds + order["budget"]["rest"] + slow.get(order["model"], 0.0)
        tell({"event": "done", "rest": 3.0})

    monkeypatch.setattr(engine, "perform", perform)
    return given


def compare(path, **more):
    """Nothing is trained here, which is told at the end."""
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(WORDS, out=path, settings={**SETTINGS, "time": 404}, **more)


def test_what_runs_do_after_their_figures_is_part_of_their_share(monkeypatch, clock, tmp_path):
    given, begun = timed(monkeypatch, clock, {}), clock.now
    compare(tmp_path / "out")
    assert given == {
        name: pytest.approx(97.0) for name in ("elman", "gru", "tcn", "memoryless")
    }  # 3 s are for the rest
    assert clock.now - begun == pytest.approx(400)


def test_a_run_that_starts_late_has_less_time(monkeypatch, clock, tmp_path, capsys):
    given, begun = timed(monkeypatch, clock, {"elman": 60.0}), clock.now
    compare(tmp_path / "out", view=Lines())
    assert given == {"elman": pytest.approx(97.0)} | {name: pytest.approx(77.0) for name in given if name != "elman"}
    assert clock.now - begun == pytest.approx(400)
    assert "over the budget" not in capsys.readouterr().err


def test_what_is_over_the_budget_is_told(monkeypatch, clock, tmp_path, capsys):
    timed(monkeypatch, clock, {"memoryless": 90.0})
    compare(tmp_path / "out", view=Lines())
    assert "note: 1:26 over the budget" in capsys.readouterr().err


@pytest.mark.parametrize(("slow_before", "needs"), [(True, 60.0), (False, None)])
def test_a_run_without_time_for_a_step_says_what_it_needs(monkeypatch, clock, tmp_path, slow_before, needs):
    evaluate, seen = Task.evaluate, []

    def slow(self, model, split, limit=None, ledger=None):
        seen.append(split)
        clock.now += 30.0 if slow_before else 0.0
        found = evaluate(self, model, split, limit, ledger)
        clock.now += 0.0 if slow_before else 30.0
        return found

    monkeypatch.setattr(Task, "evaluate", slow)
    settings = {"time": 10, "examples": "stream", "threads": 1, "plain": True}
    with pytest.raises(NotTrained, match="no training steps were run") as caught:
        unrolled.train(WORDS, "next-token", "elman", out=tmp_path / "run", settings=settings, baselines={})
    assert caught.value.needs > 60 if needs is None else caught.value.needs == needs
    assert seen == ["valid"]  # no figures of a model that was not trained
    assert not (tmp_path / "run").exists()


SLOW = {"elman": 4.0, "gru": 40.0, "tcn": 400.0}


def paced(monkeypatch, of=SLOW):
    """Models take so many seconds a step; baselines take none."""
    monkeypatch.setattr(budget, "pace_of", lambda config, *_: Pace(of.get(config.model, 4.0), 1.0, 2.0))
    monkeypatch.setattr(budget, "closed_forms", lambda *_: estimate.ClosedForms(0.0, 0.0, 0))


def test_a_comparison_without_time_to_train_is_refused_before_the_first_run(monkeypatch, clock, tmp_path):
    paced(monkeypatch)
    given = timed(monkeypatch, clock, {})
    with pytest.raises(
        UnrolledError, match=r"30 s are not enough for 4 runs.* fastest model needs 45 s.*time="
    ) as caught:
        unrolled.compare(WORDS, out=tmp_path / "out", settings={**SETTINGS, "time": 30})
    assert given == {}
    assert not (tmp_path / "out").exists()
    assert caught.value.exit_code == 2
    assert "of about" in str(caught.value)


def test_a_baseline_that_cannot_be_fitted_is_no_reason_to_refuse_a_comparison(monkeypatch):
    """Which its run tells."""

    def fails(*_):
        raise DataError("too short")

    monkeypatch.setattr(estimate.closed_form, "fit", fails)
    monkeypatch.setattr(estimate, "make_model", lambda *_: None)
    task = SimpleNamespace(describe=dict, recall=lambda _: None)
    assert (
        estimate.closed_form_seconds(RunConfig.parse({"task": "next-token"}), task, [Baseline("a", "elman", {})], 9.0)
        < 9
    )


def test_what_a_quick_model_needs_is_the_time_to_start(monkeypatch, clock, tmp_path):
    paced(monkeypatch)
    monkeypatch.setattr(budget, "pace_of", lambda *_: Pace(0.001, 0.1, 0.1))
    timed(monkeypatch, clock, {})
    with pytest.raises(UnrolledError, match=r"the fastest model needs 4\.5 s to start, for 10 steps and"):
        unrolled.compare(WORDS, out=tmp_path / "out", settings={**SETTINGS, "time": 20})


def test_the_budget_that_is_named_is_enough(monkeypatch, clock, tmp_path):
    paced(monkeypatch, {})
    with pytest.raises(UnrolledError, match="not enough") as caught:
        make_plan(WORDS, None, {**SETTINGS, "time": 30}, started=clock.now)
    minutes = float(str(caught.value).split("of about ")[1].split(" min")[0])
    assert make_plan(WORDS, None, {**SETTINGS, "time": 60 * minutes}, started=clock.now).notes == []


def test_models_that_have_too_little_time_are_left_out_and_others_have_theirs(monkeypatch, clock, tmp_path):
    paced(monkeypatch)
    given = timed(monkeypatch, clock, {})
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(WORDS, out=tmp_path / "out", settings={**SETTINGS, "time": 604})
    assert given == {name: pytest.approx(297.0) for name in ("elman", "memoryless")}
    table = json.loads((tmp_path / "out" / "table.json").read_text())
    told = {row["model"]: row["not_trained"] for row in table["rows"] if row["kind"] == "model"}
    assert "needs about" in told["gru"] and "needs about" in told["tcn"] and told["elman"] is None
    assert any("gru, tcn are not trained: there is too little time" in note for note in table["notes"])


def test_a_plain_comparison_leaves_out_only_what_cannot_be_trained(monkeypatch, clock):
    paced(monkeypatch, {"elman": 4.0, "gru": 8.0, "tcn": 800.0})
    plan = make_plan(WORDS, None, {**SETTINGS, "time": 600, "plain": True}, started=clock.now)
    assert any("tcn is not trained: there is too little time" in note for note in plan.notes)
    assert make_plan(WORDS, None, {**SETTINGS, "steps": 5}, started=clock.now).notes == []


def test_a_run_without_time_to_train_is_refused_before_its_baselines(monkeypatch, tmp_path):
    monkeypatch.setattr(estimate, "pace_of", lambda *_: Pace(3.0, 1.0, 2.0))
    monkeypatch.setattr(training, "measure_baselines", lambda *_: pytest.fail("baselines were fitted"))
    settings = {"time": 20, "examples": "stream", "threads": 1}
    with pytest.raises(NotTrained, match=r"20 s are not enough to train 'elman'.* a step takes 3 s") as caught:
        unrolled.train(WORDS, "next-token", "elman", out=tmp_path / "run", settings=settings)
    assert caught.value.needs == 420  # 100 steps with some to spare
    assert not (tmp_path / "run").exists()


def test_measuring_leaves_a_model_as_it_was():
    config = training.configure("next-token", "gru", WORDS, {"examples": "stream"})
    task = make_task(config)
    task.prepare(WORDS)
    model = make_model(config, task).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    noise = torch.get_rng_state()
    pace = estimate.pace_of(config, task, model)
    assert pace.step > 0
    assert pace.look > 0
    assert pace.end > 0
    assert pace.needs(100) > pace.needs(10) > 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(noise, torch.get_rng_state())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert estimate.closed_form_seconds(config, task, task.baselines(), 9.0) > 0


@pytest.mark.parametrize(("limit", "jobs", "threads"), [("1", 1, 1), ("2", 2, 2), ("", 2, 4), ("99", 4, 2)])
def test_threads_are_no_more_than_the_environment_allows(monkeypatch, limit, jobs, threads, tmp_path):
    monkeypatch.setattr(api.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    path = tmp_path / "words.txt"
    path.write_text(WORDS[0], encoding="utf-8")
    assert make_plan(path, "next-token", {"models": "elman,gru,tcn", "steps": 1, "jobs": jobs}).threads == threads


def test_the_live_screen_says_when_the_budget_is_over():
    jobs = [Job(folder="gru-0", label="gru", kind="model", model="gru")]
    plan = Plan(
        data="a", task="b", guessed=None, asked=CompareConfig(time=60), settings={}, at_once=1, threads=1, jobs=jobs
    )
    view = Live()
    view.begin(plan, Path("comparisons/a"), time.monotonic() - 100)
    view.event({"event": "closing", "folder": "gru-0"})
    view.end()
    screen = Console(width=100, file=io.StringIO(), record=True)
    screen.print(view._draw())
    text = screen.export_text()
    assert "over budget, finishing" in text and "evaluating" in text


def test_models_are_tried_with_their_own_settings(monkeypatch):
    """An encoder-decoder forecasts whole sequences, others all steps at once."""
    seen = {}

    def pace(config, task, model):
        seen[config.model] = task.config.by
        return Pace(0.01, 0.01, 0.01)

    monkeypatch.setattr(budget, "pace_of", pace)
    settings = {"models": "seq2seq,gru", "horizon": 4, "time": 5000, "threads": 1, "preset": "quick"}
    make_plan([[k % 7] for k in range(90)], "forecast", settings, None, time.monotonic())
    assert seen["seq2seq"] == "sequence" and seen["gru"] == "auto"


def test_a_model_that_was_not_tried_may_be_faster(monkeypatch):
    monkeypatch.setattr(budget, "pace_of", lambda *_: Pace(1e4, 1e4, 1e4))
    settings = {"models": "seq2seq,gru", "horizon": 4, "time": 500, "threads": 1, "preset": "quick"}
    data = [[k % 7] for k in range(90)]
    with pytest.raises(UnrolledError, match="are not enough"):
        make_plan(data, "forecast", settings, None, time.monotonic())
    monkeypatch.setattr(budget, "MEASURING", -1.0)
    make_plan(data, "forecast", settings, None, time.monotonic())


def test_closed_forms_among_the_models_have_no_share_and_come_before_what_is_trained(monkeypatch, clock, tmp_path):
    order, given = [], timed(monkeypatch, clock, {})
    perform = engine.perform
    monkeypatch.setattr(engine, "perform", lambda each, *rest: (order.append(each["model"]), perform(each, *rest)))
    series = [float(i % 12) for i in range(200)]
    settings = {"models": "gru,linear-map", "horizon": 3, "threads": 1, "time": 404, "ensemble": False}
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(series, task="forecast", out=tmp_path / "out", settings=settings)
    solved = ("ar", "ets", "linear-map", "theta")
    assert not set(solved) & set(given)
    assert max(order.index(name) for name in solved) < min(order.index(name) for name in given)
    n = len(given)
    assert given["gru"] == pytest.approx(400 / n - 3.0)


def test_baselines_that_took_longer_than_estimated_leave_less_to_train_and_refuse_nothing(monkeypatch, clock, tmp_path):
    given = timed(monkeypatch, clock, {})
    perform = engine.perform

    def late(order, data, tell):
        clock.now += 0.0 if order["trained"] else 250.0
        perform(order, data, tell)

    monkeypatch.setattr(engine, "perform", late)
    compare(tmp_path / "out")
    assert given and all(seconds == 1.0 for seconds in given.values())


def test_an_ensemble_has_the_time_that_it_needs_and_others_have_the_rest(monkeypatch, clock):
    paced(monkeypatch, {})
    settings = {**SETTINGS, "ensemble": True}
    plan = make_plan(WORDS, None, {**settings, "time": 6000}, started=clock.now)
    assert plan.for_ensemble == pytest.approx(720)  # an eighth, as long as nothing is done
    known = budget.with_combining(
        plan, {job.folder: {"seconds": 2.0, "training_seconds": 0.5} for job in plan.jobs if job.kind == "baseline"}
    )
    assert known.for_ensemble == pytest.approx(plan.mixing + budget.READ * (4 * 1.5 + 4 * 2.0))
    assert 5 < known.for_ensemble < 100
    short = make_plan(WORDS, None, {**settings, "time": 650}, started=clock.now)
    slow = budget.with_combining(short, {job.folder: {"seconds": 99.0} for job in plan.jobs})
    assert slow.for_ensemble == pytest.approx(78)  # no more than that, however slow it is


def test_of_less_time_than_estimated_the_fastest_models_make_use(monkeypatch, clock, tmp_path, capsys):
    paced(monkeypatch, {"elman": 0.2, "gru": 0.5, "tcn": 2.0, "memoryless": 0.2})
    given = timed(monkeypatch, clock, {})
    perform = engine.perform

    def late(order, data, tell):
        clock.now += 0.0 if order["trained"] else 85.0
        perform(order, data, tell)

    monkeypatch.setattr(engine, "perform", late)
    compare(tmp_path / "out", view=Lines())
    assert set(given) == {"elman", "memoryless"} and all(seconds > 15 for seconds in given.values())
    table = json.loads((tmp_path / "out" / "table.json").read_text())
    told = {row["model"]: row["not_trained"] for row in table["rows"] if row["kind"] == "model"}
    assert "needs about" in told["gru"] and "needs about" in told["tcn"] and told["elman"] is None
    assert any("gru is not trained: there is too little time, because" in note for note in table["notes"])
    assert "gru-0: not trained" in capsys.readouterr().err


def test_of_models_that_were_not_named_some_are_trained_for_longer(monkeypatch, clock):
    paced(monkeypatch, {"memoryless": 0.05, "elman": 0.1, "gru": 0.2, "lstm": 0.2, "tcn": 0.3, "transformer": 0.4})
    settings = {"examples": "stream", "threads": 1, "ensemble": False, "time": 160}
    plan = make_plan(WORDS, None, settings, started=clock.now)
    late = [job.model for job in plan.jobs if job.needs is not None]
    assert late == ["tcn", "transformer"] and plan.n_trained == 4
    named = make_plan(WORDS, None, settings | {"models": "elman,gru,lstm,tcn,transformer"}, started=clock.now)
    assert named.n_trained == 6


def test_held_out_data_is_cut_where_metrics_would_take_too_long() -> None:
    task = SimpleNamespace(UNIT="tokens", held_out=lambda: ["valid", "test"], size=lambda split: 100_000)
    paces = {"gru": Pace(0.01, 1.0, 10.0), "tcn": Pace(0.01, 1.0, 40.0)}
    plan = make_plan(WORDS, "next-token", SETTINGS | {"steps": 1})
    cut, faster = budget._with_less_held_out(plan, task, paces, 10.0)
    assert cut.settings["held_out"] == 25_000
    assert faster["tcn"].end == pytest.approx(10.0)
    assert cut.notes[-1].startswith("scores are computed on 25,000 tokens of valid and test")
    again, _ = budget._with_less_held_out(cut, task, {"tcn": Pace(0.01, 1.0, 11.0)}, 10.0)
    assert again.settings["held_out"] == 22_727
    assert sum(note.startswith(budget.SCORED) for note in again.notes) == 1
    by_hand = plan.model_copy(update={"settings": {**plan.settings, "held_out": 90_000}})
    assert budget._with_less_held_out(by_hand, task, paces, 10.0) == (by_hand, paces)
    assert budget._with_less_held_out(plan, task, paces, 40.0) == (plan, paces)
    least, _ = budget._with_less_held_out(plan, task, paces, -1.0)
    assert least.settings["held_out"] == budget.LEAST_HELD_OUT
