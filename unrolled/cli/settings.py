"""Every setting of the task and the model is an option of a command that has --set: `--readout mean` is
`--set readout=mean`, `--lstm.d-state 64` is `--set lstm.d_state=64`.

Which word is a setting, and whether it is a switch, is read from the files that define settings, so that a misspelt
option is answered at once. Imports no task and no model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import unrolled
from unrolled.core.errors import UsageError
from unrolled.core.opening import CODE, read_bytes

SET, TRUTH = "--set", ("true", "false")
CLOSE = 0.85  # likeness, above which a word is an option of the command misspelt; others may be settings misspelt


def as_settings(words: list[str], params: Iterable[Any]) -> list[str]:
    """The words of a command, with the options that are settings written behind --set; `params` are its own."""
    known = {name: param for param in params for name in (*param.opts, *param.secondary_opts)} | {"--help": None}
    if SET not in known:
        return words
    left, found = list(words), list[str]()
    files = [Path(word) for before, word in pairwise(words) if before == "--with"]
    while left:
        word = left.pop(0)
        name, equals, _ = word.partition("=")
        if word == "--":
            return [*found, word, *left]
        if name.startswith("--") and name not in known:
            found += [SET, _assignment(word, left, known, files)]
            continue
        found.append(word)
        takes_value = name.startswith("-") and name in known and name != "--help" and not known[name].is_flag
        if takes_value and not equals and left:
            found.append(left.pop(0))
    return found


def _assignment(word: str, left: list[str], known: Iterable[str], files: list[Path]) -> str:
    """An option as key=value; its value is taken from the words that are left."""
    name, equals, value = word.removeprefix("--").partition("=")
    *groups, last = name.split(".")
    key = ".".join([*groups, last.replace("-", "_")])
    kinds = declared(key.rsplit(".", 1)[-1], files)
    if not kinds and _is_switch(declared(last.removeprefix("no-").replace("-", "_"), files)):
        return ".".join([*groups, last.removeprefix("no-").replace("-", "_")]) + "=false"
    if not kinds and (close := get_close_matches(f"--{name}", known, n=1, cutoff=CLOSE)):
        raise UsageError(f"there is no option '--{name}'; did you mean '{close[0]}'?")
    if equals:
        return f"{key}={value}"
    if _is_switch(kinds) or (not kinds and (not left or left[0].startswith("--"))):  # what is none is told as such
        return f"{key}={left.pop(0) if left and left[0] in TRUTH else 'true'}"
    if not left or left[0].startswith("--"):
        raise UsageError(f"the option '--{name}' needs a value")
    return f"{key}={left.pop(0)}"


def _is_switch(kinds: list[str]) -> bool:
    return bool(kinds) and all(re.match(r"bool\b", kind) for kind in kinds)


def declared(name: str, files: Iterable[Path] = ()) -> list[str]:
    """The types that settings of this name have, in the package and in the user's files; they are read, not run."""
    texts = [*_package(), *(_text(path) for path in files if path.is_file())]
    found = [text for text in texts if f"\n    {name}: " in text]
    return [kind for text in found for bases, kind in _fields(text, name) if any(_is_config(b, texts) for b in bases)]


@cache
def _package() -> list[str]:
    """The texts of the package in which settings may be declared: what a saved run is asked is none."""
    files = sorted(Path(unrolled.__file__).parent.rglob("*.py"))
    texts = [_text(file) for file in files if file.parent.name not in ("emissions", "verbs")]
    return [text for text in texts if "Config" in text]


def _text(path: Path) -> str:
    return read_bytes(path, CODE).decode("utf-8", "replace")


def _fields(text: str, name: str) -> Iterator[tuple[list[str], str]]:
    """Annotations of that name in the classes of a file, each with the bases of its class."""
    for node in _classes(text):
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.target.id == name:
                yield [ast.unparse(base) for base in node.bases], ast.unparse(line.annotation)


@cache
def _classes(text: str) -> list[ast.ClassDef]:
    return [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]


def _is_config(base: str, texts: list[str]) -> bool:
    """Whether a class is core's Config, under whatever name, or derived from it, and no Record."""
    seen, waiting = {"Record"}, [base]
    while waiting:
        name = waiting.pop().strip().rpartition(".")[2]
        if name == "Config" or any(f"Config as {name}\n" in text for text in texts):
            return True
        if name not in seen:
            above = [text for text in texts if f"class {name}(" in text]
            classes = [node for text in above for node in _classes(text) if node.name == name]
            waiting += [ast.unparse(each) for node in classes for each in node.bases]
            seen.add(name)
    return False
