"""A race of models: who is stopped, what the others get, and that a race that was stopped resumes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import unrolled
from unrolled.comparison import api, engine, halving, work
from unrolled.comparison.api import make_plan
from unrolled.comparison.files import read_plan
from unrolled.comparison.plan import Plan
from unrolled.comparison.view import Lines
from unrolled.comparison.worker import seconds_of
from unrolled.core.errors import Interrupted, UnrolledError
from unrolled.training import rungs
from unrolled.training.rungs import Reached

WORDS = [" ".join(["one two three four five six seven eight"[i % 7 :] for i in range(300)])]
FINAL = {"elman": 2.0, "gru": 1.0, "lstm": 1.5, "tcn": 2.5, "memoryless": 3.0}
SETTINGS = {"models": "elman,gru,lstm,tcn", "examples": "stream", "threads": 1, "ensemble": False, "time": 410}


def standing(label: str, losses: Any) -> halving.Standing:
    return halving.Standing(label, [reached(losses)])


def reached(losses: Any, seconds: float = 9.0) -> Reached:
    units = [(float(loss), 1.0) for loss in losses]
    return Reached(seconds=seconds, steps=5, criterion="nats", score=float(np.mean(losses)), units=units)


def test_the_worse_half_is_stopped_and_told_why() -> None:
    rows = [standing(label, np.full(20, loss) + np.arange(20) / 1000) for label, loss in FINAL.items()]
    lost = halving.stopped(rows, 3, 1)
    assert list(lost) == ["tcn", "memoryless"]
    assert "stopped after 9 s at rung 1 of the race: nats 2.51 on validation data, behind elman with 2.01" in str(lost)
    assert halving.stopped(rows, 5, 1) == {}


def test_what_is_close_to_the_cut_continues() -> None:
    random = np.random.default_rng(0)
    one, other = standing("one", random.normal(2.0, 1.0, 20)), standing("other", random.normal(2.1, 1.0, 20))
    first, last = sorted((one, other), key=lambda row: row.score)
    assert last.score - first.score > halving.NEAR * first.score  # but units differ by more
    assert halving.is_close(last, first)
    assert halving.is_close(standing("near", [1.009] * 20), standing("cut", [1.0] * 20))
    assert not halving.is_close(standing("far", [1.02] * 20), standing("cut", [1.0] * 20))
    assert not halving.is_close(standing("odd", [1.02] * 19), standing("cut", [1.0] * 20))


def test_seeds_are_judged_by_their_sum_and_folds_one_behind_the_other() -> None:
    one, other = reached([1.0, 2.0, 3.0]), reached([3.0, 2.0, 1.0])
    seeds, folds = halving.Standing("a", [one, other]).sample, halving.Standing("a", [one, other], True).sample
    assert seeds is not None and folds is not None
    assert seeds.statistics.tolist() == [[[4.0, 2.0]] * 3]
    assert folds.statistics[0, :, 0].tolist() == [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]
    assert halving.Standing("a", [one, reached([1.0])]).sample is None
    missing = one.model_copy(update={"units": [(1.0, 1.0), (0.0, 0.0), (3.0, 1.0)]})
    found = halving.Standing("a", [missing]).sample
    assert found is not None and np.isnan(found.statistics[0, 1]).all()  # not measured


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.module = SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now)


class Trained:
    """Stands for training: time passes, and a run that pauses says so in its directory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.said, self.used = Clock(), [], dict[str, float]()  # type: ignore[var-annotated]
        self.kill: str | None = None
        self.joined: list[str] = []
        for module in (api, work):
            monkeypatch.setattr(module, "time", self.clock.module)
        monkeypatch.setattr(engine, "perform", self.perform)
        monkeypatch.setattr(rungs, "reached", self.reached)

    def reached(self, path: Path) -> Reached | None:
        loss = FINAL.get(path.name.split("-")[0])
        seconds = self.used.get(path.name)
        if loss is None or seconds is None:
            return None
        return reached(loss + np.arange(9) / 99, seconds)

    def perform(self, order: dict[str, Any], data: Any, tell: Any) -> None:
        name, rung = order["folder"], order.get("rung")
        if order["members"]:
            self.joined.append(name)
        if rung is None:
            tell({"event": "done"})
            return
        if name == self.kill:
            self.kill = None
            raise Interrupted("stopped")
        before = self.used.get(name, 0.0)
        if rung["end"]:
            self.said.append((name, "end", before))
        elif rung["until"] is not None:
            self.used[name] = rung["until"]
            self.said.append((name, "until", rung["until"]))
            tell({"event": "paused", "preparing": 0.0})
        else:
            left = seconds_of(order["budget"], self.clock.now) - rung["preparing"]
            self.used[name] = min(rung["time"], before + left)
            self.said.append((name, "last", self.used[name]))
        self.clock.now += self.used[name] - before
        if rung["end"] or rung["until"] is None:
            tell({"event": "done", "rest": 0.0})


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    return Trained(monkeypatch)


def compare(path: Path, **more: Any) -> None:
    """Nothing is trained here, which is told at the end."""
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(WORDS, out=path, settings=SETTINGS, **more)


def test_a_race_gives_the_time_of_the_stopped_to_the_others(trained: Trained, tmp_path: Path) -> None:
    begun = trained.clock.now
    compare(tmp_path / "a")
    plan = read_plan(tmp_path / "a")
    assert plan.share is not None
    ends = [(name, what) for name, what, _ in trained.said]
    assert ends[:5] == [(f"{name}-0", "until") for name in ("elman", "gru", "lstm", "tcn", "memoryless")]
    assert ends[5:7] == [("tcn-0", "end"), ("memoryless-0", "end")]
    assert ends[7:10] == [("elman-0", "until"), ("gru-0", "until"), ("lstm-0", "until")]
    assert ends[10:] == [("elman-0", "end"), ("gru-0", "last"), ("lstm-0", "last")]
    first = {seconds for _, what, seconds in trained.said[:5]}
    assert first == {round(halving.HOLD * plan.share, 2)}  # equal conditions
    last = [seconds for _, what, seconds in trained.said if what == "last"]
    assert last[0] == last[1]
    assert last[0] > 1.5 * plan.share
    assert trained.clock.now - begun <= SETTINGS["time"]
    assert [sorted(rung.stopped) for rung in plan.rungs] == [["memoryless", "tcn"], ["elman"], []]
    table = json.loads((tmp_path / "a" / "table.json").read_text())
    rows = {row["label"]: row for row in table["rows"]}
    assert table["match"] == "race"
    assert rows["tcn"]["rung"] == 1
    assert "behind elman" in rows["tcn"]["stopped"]
    assert rows["gru"]["rung"] == 3
    assert rows["gru"]["stopped"] is None
    assert len(table["race"]) == 3


def test_a_race_ends_when_all_runs_have_ended_by_themselves(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def ends(order: dict[str, Any], data: Any, tell: Any) -> None:
        if order.get("rung") is None:
            trained.perform(order, data, tell)
            return
        assert order["folder"] not in done
        done.append(order["folder"])
        tell({"event": "done", "rest": 0.0})

    monkeypatch.setattr(engine, "perform", ends)
    monkeypatch.setattr(work, "is_done", lambda folder, job: job.folder in done)
    monkeypatch.setattr(work, "complete", lambda path: None)
    compare(tmp_path / "a")
    assert len(done) == 5
    assert [rung.stopped for rung in read_plan(tmp_path / "a").rungs] == [{}]


@pytest.mark.parametrize("killed", ["lstm-0", "tcn-0", "gru-0"])
def test_a_race_that_was_stopped_resumes(trained: Trained, tmp_path: Path, killed: str) -> None:
    compare(tmp_path / "a")
    whole, share = list(trained.said), read_plan(tmp_path / "a").share
    times = [rung.time for rung in read_plan(tmp_path / "a").rungs]
    trained.said.clear()
    trained.used.clear()
    trained.kill = killed
    with pytest.raises(Interrupted):
        unrolled.compare(WORDS, out=tmp_path / "b", settings=SETTINGS)
    assert len(trained.said) < len(whole)
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(WORDS, resume=tmp_path / "b")
    plan = read_plan(tmp_path / "b")
    assert plan.share == share
    assert [sorted(rung.stopped) for rung in plan.rungs] == [["memoryless", "tcn"], ["elman"], []]
    untils = [each for each in trained.said if each[1] == "until"]
    assert sorted(untils) == sorted(each for each in whole if each[1] == "until")  # each once
    assert {name for name, what, _ in trained.said if what == "last"} == {"gru-0", "lstm-0"}
    assert [rung.time for rung in plan.rungs] == pytest.approx(times, rel=0.01)  # no more time than before
    assert trained.used["gru-0"] == pytest.approx(times[-1], rel=0.01)


def may_race(**asked: Any) -> Plan:
    return make_plan(WORDS, None, {**SETTINGS, **asked})


def test_equal_shares_where_there_is_no_race(trained: Trained, tmp_path: Path) -> None:
    assert may_race().may_race
    assert not may_race(match="time").may_race
    assert not may_race(fractions="0.5,1").may_race
    steps = {key: value for key, value in SETTINGS.items() if key != "time"}
    assert not make_plan(WORDS, None, {**steps, "steps": 3}).may_race
    assert may_race().match == "time"  # until there is a rung
    waits = may_race(schedule="cosine")
    assert not waits.may_race
    assert any("no race" in note and "the length of the run (schedule=" in note for note in waits.notes)
    assert may_race(**{"gru.schedule": "cosine"}).asked.match == "time"


def test_too_little_time_for_a_race_is_told(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(WORDS, out=tmp_path / "a", settings={**SETTINGS, "time": 90}, view=Lines())
    assert "no race, every run has the same time: 30 s each are needed for one" in capsys.readouterr().err
    assert read_plan(tmp_path / "a").rungs == []
    assert json.loads((tmp_path / "a" / "table.json").read_text())["match"] == "time"


ROWS = [{"text": f"{'abcdefgh'[i % 8] * 3} {'uvwxyz'[i % 6] * 2}", "value": i * 7 % 11} for i in range(60)]


def test_folds_of_a_row_are_judged_and_stopped_together(trained: Trained, tmp_path: Path) -> None:
    settings = {"models": "elman,gru,lstm", "target": "value", "folds": 2, "threads": 1, "ensemble": False, "time": 800}
    with pytest.raises(UnrolledError, match="no model of this comparison was trained"):
        unrolled.compare(ROWS, out=tmp_path / "a", settings=settings)
    plan = read_plan(tmp_path / "a")
    raced = set(plan.rungs[0].runs)
    assert {f"{name}-fold-{k}" for name in ("elman", "gru", "lstm") for k in (0, 1)} <= raced
    ended = [name for name, what, _ in trained.said if what == "end"]
    assert all(f"{name.removesuffix('0')}1" in ended for name in ended if name.endswith("0"))
    assert "elman-fold-0" in ended
    assert "gru-fold-0" not in ended
    assert {"elman", "gru", "lstm"} <= set(trained.joined)  # the stopped, too
    table = json.loads((tmp_path / "a" / "table.json").read_text())
    rows = {row["label"]: row for row in table["rows"]}
    assert "behind" in rows["elman"]["stopped"]
    assert rows["gru"]["stopped"] is None
