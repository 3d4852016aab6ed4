"""Messages name options as their reader gives them.

On the command line that is `--too-long truncate`, in Python `too_long="truncate"`. Code that writes a message calls
`option`; the command line says once, by `speak_to`, that messages are read there.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

Reader = Literal["python", "command line"]

FLAGS = {
    "own_file": "--with",
    "from_run": "--from",
    "decoder_from": "--decoder-from",
    "time": "--budget",
    "out": "-o",
    "n": "-n",
}
"""Other arguments keep their name."""
ARGUMENTS = frozenset({
    "task", "model", "out", "recipe", "own_file", "resume", "from_run", "freeze", "valid", "test",
    "plan_only", "join", "collect", "engine",
})  # fmt: skip
"""Of `train` and `compare`, in addition to the settings that are arguments too."""

_reading: list[Reader] = ["python"]


def speak_to(reader: Reader) -> None:
    """Who reads messages from now on, in this process."""
    _reading[0] = reader


def reader() -> Reader:
    return _reading[0]


def option(name: str, value: Any = None) -> str:
    """An option of the command line, or the argument of that name; without a value, any value of it.

    >>> option("too_long", "truncate"), option("condition")
    ('too_long="truncate"', 'condition=...')
    """
    if reader() == "command line":
        flag = FLAGS.get(name, "--" + name.split(".")[-1].replace("_", "-"))
        return flag if value is None or value is True else f"{flag} {value}"
    return _argument(name, value)


def _argument(name: str, value: Any) -> str:
    """Of a call in Python; a name with a dot is none."""
    said = _python(value)
    return f'settings={{"{name}": {said}}}' if "." in name else f"{name}={said}"


def invocation(verb: str, given: Mapping[str, Any], data: str | None = None) -> str:
    """A command with its options, or the call that does the same.

    >>> invocation("train", {"resume": "runs/docs"})
    'unrolled.train(resume="runs/docs")'
    """
    if reader() == "command line":
        words = ["unrolled", verb, *([] if data is None else [data])]
        return " ".join([*words, *(option(name, shlex.quote(str(value))) for name, value in given.items())])
    return f"unrolled.{verb}({', '.join([*([] if data is None else [data]), *map(option, given, given.values())])})"


def quoted(text: str) -> str:
    """A word of a command, or a text of Python.

    >>> quoted("my data.txt")
    '"my data.txt"'
    """
    return shlex.quote(text) if reader() == "command line" else _python(text)


def _python(value: Any) -> str:
    if value is None:
        return "..."
    return json.dumps(str(value), ensure_ascii=False) if isinstance(value, str | Path) else str(value)
