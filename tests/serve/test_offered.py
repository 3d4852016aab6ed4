"""A run offers an input to begin with, in a form that its verbs and questions take; pictures of answers are sent."""

from __future__ import annotations

import json

import httpx
import pytest

import unrolled
from tests.serve.conftest import RUNS
from unrolled.core import discover
from unrolled.pictures.kinds import read_picture
from unrolled.runs.storage.directory import RunDirectory
from unrolled.serve.verb_calls import about

NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
FORMS = {
    "caption": "image", "classify": "text", "denoise": "numbers", "forecast": "numbers", "handwriting": "pen",
    "next-frame": "frames", "next-pixel": "image", "next-sample": "sound", "recall": "pattern", "recognise": "pen",
    "tag": "words", "translate": "text",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_is_offered_is_what_verbs_take(name: str) -> None:
    run = unrolled.load(RUNS / name)
    told = json.loads(json.dumps(about(name, run)))
    value, form = told["input"]["value"], told["input"]["form"]
    assert form == FORMS.get(name, form)
    for verb in told["verbs"]:
        if told["takes"][verb] == "examples":
            assert len(run.do(verb, [value])) == 1, verb
    if told["questions"] and form != "frames":  # questions take frames as lists of keys
        assert run.inspect(told["questions"][-1], value).reading


def test_a_run_without_examples_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    run = unrolled.load(RUNS / "classify")
    monkeypatch.setattr(RunDirectory, "read_lines", lambda *_: iter(()))
    told = about("my-classes", run)["input"]
    assert told["form"] is None and told["why"].startswith("my-classes/predictions.jsonl: there is no example")


def test_a_run_tells_what_it_can_do(client: httpx.Client) -> None:
    told = client.get("/runs/next-token").json()
    assert told["writes_tokens"] and "temperature" in told["obeys"]["generate"] and "<stop>" in told["specials"]
    assert set(told["asked"]) == set(discover.questions.names())
    assert set(told["not_answered"]) == set(discover.questions.names()) - set(told["questions"])
    assert not client.get("/runs/classify").json()["writes_tokens"]


def test_pictures_of_an_answer_are_sent(client: httpx.Client) -> None:
    found = client.post("/runs/translate/inspect/attention", json={"input": "chunk call"}).json()
    pictures = [read_picture(each) for each in found["pictures"]]
    assert pictures == unrolled.load(RUNS / "translate").inspect("attention", "chunk call").pictures
    assert pictures[0].columns[:5] == list("chunk")  # type: ignore[union-attr]
