"""Command-line options made from configs, so that help, recipe files and saved runs share one schema."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.models import OptionInfo

from unrolled.cli.streams import json_words
from unrolled.core import discover
from unrolled.core.config import allowed, is_config, parse_assignments
from unrolled.core.errors import UsageError
from unrolled.runs.values import seconds

PANELS = {"watching": "evaluation and checkpoints", "ends": "input layer and head", "start": "fine-tuning"}
"""Titles of groups of options whose name alone says little."""
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, for scripts.")]
With = Annotated[
    str | None, typer.Option("--with", help="Your own Python file that defines a model, a task, a reader, ...")
]

SHARE = "[default: a share of DATA, see --split]"
Source = Annotated[str | None, typer.Argument(help="A file, a folder, or builtin:NAME (see `unrolled data`).")]
Valid = Annotated[str | None, typer.Option(help=f"Validation data. {SHARE}")]
Test = Annotated[str | None, typer.Option(help=f"Test data, never used for training. {SHARE}")]


def groups_of(config: type[BaseModel], without: Iterable[str] = ()) -> dict[str, Any]:
    """The groups of settings in a config by name."""
    fields = {name: field.annotation for name, field in config.model_fields.items() if name not in without}
    return {name: kind for name, kind in fields.items() if is_config(kind)}


def with_options(groups: Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an option for every field of the configs; the command receives those given as `values`, key -> value.

    `groups` maps the dotted prefix of a config to its class; the prefix, or its title, is above the panel in the help.
    """

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "values"]
        keys: dict[str, str] = {}
        texts: set[str] = set()
        made = []
        taken: set[str] = set()
        for prefix, config in groups.items():
            for name, field in config.model_fields.items():
                flag = _flag(field, name)
                if flag in taken or is_config(field.annotation):
                    continue  # the group before has it; those of groups within groups are settings of a task
                taken.add(flag)
                parameter = f"{prefix}__{name}".replace(".", "__")
                keys[parameter] = f"{prefix}.{name}" if prefix else name
                if allowed(field).startswith("text"):
                    texts.add(parameter)
                made.append(_parameter(parameter, flag, PANELS.get(prefix, prefix), field))

        def run(**given: Any) -> None:
            typed = {name: value for name in keys if (value := given.pop(name)) is not None}
            words = [f"{keys[name]}={_plain(value)}" for name, value in typed.items() if name not in texts]
            as_typed = {keys[name]: value for name, value in typed.items() if name in texts}  # `5` is a text here
            command(**given, values=parse_assignments(words) | as_typed)

        return _signed(run, command, [*own, *made])

    return wrap


def _signed(run: Callable[..., None], command: Callable[..., None], params: list[inspect.Parameter]) -> Any:
    """A function that shows itself as the command, with these parameters."""
    run.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in params}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run


def for_help(command: Callable[..., None], words: Sequence[str]) -> Callable[..., None]:
    """The command as its help shows it: with the settings of the task and the models that are named beside --help."""
    typed = [part for word in words for part in word.split("=", 1)]
    named = {before: word for before, word in pairwise(typed) if before in ("--task", "--model", "--models", "--with")}
    params = list(inspect.signature(command, eval_str=True).parameters.values())
    if "--help" not in words or not named or not any(p.name == "set_" for p in params):
        return command
    own = discover.join(named.pop("--with")) if "--with" in named else {}
    if discover.models in own and any(p.name == "model" for p in params):
        named.setdefault("--model", own[discover.models])
    leaves = [
        *(_leaves("task", _of_task(named["--task"])) if "--task" in named else ()),
        *(_leaves("model", discover.model(named["--model"]).config) if "--model" in named else ()),
        *(leaf for name in named.get("--models", "").split(",") if name
          for leaf in _leaves(name, discover.model(name).config)),
    ]  # fmt: skip
    last = Counter(path.rsplit(".", 1)[-1] for path, _ in leaves)
    taken = {flag for p in params for flag in _flags(p)}
    for number, (path, field) in enumerate(leaves):
        group, name = path.split(".", 1)[0], path.rsplit(".", 1)[-1]
        short = group in ("task", "model") and last[name] == 1 and _flag(field, name) not in taken
        flag = _flag(field, name) if short else f"--{path.removesuffix(name)}{name.replace('_', '-')}"
        panel = " ".join([group, *([named[f"--{group}"]] if f"--{group}" in named else []), *path.split(".")[1:-1]])
        params.append(_parameter(f"setting_{number}", flag, panel, field))

    def shown(**given: Any) -> None:
        raise AssertionError(f"only the help is shown, not run with {given}")

    return cast("Callable[..., None]", _signed(shown, command, params))


def _of_task(name: str) -> type[BaseModel]:
    discover.tasks.require(name)
    config: type[BaseModel] = discover.tasks.load(name).Config
    return config


def _leaves(prefix: str, config: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Every setting of a config with its dotted name, those of groups within it too."""
    for name, field in config.model_fields.items():
        if is_config(field.annotation):
            yield from _leaves(f"{prefix}.{name}", cast("type[BaseModel]", field.annotation))
        else:
            yield f"{prefix}.{name}", field


def _flags(parameter: inspect.Parameter) -> list[str]:
    """The options of a parameter of a command."""
    said = next((each for each in parameter.annotation.__metadata__ if isinstance(each, OptionInfo)), None)
    words = (
        [] if said is None else [word for word in (said.default, *(said.param_decls or ())) if isinstance(word, str)]
    )
    return [flag for word in words or [f"--{parameter.name.replace('_', '-')}"] for flag in word.split("/")]


def _parameter(parameter: str, flag: str, panel: str, field: FieldInfo) -> inspect.Parameter:
    text = _no_markup(" ".join((field.description or "").split()))
    default = "" if field.default in (None, PydanticUndefined, "", []) else f" [default: {_default(field)}]"
    metavar = "<time>" if _is_time(field) else _metavar(allowed(field))
    switch = metavar == "true|false"
    names = f"{flag}/{_negated(flag)}" if switch else flag
    option = typer.Option(
        names, help=text + default, metavar=None if switch else metavar, rich_help_panel=panel, show_default=False
    )
    kind: Any = Annotated[bool | None, option] if switch else Annotated[str | None, option]
    return inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _negated(flag: str) -> str:
    """`--no-tied` of --tied, `--model.no-tied` of --model.tied."""
    group, dot, name = flag.removeprefix("--").rpartition(".")
    return f"--{group}{dot}no-{name}"


def _flag(field: FieldInfo, name: str) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return str(extra.get("flag", "--" + name.replace("_", "-")))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_time(field: FieldInfo) -> bool:
    """Whether a setting is given as `90s`, `5m` or `1h`."""
    within = (item for choice in get_args(field.annotation) for item in get_args(choice)[1:])
    checks = (item.func for item in (*field.metadata, *within) if isinstance(item, BeforeValidator))
    return any(check is seconds for check in checks)


def _default(field: FieldInfo) -> str:
    """A default as it would be typed: `10m`, not 600.0."""
    if not _is_time(field):
        return _plain(field.default)
    return f"{field.default / 60:g}m" if field.default >= 60 else f"{field.default:g}s"


def _no_markup(text: str) -> str:
    """A text whose `<start>` is shown and not taken for markup; what is in backticks is shown as it is anyway.

    >>> _no_markup("without <start>; `<stop>`")
    'without \\\\<start>; `<stop>`'
    """
    pieces = text.split("`")
    return "`".join(piece if at % 2 else piece.replace("<", "\\<") for at, piece in enumerate(pieces))


def _metavar(words: str) -> str:
    """What a setting takes, as typer shows the types of its own options."""
    if words.startswith("one of "):
        return words.removeprefix("one of ").removesuffix(", or none").replace(", ", "|")
    for word, sign in (("an integer", "<int>"), ("true or false", "true|false"), ("a number", "<float>")):
        if word in words:
            return sign
    return "<str>"


def require_names(task: str | None, models: Iterable[str | None], own_file: str | None) -> None:
    """Refuse misspelt names of a task and of models before anything heavy is imported."""
    own = None if own_file is None else discover.file_name(Path(own_file).stem)
    if task is not None and task != own:
        discover.tasks.require(task)
    for model in models:
        if model and model.strip() != own:
            discover.models.require(model.strip())


def join(files: list[str], room: discover.Room) -> str | None:
    """Let files join a room; the file that the run was made with, which is run only for that run."""
    own = [path for path in files if {*discover.MADE_OF} & {*discover.rooms_of(path)}]
    if len(own) > 1:
        raise UsageError(f"a run has at most one Python file of its own: name that one, not {' and '.join(own)}")
    for path in files:
        if room in discover.rooms_of(path):
            room.add_file(path)
        elif path not in own:
            raise UsageError(f"{path}: defines neither a {room.kind} nor anything that a run uses; leave it out")
    return own[0] if own else None


def summary(told: Mapping[str, Any]) -> str:
    """What a file of a room is, in a line: the first of its docstring without the name that it begins with."""
    first = str(told["__doc__"] or "").strip().split("\n")[0]
    return first.split(": ", 1)[-1].rstrip(".")


def fitted(line: str, width: int) -> str:
    """A line cut to a width: at a clause where that leaves more than half of it, else between two words.

    >>> fitted("identity  left as it is: what others have to beat", 24)
    'identity  left as it is'
    >>> fitted("prior  baseline: the most frequent class", 36)
    'prior  baseline: the most …'
    >>> fitted("elman  the simple recurrent network", 24)
    'elman  the simple …'
    """
    clauses = re.split(r"(?=[:;] )", line)
    short = next((part for n in range(len(clauses), 0, -1) if len(part := "".join(clauses[:n])) <= width), "")
    if len(short) > width // 2:
        return short
    return line if len(line) <= width else line[: width - 2].rsplit(" ", 1)[0].rstrip(",;: ") + " …"


def terminal_width() -> int:
    """Columns to fill; a pipe takes lines of any length."""
    return shutil.get_terminal_size(fallback=(1000, 24)).columns


def setting_lines(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Settings for people: name, default, what is allowed, what it means."""
    return [
        f"  {key} = {'none' if each['default'] is None else _plain(each['default'])}"
        f"    {each['allowed']}. {each['meaning']}" for key, each in settings.items()
    ]  # fmt: skip


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json_words(value, indent=2))
