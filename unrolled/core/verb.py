"""What a saved run can be asked to do: a verb in a file, with the settings of a request.

A file in `unrolled/verbs/`, or one of a user, is one verb: it declares `VERB = VerbSpec(...)`, which is checked once,
when it is made. What a verb needs of a task is declared here, as a protocol that some tasks follow. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from unrolled.core.config import Config
from unrolled.core.declared import invalid, require_sound
from unrolled.core.errors import UsageError, listed
from unrolled.core.front import option

if TYPE_CHECKING:
    from unrolled.core.task import Given, Task

Result = dict[str, Any]
"""What a verb finds for an input, by name: values of JSON, and perhaps arrays."""

Takes = Literal["examples", "prompt", "words"]


@dataclass(frozen=True)
class Served:
    """What a verb is asked of: a model that was trained for a task."""

    task: Task
    model: Any
    name: str  # of the task
    place: str  # of the run


@runtime_checkable
class Scores(Protocol):
    """A task whose models give data a probability."""

    def score(self, model: Any, given: Sequence[Given]) -> Iterator[Result]:
        """The log-probability of each input, in order."""
        ...


@runtime_checkable
class Generates(Protocol):
    """A task whose models write, from a prompt or from nothing; `decoding` is a `decode.config.Decoding`."""

    def generate(self, model: Any, prompt: Given, decoding: Any) -> list[Result]:
        """What continues the prompt, the most probable first."""
        ...

    def go_on(self, begun: Any, decoding: Any) -> list[Result]:
        """The same from the middle of a stream, a `decode.text.Begun`, without what came before."""
        ...


@runtime_checkable
class Streams(Protocol):
    """A task whose models write text, which can be read while it is written."""

    def stream(self, model: Any, prompt: Given, decoding: Any) -> Iterator[str]:
        """One text, piece by piece."""
        ...


@runtime_checkable
class WritesTokens(Protocol):
    """A task whose models write texts token by token, each of which can be looked at, and several texts at once."""

    def begun(self, model: Any, prompt: Given) -> Any:
        """Where writing after a prompt starts, a `decode.text.Begun`; a prompt is a text or a list of token ids."""
        ...

    def writer(self, stop: str | None) -> Any:
        """What spells tokens and knows where texts end, a `decode.text.Writer`."""
        ...


@runtime_checkable
class Forecasts(Protocol):
    """A task whose models predict how series continue."""

    def forecast(self, model: Any, given: Sequence[Given], horizon: int | None) -> Iterator[Result]:
        """The next steps of each series, in order; None: as many as the model was trained for."""
        ...

    def before(self, given: Given, horizon: int) -> tuple[str, list[str], list[float | None]]:
        """The name of a series, and the times and values before a forecast, as many as a picture of it shows."""
        ...


@runtime_checkable
class MakesFiles(Protocol):
    """A task whose results are not text, and go to files."""

    def files_of(self, made: list[Result], out: str | Path) -> dict[Path, bytes]:
        """The content of each file, by its path."""
        ...


@runtime_checkable
class Draws(Protocol):
    """A task whose predictions can be drawn."""

    def drawing(self, model: Any, given: Sequence[Given]) -> bytes:
        """A PNG image of what is predicted for some inputs."""
        ...


@runtime_checkable
class HasVectors(Protocol):
    """A task whose models are vectors of words."""

    def word_vectors(self, model: Any) -> Any:
        """The vectors by word, a `data.word_vectors.WordVectors`."""
        ...


def _always(served: Served) -> None:
    """A verb that every run can do."""


def _anything(served: Served, request: Any) -> None:
    """A verb whose every request fits."""


@dataclass(frozen=True, kw_only=True)
class VerbSpec:
    """A file of something that saved runs can do, in values."""

    summary: str
    """What it does, in a sentence, for lists and for the help of its command."""
    request: type[Config]
    """The settings of a request, each with a default: options of the command, arguments in Python."""
    call: Callable[[Served, Sequence[Given], Any], Iterator[Result]]
    """call(served, inputs, request): of examples one result for each, in order; of a prompt, alone in `inputs`, or of
    words, any number of them."""
    takes: Takes = "examples"
    """Whether inputs are the examples of some data, one prompt that is continued, or words that are typed."""
    of_file: Callable[[str, Sequence[Given], Any], Iterator[Result]] | None = None
    """of_file(path, inputs, request): the same of a file in place of a run, where that is possible."""
    why_not: Callable[[Served], str | None] = _always
    """why_not(served): why this run cannot do it, as the end of a sentence after "because"; None: it can."""
    ahead: Callable[[Served, Any, Any], Iterator[Result]] | None = None
    """ahead(served, begun, request): the same from the middle of a stream (`unrolled.decode.text.Begun`), where that
    is possible."""
    check: Callable[[Served, Any], None] = _anything
    """check(served, request): refuse a request that does not fit the run, before anything is read."""
    writers: Mapping[str, Callable[[Result], str]] = field(default_factory=dict)
    """By format, a result as it is printed; a verb without `text` prints JSON, which every verb can be asked for."""
    rows: Callable[[Result], list[Result]] | None = None
    """Where a result is more than one row of a table: these rows, for a file that is a table."""
    aliases: tuple[str, ...] = ()
    """Other names that users may type."""

    def __post_init__(self) -> None:
        require_sound(self, "request", ARGUMENTS, _faults(self))


ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "call": ("served", "inputs", "request"), "of_file": ("path", "inputs", "request"), "why_not": ("served",),
    "ahead": ("served", "begun", "request"), "check": ("served", "request"),
}  # fmt: skip


def _faults(spec: VerbSpec) -> Iterator[tuple[str, str]]:
    """What is wrong with fields that other declarations do not have."""
    if spec.takes not in get_args(Takes):
        yield "takes", invalid(spec, "takes", f"one of {listed(get_args(Takes))}")
    for name, writer in spec.writers.items() if isinstance(spec.writers, Mapping) else [("", None)]:
        if not isinstance(name, str) or not callable(writer):
            yield "writers", "invalid value of writers: expected functions by the name of a format, {'text': ...}"


def started(inputs: Sequence[Given], condition: str | None) -> list[Given]:
    """The inputs, started by a class where one is asked for."""
    return [each if condition is None else each._replace(condition=condition) for each in inputs]


def require_obeyed(served: Served, verb: str, request: Config) -> None:
    """Refuse settings of a request that a task has no use for, rather than leave them out silently."""
    obeyed = served.task.OBEYS.get(verb, ())
    for name, setting in type(request).model_fields.items():
        if name not in obeyed and dict(request)[name] != setting.default:
            able = [option(each) for each in type(request).model_fields if each in obeyed]
            rest = f"; {verb} takes {listed(able)} there" if able else ""
            raise UsageError(f"{option(name)} does not apply to the task '{served.name}'{rest}")
