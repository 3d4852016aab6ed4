"""Verbs, questions and sessions over HTTP give what the library gives."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import unrolled
from unrolled.core import discover
from unrolled.runs.session import Session
from unrolled.serve.counted import Counted
from unrolled.serve.found import find
from unrolled.serve.hosted import Hosted
from unrolled.serve.limits import Limits
from unrolled.serve.refused import Refused

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


def near(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float | int):
        return a == pytest.approx(b, rel=1e-4, abs=1e-5)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(near, a, b))
    return a == b


@pytest.mark.parametrize(
    ("name", "verb"),
    [("classify", "predict"), ("next-token", "score"), ("next-token", "predict"), ("translate", "predict"),
     ("tag", "predict"), ("recall", "predict"), ("masked-token", "predict")],
)  # fmt: skip
def test_a_verb_answers_as_in_python(client: httpx.Client, name: str, verb: str) -> None:
    run = unrolled.load(RUNS / name)
    value = json.loads(json.dumps(run.first_input(), default=lambda each: each.tolist()))
    answer = client.post(f"/runs/{name}/{verb}", json={"inputs": [value]})
    try:
        own = json.loads(json.dumps(run.do(verb, [value]), default=lambda each: each.tolist()))
    except unrolled.errors.UnrolledError as error:
        assert answer.status_code in (400, 422)
        assert answer.json()["error"]["message"].split(";")[0][:60] in str(error).replace(str(run.path), name)  # noqa: PT017
        return
    assert answer.status_code == 200, answer.text
    assert near(answer.json()["results"], own)


@pytest.mark.parametrize("form", ["rows", "lists"])
def test_a_forecast_of_series(client: httpx.Client, form: str) -> None:
    rows = [{"time": i, "value": float(i % 7)} for i in range(60)]
    inputs: list[Any] = rows if form == "rows" else [[row["value"] for row in rows]]
    own = unrolled.load(RUNS / "forecast").do("forecast", inputs, horizon=2)
    answer = client.post("/runs/forecast/forecast", json={"inputs": inputs, "horizon": 2})
    assert near(answer.json()["results"], json.loads(json.dumps(own)))


def test_generate_and_words(client: httpx.Client) -> None:
    run = unrolled.load(RUNS / "next-token")
    own = run.generate("a", n=2, max_tokens=5, seed=4)
    made = client.post("/runs/next-token/generate", json={"prompt": "a", "n": 2, "max_tokens": 5, "seed": 4})
    assert near(made.json()["results"], own)
    vectors = unrolled.load(RUNS / "word-vectors")
    word = vectors.task.word_vectors(vectors.model).words[0]
    near_to = client.post("/runs/word-vectors/neighbours", json={"words": [word], "top": 2})
    assert near(near_to.json()["results"], vectors.do("neighbours", [word], top=2))


def test_every_verb_is_described_with_its_settings(client: httpx.Client) -> None:
    told = client.get("/openapi.json").json()
    for verb in discover.verbs.names():
        schema = told["paths"][f"/runs/{{run}}/{verb}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert discover.verb(verb).request.model_fields.keys() <= schema["properties"].keys()
    assert "/v1/completions" in told["paths"] and "$ref" not in json.dumps(told["paths"]["/v1/completions"])
    about = client.get("/runs/forecast").json()
    assert "forecast" in about["verbs"] and "generate" in about["not_possible"]


def test_a_question_is_answered(client: httpx.Client) -> None:
    run = unrolled.load(RUNS / "next-token")
    answer = client.post("/runs/next-token/inspect/surprise", json={"input": "the cat"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["reading"] == run.inspect("surprise", "the cat").reading
    refused = client.post("/runs/next-token/inspect/attention", json={"input": "the cat"})
    assert refused.status_code == 400 and "does not apply" in refused.text


@pytest.mark.parametrize(
    ("body", "words"),
    [({"inputs": ["a" * 20_001]}, "20,001 characters"), ({}, "'inputs' is missing"),
     ({"inputs": []}, "not empty"), ({"inputs": "a"}, "expected a list"),
     ({"inputs": ["a"] * 1001}, "at most 1,000"), ({"inputs": ["a"], "bogus": 1}, "no setting 'bogus'"),
     ({"inputs": ["a"], "max_tokens": 10**9}, "at most 2048"), ({"inputs": ["a"], "beam": 17}, "at most 16")],
)  # fmt: skip
def test_a_wrong_request_of_a_verb(client: httpx.Client, body: dict, words: str) -> None:
    answer = client.post("/runs/translate/predict", json=body)
    assert answer.status_code == 400 and words in answer.text, answer.text


@pytest.mark.parametrize(
    ("run", "what", "body", "words"),
    [("next-token", "score", {"inputs": [[1, 2]]}, "expected a text, found list"),
     ("next-token", "generate", {"prompt": [1.5]}, "invalid token 1.5"),
     ("next-frame", "embed", {"inputs": [["3", {}]]}, "frame 0: expected a list of the keys"),
     ("next-frame", "inspect/states", {"input": [[0], [10**18]]}, "frame 1: expected a list of the keys"),
     ("caption", "inspect/states", {"input": {"x": 1}}, "has no 'source'"),
     ("next-token", "score", {"inputs": [None]}, "found null, expected a text"),
     ("forecast", "forecast", {"inputs": [[]]}, "series 0: there are no values to forecast from"),
     ("forecast", "forecast", {"inputs": [[1e308, -1e308, 1e308] * 9]}, "numbers that are too large")],
)  # fmt: skip
def test_an_odd_input_is_refused_with_a_sentence(client: httpx.Client, run: str, what: str, body: Any, words: str):
    answer = client.post(f"/runs/{run}/{what}", json=body)
    assert answer.status_code in (400, 422) and words in answer.text, answer.text


def test_a_question_about_words_with_letters(client: httpx.Client) -> None:
    answer = client.post("/runs/tag-counts/inspect/causality", json={})
    assert answer.status_code == 200 and answer.json()["numbers"]["causal"], answer.text


def test_a_session_is_the_session_of_the_run(client: httpx.Client) -> None:
    own = unrolled.load(RUNS / "next-token").session()
    opened = client.post("/runs/next-token/sessions", json={})
    assert opened.status_code == 201
    place = f"/runs/next-token/sessions/{opened.json()['id']}"
    first = client.post(f"{place}/push", json={"rows": ["the ", "cat"]}).json()
    assert near(first["results"], [*own.push("the "), *own.push("cat")]) and first["ticks"] == own.n_read
    made = client.post(f"{place}/ahead", json={"verb": "generate", "request": {"max_tokens": 4, "seed": 1}}).json()
    assert near(made["results"], own.ahead("generate", max_tokens=4, seed=1))
    assert near(client.post(f"{place}/end").json()["results"], own.end())
    assert client.post(f"/runs/classify/sessions/{opened.json()['id']}/end").status_code == 404
    assert client.delete(place).status_code == 200
    assert client.post(f"{place}/push", json={"rows": ["a"]}).status_code == 404
    refused = client.post("/runs/classify/sessions", json={})
    assert refused.status_code == 400 and "cannot run live" in refused.text


def test_sessions_are_bounded_in_number_bytes_and_time(
    served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "grows", True)
    monkeypatch.setattr(Session, "n_bytes", 600)
    limits = {"sessions": 2, "session_seconds": 0.5, "session_bytes": 1000}
    with served([RUNS / "next-token"], **limits) as address, httpx.Client(base_url=address, timeout=30) as client:
        room = "/runs/next-token/sessions"
        client.get("/runs/next-token")
        keys = [client.post(room, json={}).json()["id"] for _ in range(2)]
        assert client.post(room, json={}).status_code == 429
        time.sleep(0.6)
        assert client.post(f"{room}/{keys[0]}/push", json={"rows": ["a"]}).status_code == 404
        key = client.post(room, json={}).json()["id"]
        assert client.post(f"{room}/{key}/push", json={"rows": ["a"]}).status_code == 200
        client.post(room, json={})
        full = client.post(f"{room}/{key}/push", json={"rows": ["a"]})
        assert full.status_code == 429 and "1,200 bytes" in full.text


def test_a_session_serves_one_request_at_a_time(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    push = Session.push

    def slow(session: Session, row: Any, place: str = "") -> list[Any]:
        time.sleep(0.05)
        return push(session, row, place)

    monkeypatch.setattr(Session, "push", slow)
    with httpx.Client(base_url=address, timeout=30) as client, ThreadPoolExecutor(4) as pool:
        key = client.post("/runs/next-token/sessions", json={}).json()["id"]
        place = f"/runs/next-token/sessions/{key}"
        answers = list(pool.map(lambda _: client.post(f"{place}/push", json={"rows": ["a"] * 8}), range(4)))
        assert sorted({answer.status_code for answer in answers}) == [200, 409]
        done = sum(answer.status_code == 200 for answer in answers)
        assert client.post(f"{place}/push", json={"rows": ["a"]}).json()["ticks"] == 8 * done + 1
        client.delete(place)


def test_a_session_over_a_websocket(address: str) -> None:
    own = unrolled.load(RUNS / "next-token").session()
    with connect(address.replace("http", "ws") + "/runs/next-token/live") as socket:

        def told(message: Any) -> Any:
            socket.send(message if isinstance(message, str) else json.dumps(message))
            return json.loads(socket.recv(timeout=20))

        assert near(told({"push": "the "})["results"], own.push("the "))
        assert near(told({"ahead": {"request": {"max_tokens": 3}}})["results"], own.ahead("generate", max_tokens=3))
        assert "not JSON" in told("{")["error"]["message"]
        assert near(told({"end": True})["results"], own.end())


def test_runs_have_a_limit_of_memory() -> None:
    most = (RUNS / "classify-logistic" / "model.safetensors").stat().st_size
    limits = Limits().model_copy(update={"memory": most - 1})
    with pytest.raises(Refused, match="weights of the run 'classify-logistic' have"):
        Hosted(find([str(RUNS)]), limits, Counted(), None).worker("classify-logistic")
    hosted = Hosted(find([str(RUNS)]), limits.model_copy(update={"memory": most}), Counted(), None)
    hosted.worker("classify")
    hosted.worker("classify-logistic")
    assert len(hosted) == 1  # the other one has gone
    hosted.close()


def test_runs_are_put_away_when_others_are_asked_for(served: Callable[..., Any]) -> None:
    names = ["classify", "tag", "regress"]
    with served([RUNS], loaded=2) as address, httpx.Client(base_url=address, timeout=30) as client:
        for name in [*names, *names]:
            assert client.get(f"/runs/{name}").status_code == 200
            assert client.get("/health").json()["loaded"] <= 2


def test_comparisons_are_served_with_their_runs(served: Callable[..., Any]) -> None:
    with served([RUNS.parent / "comparisons"]) as address, httpx.Client(base_url=address, timeout=30) as client:
        names = client.get("/runs").json()["runs"]
        assert "folds" in names and any(name.startswith("folds.") for name in names)
        assert client.get("/runs/folds").status_code == 200


def test_a_run_that_was_trained_again_is_opened_again(served: Callable[..., Any], tmp_path: Path) -> None:
    body = {"inputs": ["the cat"]}
    shutil.copytree(RUNS / "next-token", tmp_path / "mine")
    with served([tmp_path]) as address, httpx.Client(base_url=address, timeout=30) as client:
        before = client.post("/runs/mine/score", json=body).json()["results"]
        shutil.rmtree(tmp_path / "mine")
        shutil.copytree(RUNS / "next-token-tied", tmp_path / "mine")
        after = client.post("/runs/mine/score", json=body).json()["results"]
    own = [unrolled.load(RUNS / name).do("score", ["the cat"]) for name in ("next-token", "next-token-tied")]
    assert near(before, own[0]) and near(after, own[1]) and not near(before, after)


def test_a_run_that_is_gone_is_in_nobodys_way(served: Callable[..., Any], tmp_path: Path) -> None:
    for name in ("classify", "tag"):
        shutil.copytree(RUNS / name, tmp_path / name)
    with served([tmp_path]) as address, httpx.Client(base_url=address, timeout=30) as client:
        assert client.get("/runs/classify").status_code == 200
        shutil.rmtree(tmp_path / "classify")
        assert client.get("/runs").json()["runs"] == ["tag"]
        assert client.get("/runs/tag").status_code == 200


@pytest.mark.parametrize("way", ["http", "websocket"])
def test_a_session_stops_when_nobody_waits(
    served: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    pushed, push = [0], Session.push

    def slow(session: Session, row: Any, place: str = "") -> list[Any]:
        pushed[0] += 1
        time.sleep(0.02)
        return push(session, row, place)

    monkeypatch.setattr(Session, "push", slow)
    with served([RUNS / "next-token"]) as address, httpx.Client(base_url=address, timeout=30) as client:
        key = client.post("/runs/next-token/sessions", json={}).json()["id"]
        rows = {"rows": ["a"] * 500}
        if way == "http":
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/runs/next-token/sessions/{key}/push", json=rows, timeout=0.5)
        else:
            with connect(address.replace("http", "ws") + "/runs/next-token/live") as socket:
                socket.send(json.dumps(rows))
                with pytest.raises(TimeoutError):
                    socket.recv(timeout=0.5)
        time.sleep(0.3)
        before = pushed[0]
        time.sleep(0.3)
        assert 0 < before == pushed[0] < 200
        assert client.get("/metrics").text.count("unrolled_sessions 1\n")


def test_messages_that_come_at_once_are_answered_in_order(address: str) -> None:
    with connect(address.replace("http", "ws") + "/runs/next-token/live") as socket:
        for _ in range(5):
            socket.send('{"push": "a"}')
        assert [json.loads(socket.recv(timeout=20))["ticks"] for _ in range(5)] == [1, 2, 3, 4, 5]


def test_open_sockets_are_bounded(served: Callable[..., Any]) -> None:
    with served([RUNS / "next-token"], sessions=1) as address:
        place = address.replace("http", "ws") + "/runs/next-token/live"
        with connect(place), pytest.raises(InvalidStatus):
            connect(place)
        with connect(place) as socket:
            socket.send('{"push": "a"}')
            assert "results" in socket.recv(timeout=20)
