"""Command-line options made from configs, so that help, recipe files and saved runs share one schema."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from unrolled.cli.streams import json_words
from unrolled.core import discover
from unrolled.core.config import allowed, is_config, parse_assignments
from unrolled.core.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON for scripts.")]
With = Annotated[str | None, typer.Option("--with", help="Your own Python file that defines a model.")]

ONLY_FOR = {
    "task.reading": "classify, denoise, regress and tag",
    "task.clean": "denoise",
    "task.pairs": "caption, recognise and translate",
}  # tasks that have these settings; others refuse them


def with_options(groups: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an option for every field of the configs; the command receives those given as `values`, key -> value.

    `groups` maps the dotted prefix of a config to its class; the prefix also titles the panel in the help.
    """

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "values"]
        keys: dict[str, str] = {}
        texts: set[str] = set()
        made = []
        taken: set[str] = set()
        for prefix, config in groups.items():
            for name, field in config.model_fields.items():
                if _flag(field, name) in taken or is_config(field.annotation):
                    continue  # the group before has it; groups within groups are reached by --set
                taken.add(_flag(field, name))
                parameter = f"{prefix}__{name}".replace(".", "__")
                keys[parameter] = f"{prefix}.{name}" if prefix else name
                if allowed(field).startswith("text"):
                    texts.add(parameter)
                made.append(_parameter(parameter, name, prefix, config))

        def run(**given: Any) -> None:
            typed = {name: value for name in keys if (value := given.pop(name)) is not None}
            words = [f"{keys[name]}={_plain(value)}" for name, value in typed.items() if name not in texts]
            as_typed = {keys[name]: value for name, value in typed.items() if name in texts}  # `5` is a text here
            command(**given, values=parse_assignments(words) | as_typed)

        run.__signature__ = inspect.Signature([*own, *made])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in [*own, *made]}
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        return run

    return wrap


def _parameter(parameter: str, name: str, prefix: str, config: type[BaseModel]) -> inspect.Parameter:
    field = config.model_fields[name]
    flag = _flag(field, name)
    text = " ".join((field.description or "").split())
    default = "" if field.default in (None, PydanticUndefined, "", []) else f" [default: {_plain(field.default)}]"
    metavar = _metavar(allowed(field))
    switch = metavar == "true|false"
    names = f"{flag}/--no-{flag.removeprefix('--')}" if switch else flag
    panel = f"{prefix}, for {ONLY_FOR[prefix]}" if prefix in ONLY_FOR else prefix
    option = typer.Option(
        names, help=text + default, metavar=None if switch else metavar, rich_help_panel=panel, show_default=False
    )
    kind: Any = Annotated[bool | None, option] if switch else Annotated[str | None, option]
    return inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _flag(field: FieldInfo, name: str) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return str(extra.get("flag", "--" + name.replace("_", "-")))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _metavar(words: str) -> str:
    if words.startswith("one of "):
        return words.removeprefix("one of ").replace(", ", "|")
    for word, sign in (("an integer", "INTEGER"), ("true or false", "true|false"), ("a number", "NUMBER")):
        if word in words:
            return sign
    return "TEXT"


def require_names(task: str | None, models: Iterable[str | None], own_file: str | None) -> None:
    """Refuse misspelt names of a task and of models before anything heavy is imported."""
    own = None if own_file is None else discover.file_name(Path(own_file).stem)
    if task is not None:
        discover.tasks.require(task)
    for model in models:
        if model and model.strip() != own:
            discover.models.require(model.strip())


def join(files: list[str], room: discover.Room) -> str | None:
    """Let files join a room; the file of the run's model, which is run only for a run that was made with it."""
    own = [path for path in files if discover.models in discover.rooms_of(path)]
    if len(own) > 1:
        raise UsageError(f"a run has one model, and {' and '.join(own)} define one each; name the one of the run")
    for path in files:
        if room in discover.rooms_of(path):
            room.add_file(path)
        elif path not in own:
            raise UsageError(f"{path}: defines neither a {room.kind} nor the model of the run; leave it out")
    return own[0] if own else None


def summary(told: Mapping[str, Any]) -> str:
    """What a file of a room is, in a line: the first of its docstring without the name that it begins with."""
    first = str(told["__doc__"] or "").strip().split("\n")[0]
    return first.split(": ", 1)[-1].rstrip(".")


def fitted(line: str, width: int) -> str:
    """A line cut to a width: at a clause where that is enough, else between two words.

    >>> fitted("identity  left as it is: what others have to beat", 24)
    'identity  left as it is'
    >>> fitted("elman  the simple recurrent network", 24)
    'elman  the simple …'
    """
    clauses = re.split(r"(?=[:;] )", line)
    while len(line) > width and len(clauses) > 1:
        line = "".join(clauses := clauses[:-1])
    return line if len(line) <= width else line[: width - 2].rsplit(" ", 1)[0].rstrip(",;: ") + " …"


def terminal_width() -> int:
    """Columns to fill; a pipe takes lines of any length."""
    return shutil.get_terminal_size(fallback=(1000, 24)).columns


def setting_lines(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Settings for people: name, default, what is allowed, what it means."""
    return [f"  {key} = {each['default']}    {each['allowed']}. {each['meaning']}" for key, each in settings.items()]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json_words(value, indent=2))
