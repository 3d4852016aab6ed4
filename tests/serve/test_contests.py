"""Comparisons on the page: started one at a time, watched, stopped, resumed; and what can be taken away."""

from __future__ import annotations

import io
import json
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import unrolled
from tests.serve.conftest import RUNS, serving
from tests.serve.test_uploads import TABLE, sent, small, until
from unrolled.comparison.events import EVENTS, retold
from unrolled.exports.tools.exporting import reasons

FOLDS = RUNS.parent / "comparisons" / "folds"


def events_of(client: httpx.Client, name: str, start: int = 0) -> Iterator[dict[str, Any]]:
    """One stream of events."""
    with client.stream("GET", f"/comparisons/{name}/events", params={"start": start}) as answer:
        assert answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


def ended(client: httpx.Client, name: str) -> dict[str, Any]:
    """What is known of a comparison when it is over."""
    while client.get(f"/comparisons/{name}").json()["state"] in ("starting", "running", "stopping"):
        for _ in events_of(client, name):
            pass
    return dict(client.get(f"/comparisons/{name}").json())


@pytest.fixture
def training(tmp_path: Path) -> Iterator[httpx.Client]:
    with serving([], train=tmp_path, training=300) as address, httpx.Client(base_url=address, timeout=120) as client:
        yield client


def test_a_second_comparison_is_refused_and_the_first_can_be_stopped(training: httpx.Client) -> None:
    number = sent(training).json()["file"]
    assert training.get("/comparisons").json() == {"comparisons": []}
    for budget in (0, 1e9, -1, 4.9, 301):
        assert "budget" in small(training.post("/comparisons", json={"file": number, "budget": budget}), 400)
    begun = training.post("/comparisons", json={"file": number, "budget": 100})
    assert begun.status_code == 201 and begun.json() == {"comparison": "reviews", "state": "starting"}
    assert training.get("/training").json()["running"] == "reviews"
    assert "under way" in small(training.post("/comparisons", json={"file": number}), 409)
    assert "under way" in small(training.post("/comparisons/reviews/resume"), 409)
    assert training.post("/comparisons/reviews/stop").status_code == 202
    found = ended(training, "reviews")
    assert found["state"] == "stopped" and found["error"] is None and not found["rows"]
    small(training.post("/comparisons/reviews/stop"), 409)
    small(training.post("/comparisons/reviews/resume"), 409)  # there is no plan yet
    small(training.post("/comparisons/nothing/resume"), 404)


def test_too_little_time_is_told_in_a_sentence_of_the_page(training: httpx.Client) -> None:
    number = sent(training, name="re views.csv").json()["file"]
    asked = {"file": number, "task": "classify", "settings": {"target": "label"}, "budget": 5, "models": "lstm"}
    name = training.post("/comparisons", json=asked).json()["comparison"]
    found = ended(training, name)
    assert found["state"] == "failed" and "5 s are not enough" in found["error"]
    assert "use a budget of about" in found["error"] and "--" not in found["error"]
    assert [*events_of(training, name)] == [{"event": "over", "state": "failed"}]
    again = training.post("/comparisons", json=asked).json()["comparison"]
    assert (name, again) == ("re-views", "re-views-2")


def test_the_server_ends_what_it_has_started(tmp_path: Path) -> None:
    with serving([], train=tmp_path) as address, httpx.Client(base_url=address, timeout=60) as client:
        body = {"file": sent(client).json()["file"], "budget": 300}
        assert client.post("/comparisons", json=body).status_code == 201
        time.sleep(1.0)
    until(lambda: not _at_work(tmp_path))


def _at_work(folder: Path) -> bool:
    """Whether a process of this machine works on what is in a folder."""
    environments = Path("/proc").glob("[0-9]*/environ")
    for each in environments:
        try:
            if str(folder).encode() in each.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.fixture
def finished(tmp_path: Path, served: Callable[..., Any]) -> Iterator[tuple[httpx.Client, Path]]:
    """A server of a comparison that was done elsewhere."""
    shutil.copytree(FOLDS, tmp_path / "folds")
    with served([tmp_path]) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client, tmp_path / "folds"


def test_a_finished_comparison_is_told_whole(finished: tuple[httpx.Client, Path]) -> None:
    client, folder = finished
    assert client.get("/comparisons").json() == {"comparisons": [{"comparison": "folds", "state": "finished"}]}
    table, found = json.loads((folder / "table.json").read_text()), client.get("/comparisons/folds").json()
    assert found["verdict"] == table["verdict"] and found["selected"] == table["selected"]
    assert [row["label"] for row in found["rows"]] == [row["label"] for row in table["rows"]]
    assert {run for row in found["rows"] for run in row["runs"]} <= set(client.get("/runs").json()["runs"])
    assert not found["can_stop"] and not found["can_resume"]
    told = [*events_of(client, "folds")]
    assert [event["event"] for event in told] == [*(event["event"] for event in retold(folder)), "over"]
    small(client.post("/comparisons/folds/stop"), 409)
    small(client.post("/comparisons/folds/resume"), 409)
    for bad in ("x", "-1", "1.5", "9" * 30, "é"):
        small(client.get("/comparisons/folds/events", params={"start": bad}), 400)
    small(client.get("/comparisons/nothing/events"), 404)


def test_events_arrive_while_they_are_written(finished: tuple[httpx.Client, Path]) -> None:
    client, folder = finished
    table = json.loads((folder / "table.json").read_text())
    (folder / "table.json").unlink()  # it is not finished yet
    file, heard, odd = folder / EVENTS, [], '{"event": "note", "text": "</script><b>", "loss": NaN}\n'
    file.write_text(odd)
    from unrolled.runs.storage.locks import in_use

    def listen() -> None:
        heard.extend(events_of(client, "folds"))

    with in_use(folder):
        listening = threading.Thread(target=listen)
        listening.start()
        until(lambda: len(heard) >= 0 and client.get("/comparisons/folds").json()["state"] == "running")
        time.sleep(0.8)
        with file.open("a") as more:
            more.write('{"event": "note", "text": "second"}\n')
        time.sleep(0.8)
    (folder / "table.json").write_text(json.dumps(table))
    listening.join(20)
    assert [event.get("text") for event in heard] == ["</script><b>", "second", None]
    assert heard[0]["loss"] is None and heard[0]["next"] == len(odd)
    assert [event.get("text") for event in events_of(client, "folds", len(odd))] == ["second", None]


def test_a_run_that_is_taken_away_is_the_same(client: httpx.Client, tmp_path: Path) -> None:
    answer = client.get("/runs/classify/zip")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="classify.zip"'
    packed = zipfile.ZipFile(io.BytesIO(answer.content))
    assert not any("checkpoints" in name or ".." in name or name.startswith("/") for name in packed.namelist())
    packed.extractall(tmp_path)
    texts = ["abab", "ba"]
    assert unrolled.load(tmp_path / "classify").predict(texts) == unrolled.load(RUNS / "classify").predict(texts)
    small(client.get("/runs/nothing/zip"), 404)


def test_a_run_that_is_too_large_is_not_packed(served: Callable[..., Any]) -> None:
    with served([RUNS / "next-token"], memory=2**20) as address:
        assert httpx.get(f"{address}/runs/next-token/zip").status_code == 200
    from unrolled.serve.refused import Refused
    from unrolled.serve.taken import zipped

    with pytest.raises(Refused, match="more than 1,000 bytes"):
        zipped(RUNS / "next-token", "next-token", 1000)


@pytest.fixture
def patient(served: Callable[..., Any]) -> Iterator[httpx.Client]:
    """A server that gives a request as long as an export may need on a machine that is busy."""
    with served([RUNS], seconds=250) as address, httpx.Client(base_url=address, timeout=250) as client:
        yield client


@pytest.mark.long
def test_exports_are_offered_or_refused_with_the_reason(patient: httpx.Client) -> None:
    client = patient
    for run in ("next-token", "word-vectors"):
        told = {each["target"]: each["why_not"] for each in client.get(f"/runs/{run}/exports").json()["targets"]}
        assert told == reasons(unrolled.load(RUNS / run))
    refused = next(target for target, why in told.items() if why)
    assert "cannot be exported" in small(client.post(f"/runs/word-vectors/exports/{refused}", json={}), 400)
    small(client.post("/runs/next-token/exports/nothing", json={}), 404)
    answer = client.post("/runs/next-token/exports/page", json={})
    assert answer.status_code == 200 and answer.content.startswith(b"<!doctype html>")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="next-token.html"'
    answer = client.post("/runs/next-token/exports/torch", json={})  # code and weights
    assert answer.headers["Content-Disposition"] == 'attachment; filename="next-token.zip"'
    assert len(zipfile.ZipFile(io.BytesIO(answer.content)).namelist()) == 2


@pytest.mark.long
def test_a_comparison_that_is_stopped_is_resumed_to_its_end(training: httpx.Client, tmp_path: Path) -> None:
    number = sent(training, TABLE).json()["file"]
    body = {"file": number, "budget": 60, "models": "dan,linear-text"}
    assert training.post("/comparisons", json=body).status_code == 201
    for event in events_of(training, "reviews"):
        if event["event"] == "begin" and event["folder"].startswith("dan"):
            break
    training.post("/comparisons/reviews/stop")
    stopped = ended(training, "reviews")
    assert stopped["state"] == "stopped" and stopped["can_resume"]
    assert training.post("/comparisons/reviews/resume").status_code == 202
    found = ended(training, "reviews")
    assert found["state"] == "finished" and found["selected"] in ("dan", "linear-text", "ensemble")
    assert str(tmp_path) not in json.dumps(found)
    told = [*events_of(training, "reviews")]
    assert [event["event"] for event in told].count("plan") == 2 and told[-1]["state"] == "finished"
    assert training.get("/runs").json()["about"][0]["run"] == "reviews"
    assert training.post("/runs/reviews/predict", json={"inputs": ["fine weather"]}).status_code == 200
