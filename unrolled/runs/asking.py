"""Verbs asked of a saved run: whether it can do one, and what is asked of it, checked before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.finite import not_finite, require_finite
from unrolled.core.task import Given, Task, Use
from unrolled.core.verb import Result, Served, VerbSpec

NEW = {"examples": "NEW_DATA", "prompt": "TEXT", "words": "WORD"}  # what stands for an input in a command


def why_not(served: Served, verb: str) -> str | None:
    """Why a run cannot do what a verb does; None: it can."""
    with discover.verbs.own_mistakes(), discover.models.own_mistakes():
        why = discover.verb(verb).why_not(served)
    if why is not None and not isinstance(why, str):
        raise UsageError(f"why_not of the verb '{verb}' must return None or the reason, found {why!r}")
    return why


def called(served: Served, verb: str, inputs: Sequence[Given], request: Any, done: int = 0) -> Iterator[Result]:
    """What a verb finds for some inputs, before which `done` others were: for each of its examples one result."""
    spec, n = discover.verb(verb), 0
    one_each = spec.takes == "examples"
    with discover.verbs.own_mistakes(), discover.models.own_mistakes():
        for n, result in enumerate(spec.call(served, inputs, request), start=1):
            if not isinstance(result, dict):
                found = type(result).__name__
                raise UsageError(f"call of the verb '{verb}' must yield dictionaries, found {found}")
            if one_each and n > len(inputs):
                break
            require_finite(result, f"example {done + n}" if one_each else "")
            yield result
    if one_each and n != len(inputs):
        raise UsageError(f"call of the verb '{verb}' must yield one result for each of {len(inputs)} inputs, found {n}")


def uses_of(task: Task, model: Any, name: str) -> list[dict[str, Any]]:
    """What a run can do with new data, as commands: those that its task tells, and every other verb that it can do."""
    served, told = Served(task, model, name, "the run"), task.uses()
    for use in told:
        if why := why_not(served, use.verb):
            raise AssertionError(f"the task '{name}' lists {use.verb} among its uses, but {why}")
    others = [verb for verb in discover.verbs.names() if verb not in {use.verb for use in told}]
    able = {verb: discover.verb(verb) for verb in others if why_not(served, verb) is None}
    more = [Use(spec.summary, verb, (NEW[spec.takes],)) for verb, spec in able.items()]
    return [use._asdict() for use in (*told, *more)]


def asked_of(served: Served, verb: str, request: Mapping[str, Any]) -> tuple[VerbSpec, Any]:
    """A verb that a run can do, and what is asked of it, checked."""
    spec, why = discover.verb(verb), why_not(served, verb)
    if why is not None:
        raise UsageError(f"{served.place} cannot do '{verb}', because {why}")
    asked = spec.request.parse(request)
    with discover.verbs.own_mistakes():
        spec.check(served, asked)
    return spec, asked


def drawable(ask: Callable[[Any, Any, Any], Any], run: Any, value: Any, settings: Any) -> Any:
    """What a question answers; numbers that no picture can show are an error."""
    try:
        return ask(run, value, settings)
    except ValidationError as error:  # a picture of it cannot be drawn
        odd = next((each["input"] for each in error.errors() if each["type"] == "finite_number"), None)
        if odd is None:
            raise
        raise not_finite(odd) from None
