"""Frozen configurations: one schema for the command line, recipe files, saved runs and forms. Imports no torch.

A wrong key is answered with the nearest right name, a wrong value with what is allowed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, Self, cast, get_args, get_origin

import annotated_types
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from unrolled.core.errors import DataError, UsageError, nearest
from unrolled.core.opening import CODE, read_bytes, shortened

OTHER_WORDS = {
    "lr": ("learning_rate", "eta", "rate"),
    "d_state": ("hidden_size", "hidden", "hidden_dim", "units", "n_hidden"),
    "d_model": ("hidden_size", "embed_dim", "n_embd", "width"),
    "d_embedding": ("embedding_size", "embedding_dim", "embed_dim", "emsize"),
    "n_layers": ("num_layers", "layers", "depth", "n_layer"),
    "n_heads": ("num_heads", "heads", "n_head", "nhead"),
    "batch_size": ("batch", "bsz"),
    "length": ("bptt", "seq_len", "block_size", "context_length"),
    "clip": ("grad_clip", "gradient_clipping", "max_norm"),
    "dropout": ("drop", "p_drop"),
    "vocabulary": ("vocab_size", "vocab"),
    "tokens": ("tokenizer", "tokeniser"),
    "patience": ("early_stopping",),
    "label_smoothing": ("smoothing",),
}  # what other libraries call a setting


class Config(BaseModel):
    """A frozen set of named values that survives JSON, TOML and `key=value` unchanged."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def none_as_typed(cls, values: Any) -> Any:
        """The word `none`, for a setting that may have no value and takes no text."""
        if not isinstance(values, Mapping):
            return values
        able = {name for name, field in _named(cls).items() if _may_be_none(field)}
        return {key: None if key in able and value == "none" else value for key, value in values.items()}

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Build from plain values; a UsageError names the key, the value and what is allowed."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UsageError(explain(error, cls)) from None

    @classmethod
    def among(cls, values: Any) -> Self:
        """The fields of this config in a table that holds more."""
        if not isinstance(values, Mapping):
            raise UsageError(f"expected a table of settings, found {shortened(values)}")
        return cls.parse({name: values[name] for name in cls.model_fields if name in values})

    def updated(self, assignments: Mapping[str, Any]) -> Self:
        """A copy with some fields replaced; dotted keys reach into nested configs."""
        return self.parse(merge(self.model_dump(), assignments))

    def to_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise UsageError(f"line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
        return cls.parse(values)

    def to_toml(self) -> str:
        """A recipe: fields that are None are left out, for TOML has no word for nothing."""
        return "\n".join(_toml_lines(self.model_dump(mode="json"), prefix="")) + "\n"


class Record(Config):
    """What is checked like settings but is none: a line of a saved file, what a verb or a comparison is asked, a run
    as a whole. Its fields are no options of every command (cli/settings.py)."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """The values of a recipe file, or one sentence on why there are none."""
    if not Path(path).exists():
        raise UsageError(f"{path}: no such recipe file")
    try:
        return tomllib.loads(read_bytes(path, CODE).decode("utf-8"))
    except DataError as error:
        raise UsageError(f"cannot be read as a recipe file: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a TOML recipe ({error})") from None


def _toml_lines(values: Mapping[str, Any], prefix: str) -> list[str]:
    plain = {k: v for k, v in values.items() if not isinstance(v, Mapping) and v is not None}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, Mapping):
            name = f"{prefix}{_toml_key(key)}"
            lines += ["", f"[{name}]", *_toml_lines(value, prefix=f"{name}.")]
    return lines


def _toml_key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _toml_value(key)


def _toml_value(value: Any) -> str:
    """Text, numbers and truth are written as in JSON, but DEL must be escaped, and a table has its own form."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return text.encode(
        "utf-8", "replace"
    ).decode()  # half a letter, of an oddly encoded file name, has no place in TOML


def parse_assignments(pairs: Iterable[str]) -> dict[str, Any]:
    """`key=value` words as typed values: numbers, true/false, null and lists as in JSON, all else as text.

    >>> parse_assignments(["lr=4e-3", "model.width=256", "tokens=char"])
    {'lr': 0.004, 'model.width': 256, 'tokens': 'char'}
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"invalid setting '{shortened(pair)}': expected key=value")
        try:
            result[key.strip()] = json.loads(text)
        except (ValueError, RecursionError):  # also a number of more than 4300 digits, and very deep lists
            result[key.strip()] = text
    return result


def merge(values: Mapping[str, Any], assignments: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with dotted `assignments` put in place."""
    result = {key: merge(value, {}) if isinstance(value, Mapping) else value for key, value in values.items()}
    for key, value in assignments.items():
        *path, last = key.split(".")
        target = result
        for part in path:
            inner = target[part] = {} if target.get(part) is None else target[part]
            if not isinstance(inner, dict):
                raise UsageError(f"{key}: '{part}' is a single value and has no fields")
            target = inner
        target[last] = value
    return result


class Names(Protocol):
    """What is discovered in a room."""

    def names(self) -> list[str]: ...
    def require(self, name: str) -> None: ...


@dataclass(frozen=True)
class NameIn:
    """A check of a setting that names something discovered: `Annotated[str, AfterValidator(NameIn(room))]`."""

    room: Names

    def __call__(self, name: str) -> str:
        self.room.require(name)
        return name


def choices_of(field: FieldInfo) -> Sequence[Any]:
    """The values of a field that has a few: literal ones, or the names of a room."""
    checks = (item.func for item in field.metadata if isinstance(item, AfterValidator))
    room = next((check.room for check in checks if isinstance(check, NameIn)), None)
    return get_args(field.annotation) if room is None else room.names()


def allowed(field: FieldInfo) -> str:
    """What a field accepts, in words: its type, its choices or its range."""
    if field.annotation is str and (names := choices_of(field)):
        return f"one of {', '.join(names)}"
    bounds = []
    for item in [*field.metadata, *_checks_within(field.annotation)]:
        for kind, sign in ((annotated_types.Ge, ">="), (annotated_types.Gt, ">"), (annotated_types.Le, "<="),
                           (annotated_types.Lt, "<")):  # fmt: skip
            if isinstance(item, kind):
                bounds.append(f"{sign} {getattr(item, kind.__name__.lower())}")
    words = " ".join([_type_words(field.annotation), " and ".join(bounds)]).strip()
    return f"{words}, or none" if type(None) in get_args(field.annotation) else words


def _checks_within(annotation: Any) -> Iterable[Any]:
    """What a type that may also be None has to be checked for: `Annotated[float, Field(gt=0)] | None`."""
    for choice in get_args(annotation):
        for item in get_args(choice)[1:] if get_origin(choice) is Annotated else ():
            yield from item.metadata if isinstance(item, FieldInfo) else (item,)


def _may_be_none(field: FieldInfo) -> bool:
    """Whether a field may have no value, and no text is one."""
    choices = [get_args(each)[0] if get_origin(each) is Annotated else each for each in get_args(field.annotation)]
    return type(None) in choices and str not in choices


def _type_words(annotation: Any) -> str:
    """A type in words, without what it has to be checked for, and without None."""
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
    if annotation in names:
        return names[annotation]
    if get_origin(annotation) is Annotated:
        return _type_words(get_args(annotation)[0])
    choices = [choice for choice in get_args(annotation) if choice is not type(None)]
    if choices and all(isinstance(choice, str | int) for choice in choices):
        return "one of " + ", ".join(str(choice) for choice in choices)
    if get_origin(annotation) in (list, tuple):
        return "a list"
    if choices and get_origin(annotation) is not dict:
        return " or ".join(dict.fromkeys(_type_words(choice) for choice in choices))
    return getattr(annotation, "__name__", str(annotation))


def settings_of(cls: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Every field with its default, what it accepts and what it means; those of configs within it by dotted names."""
    found: dict[str, dict[str, Any]] = {}
    for name, field in cls.model_fields.items():
        if is_config(field.annotation):
            within = settings_of(cast("type[BaseModel]", field.annotation))
            found |= {f"{name}.{key}": told for key, told in within.items()}
        else:
            meaning = " ".join((field.description or "").split())
            found[name] = {"default": field.default, "allowed": allowed(field), "meaning": meaning}
    return found


KIND = re.compile(r"(str|int|float|bool|list|tuple|dict)(\[|$)")  # in a place: the kind that a value of several is not


def explain(error: ValidationError, cls: type[BaseModel], group: str = "") -> str:
    """One sentence for the first thing that is wrong; settings are named with their group, if any."""
    first = error.errors()[0]
    parts = [part for part in first["loc"] if not (isinstance(part, str) and KIND.match(part))]
    place = shortened(".".join(str(part) for part in (*((group,) if group else ()), *parts)))
    owner, field = _locate(cls, first["loc"])
    if first["type"] == "extra_forbidden":
        names = _named(owner)
        return f"there is no setting '{place}'; {nearest(shortened(str(first['loc'][-1])), names, other_words(names))}"
    if first["type"] == "missing":
        return f"setting '{place}' is missing"
    if field is None:
        return f"{place or cls.__name__}: {shortened(first['msg'].removeprefix('Value error, '))}"
    if first["type"] == "value_error":
        return f"{place}: {shortened(first['msg'].removeprefix('Value error, '))}"
    return f"invalid value {place} = {shortened(repr(first['input']))}: expected {allowed(field)}"


def _named(cls: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the name that a user gives them."""
    return {field.alias or name: field for name, field in cls.model_fields.items()}


def _locate(cls: type[BaseModel], location: tuple[int | str, ...]) -> tuple[type[BaseModel], FieldInfo | None]:
    """The config class and field that an error path leads to."""
    owner, field = cls, None
    for part in location:
        field = _named(owner).get(str(part))
        if field is None:
            break
        inner = [t for t in (field.annotation, *get_args(field.annotation)) if is_config(t)]
        if not inner:
            break
        owner = inner[0]
    return owner, field


def other_words(names: Iterable[str]) -> dict[str, str]:
    """Words that other libraries have for these settings, with the name here; of several names the first above."""
    found = set(names)
    return {word: name for name in reversed(OTHER_WORDS) if name in found for word in OTHER_WORDS[name]}


def is_config(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
