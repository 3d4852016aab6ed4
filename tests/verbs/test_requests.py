"""What may be asked of a verb: decided once, and refused where a task has no use for it."""

from __future__ import annotations

from typing import Any

import pytest

from unrolled.core import discover
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.core.task import Task
from unrolled.core.verb import Generates, Scores, Served, VerbSpec
from unrolled.data.config import DataConfig
from unrolled.decode.config import Decoding


def task_of(name: str, **settings: Any) -> Task:
    module = discover.tasks.load(name)
    made: Task = module.Task(module.Config(**settings), DataConfig())
    return made


TASKS = [task_of(name) for name in discover.tasks.names()] + [task_of("recognise", objective="ctc")]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__module__ + type(task).__name__)
def test_what_a_task_obeys_can_be_asked(task: Task) -> None:
    for verb, names in task.OBEYS.items():
        assert set(names) <= discover.verb(verb).request.model_fields.keys()
        assert discover.verb(verb).why_not(Served(task, None, "x", "y")) is None
    for use in task.uses():
        assert discover.verb(use.verb).why_not(Served(task, None, "x", "y")) is None


@pytest.mark.parametrize(("task", "verb", "asked", "says"), [
    ("classify", "predict", {"condition": "x"}, "condition=... does not apply to the task 'classify'"),
    ("classify", "predict", {"beam": 2}, "beam=... does not apply to the task 'classify'"),
    ("translate", "predict", {"stop": "a"}, "stop=... does not apply to the task 'translate'; predict takes n=..."),
    ("next-token", "predict", {"seed": 1}, "seed=... does not apply to the task 'next-token'; predict takes condi"),
    ("next-frame", "score", {"condition": "x"}, "condition=... does not apply to the task 'next-frame'"),
    ("next-frame", "generate", {"beam": 3}, "beam=... does not apply to the task 'next-frame'; generate takes n=..."),
])  # fmt: skip
def test_a_setting_without_use_is_refused(task: str, verb: str, asked: dict[str, Any], says: str) -> None:
    spec = discover.verb(verb)
    served = Served(task_of(task), None, task, "run")
    spec.check(served, spec.request())
    spec.check(served, spec.request.parse({name: field.default for name, field in spec.request.model_fields.items()}))
    with pytest.raises(UsageError) as told:
        spec.check(served, spec.request.parse(asked))
    assert str(told.value).startswith(says)


@pytest.mark.parametrize(("asked", "samples", "wanted"), [
    ({}, True, {"sample": True, "temperature": 1.0, "beam": None, "max_tokens": 9}),
    ({}, False, {"sample": False, "temperature": 0.0, "beam": None, "max_tokens": 9}),
    ({"max_tokens": 3}, False, {"max_tokens": 3}),
    ({"n": 4}, False, {"sample": False, "beam": 4}),
    ({"n": 4}, True, {"sample": True, "beam": None}),
    ({"n": 4, "sample": True}, False, {"sample": True, "beam": None, "temperature": 1.0}),
    ({"n": 2, "sample": False}, True, {"sample": False, "beam": 2}),
    ({"beam": 5}, True, {"sample": False, "beam": 5, "temperature": 0.0}),
    ({"beam": 5, "length_penalty": 0.6}, True, {"length_penalty": 0.6}),
    ({"n": 3, "length_penalty": 0.6}, False, {"beam": 3}),
    ({"seed": 0}, False, {"sample": True}),
    ({"temperature": 1.0}, False, {"sample": True, "temperature": 1.0}),
    ({"temperature": 0}, False, {"temperature": 0.0, "beam": None}),
    ({"best_of": 7}, False, {"sample": True, "best_of": 7}),
])  # fmt: skip
def test_what_is_left_open_is_decided(asked: dict[str, Any], samples: bool, wanted: dict[str, Any]) -> None:
    found = dict(Decoding.parse(asked).settled(samples, 9))
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(("asked", "says"), [
    ({"beam": 2, "temperature": 0.5}, "give only one of them"),
    ({"beam": 2, "sample": True}, "give only one of them"),
    ({"beam": 2, "best_of": 4}, "give only one of them"),
    ({"length_penalty": 0.5}, "add beam=..."),
    ({"sample": False, "top_k": 3}, "nothing is sampled, so top_k=... has no effect"),
])  # fmt: skip
def test_what_excludes_one_another_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as told:
        Decoding.parse(asked).settled(True, 9)
    assert says in str(told.value)


def test_protocols_are_those_of_the_tasks() -> None:
    able = {name: {each.__name__ for each in (Scores, Generates) if isinstance(task_of(name), each)}
            for name in discover.tasks.names()}  # fmt: skip
    both = {"Scores", "Generates"}
    assert {name: found for name, found in able.items() if found} == {
        "forecast": {"Scores"}, "handwriting": both, "next-frame": both, "next-token": both,
        "next-pixel": both, "next-sample": both, "sound-flow": {"Generates"},
    }  # fmt: skip


def test_a_wrong_declaration_is_told() -> None:
    good: dict[str, Any] = {"summary": "x", "request": Config, "call": lambda served, inputs, request: iter(())}
    VerbSpec(**good)
    for name, value in (("takes", "files"), ("request", dict), ("writers", {"text": 3}), ("aliases", ["x"]),
                        ("ahead", len), ("check", 1), ("summary", None)):  # fmt: skip
        with pytest.raises(UsageError, match=name):
            VerbSpec(**(good | {name: value}))
