"""What verbs and questions are asked over HTTP: their own requests, with inputs in the same JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unrolled.core import discover
from unrolled.core.errors import UnrolledError, UsageError
from unrolled.core.verb import VerbSpec, WritesTokens
from unrolled.runs.run import Run
from unrolled.serve.hosted import Hosted
from unrolled.serve.job import Job
from unrolled.serve.limits import Limits, require_bounded, require_short
from unrolled.serve.plain import plain
from unrolled.serve.refused import refusal_of

MOST_WORDS = 100
INPUT = {"examples": "inputs", "prompt": "prompt", "words": "words"}


def schema_of(spec: VerbSpec) -> dict[str, Any]:
    """The JSON schema of the body that a verb takes."""
    found = spec.request.model_json_schema()
    inputs: dict[str, Any] = {
        "examples": {
            "type": "array",
            "items": {},
            "minItems": 1,
            "description": "Inputs in order: texts, lists of numbers, or rows (objects) with the columns of the run.",
        },
        "prompt": {"type": "string", "description": "What is continued."},
        "words": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Words."},
    }
    name = INPUT[spec.takes]
    own = {"conditions": {"type": "array", "items": {"type": "string"}}} if spec.takes == "examples" else {}
    properties = {name: inputs[spec.takes], **own, **found.get("properties", {})}
    required = [] if spec.takes == "prompt" else [name]
    return {**found, "type": "object", "properties": properties, "required": required, "additionalProperties": False}


def ask(hosted: Hosted, name: str, verb: str, body: dict[str, Any]) -> Job:
    """A verb of a run, as work that is awaited."""
    spec, limits = discover.verb(verb), hosted.limits
    values = dict(body)
    inputs = _inputs(spec, values, limits)
    conditions = values.pop("conditions", None) if spec.takes == "examples" else None
    if conditions is not None and not (isinstance(conditions, list) and all(isinstance(c, str) for c in conditions)):
        raise UsageError("invalid value of conditions: expected a list of names of classes")
    require_bounded(spec.request.parse(values), limits)

    def start(run: Run) -> Iterator[Any]:
        for given, result in run.each(verb, inputs, values, conditions):
            yield plain({**given.names, **result})

    return hosted.ask(name, start)


def _inputs(spec: VerbSpec, values: dict[str, Any], limits: Limits) -> Any:
    require_short(values, limits)
    name = INPUT[spec.takes]
    if name not in values and spec.takes != "prompt":
        raise UsageError(f"'{name}' is missing: expected a list")
    found = values.pop(name, "")
    if spec.takes == "prompt":
        if not isinstance(found, str | list) or len(found) > 64 * limits.tokens:
            raise UsageError("invalid value of prompt: expected a text, not longer than this server reads")
        return found
    if not isinstance(found, list) or not found:
        raise UsageError(f"invalid value of {name}: expected a list that is not empty")
    most = MOST_WORDS if spec.takes == "words" else limits.inputs
    if len(found) > most:
        raise UsageError(f"found {len(found):,} {name}: this server takes at most {most:,} at once")
    if spec.takes == "words" and not all(isinstance(each, str) for each in found):
        raise UsageError("invalid value of words: expected a list of words")
    return found


def inspect(hosted: Hosted, name: str, question: str, body: dict[str, Any]) -> Job:
    """A question about a run, as work that is awaited."""
    spec, values = discover.question(question), dict(body)
    require_short(values, hosted.limits)
    value = values.pop("input", None)
    require_bounded(spec.config.parse(values), hosted.limits)

    def start(run: Run) -> Iterator[Any]:
        answer = run.inspect(question, value, values)
        pictures = [picture.model_dump(mode="json") for picture in answer.pictures]
        found = {"reading": answer.reading, "numbers": answer.numbers, "arrays": answer.arrays, "pictures": pictures}
        yield plain(found)

    return hosted.ask(name, start)


def about(name: str, run: Run) -> dict[str, Any]:
    """What a run is, what it can do, and an input to begin with."""
    able = {verb: run.why_not(verb) for verb in discover.verbs.names()}
    asked = {question: _unanswered(name, run, question) for question in discover.questions.names()}
    read = run.task.vocabularies().get("decoder.embedding")
    return {
        "run": name,
        "task": run.config.task,
        "model": run.config.model,
        "verbs": [verb for verb, why in able.items() if why is None],
        "not_possible": {verb: why for verb, why in able.items() if why is not None},
        "takes": {verb: discover.verb(verb).takes for verb in able},
        "obeys": {verb: list(settings) for verb, settings in run.task.OBEYS.items()},
        "writes_tokens": isinstance(run.task, WritesTokens),
        "conditions": [] if read is None else list(read.names),
        "specials": [] if read is None else list(read.codec.specials),
        "input": _offered(name, run),
        "questions": [question for question, why in asked.items() if why is None],
        "not_answered": {question: why for question, why in asked.items() if why is not None},
        "asked": {question: discover.question(question).summary for question in asked},
    }


def _offered(name: str, run: Run) -> dict[str, Any]:
    """An example of the run as verbs take it; without a form, and with the reason, where it holds none."""
    try:
        return {**plain(run.task.offered(run.first_input())._asdict()), "why": None}
    except UnrolledError as error:
        return {"form": None, "value": None, "rate": None, "why": _reason(name, run, error)}


def _unanswered(name: str, run: Run, question: str) -> str | None:
    """Why a question has no answer; also where the run holds no example that it could be tried with."""
    try:
        return run.unanswered(question)
    except UnrolledError as error:
        return _reason(name, run, error)


def _reason(name: str, run: Run, error: UnrolledError) -> str:
    refused = refusal_of(error, [run.path.resolve(), run.path.absolute(), run.path], name)
    assert refused is not None
    return refused.message


def question_schema(question: str) -> dict[str, Any]:
    found = discover.question(question).config.model_json_schema()
    value = {"description": "An input as the task of the run reads it; none: the run's first saved example."}
    return {**found, "type": "object", "properties": {"input": value, **found.get("properties", {})}}
