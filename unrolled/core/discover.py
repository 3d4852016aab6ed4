"""Discovery: one file is one name. There is no list to edit. Listing names imports nothing.

`models/linear_rnn.py` is the model `linear-rnn`; `tasks/_labelled.py` is shared by tasks, and no task itself. A user's
own file joins with `add_file`, an installed package with an entry point of the group `unrolled.models` (or
`unrolled.tasks`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from unrolled.core import model_file
from unrolled.core.errors import DataError, UsageError, nearest
from unrolled.core.front import option
from unrolled.core.opening import CODE, read_bytes


class Room:
    """The files of one package as names: `Room("unrolled.models", needs=("Config", "make"))`.

    `check` refuses a file that has all these names but not what they should be.
    """

    def __init__(self, package: str, needs: tuple[str, ...], check: Callable[[ModuleType], None] | None = None) -> None:
        self.package, self.check = package, check
        self.kind = {"inspect": "question"}.get(last := package.rsplit(".", 1)[-1], last.rstrip("s"))
        self.needs = needs
        self._files: dict[str, Path] = {}
        self._modules: dict[str, ModuleType] = {}

    def names(self) -> list[str]:
        found = importlib.util.find_spec(self.package)
        places = list(found.submodule_search_locations or []) if found else []
        own = {file_name(module.name) for module in pkgutil.iter_modules(places) if module.name[0] != "_"}
        return sorted(own | set(self._files) | set(self._entry_points))

    def load(self, name: str) -> ModuleType:
        """Import the file of that name; it must define what the room needs."""
        if name not in self._modules:
            self._modules[name] = self._import(name)
        return self._modules[name]

    def require(self, name: str) -> None:
        """Refuse a name that is not there, with the one that was probably meant. Imports nothing."""
        names = self.names()
        if name not in names:
            aliases = {word: each for each in names for word in self.told(each).get("ALIASES", ())}
            raise UsageError(f"there is no {self.kind} '{name}'; {nearest(name, names, aliases)}")

    def told(self, name: str) -> dict[str, Any]:
        """What a file says of itself, read and not run: its docstring as `__doc__` and its literal constants."""
        path = self._files.get(name) or self._path(name)
        if path is None or name in self._modules:
            return dict(vars(self.load(name)))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return {"__doc__": ast.get_docstring(tree)} | _literals(tree)

    def add_file(self, path: str | Path, sha256: str | None = None) -> str:
        """Let a user's own file join; the name is the file's. One with another `sha256` is not run."""
        path = Path(path)
        if path.suffix != ".py" or not path.is_file():
            raise UsageError(
                f"{path}: no such Python file; {option('own_file')} takes one that defines {', '.join(self.needs)}"
            )
        name = file_name(path.stem)
        self._modules[name] = self._complete(_import_file(path.resolve(), sha256))
        self._files[name] = path.resolve()
        return name

    def forget(self, name: str) -> None:
        """Take a user's file out again."""
        self._files.pop(name, None)
        self._modules.pop(name, None)

    def file(self, name: str) -> Path | None:
        """The user's file behind a name, None for a name of the package or of an entry point."""
        return self._files.get(name)

    def own_mistakes(self) -> AbstractContextManager[None]:
        """Within it, an exception that comes out of a user's file is told with the file and the line."""
        return model_file.blame(lambda: self._files)

    @cached_property
    def _entry_points(self) -> dict[str, str]:
        return {point.name: point.value for point in entry_points(group=self.package)}

    def _import(self, name: str) -> ModuleType:
        if name in self._files:
            module = _import_file(self._files[name])
        elif name in self._entry_points:
            module = _import_entry(name, self._entry_points[name])
        else:
            self.require(name)
            module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        return self._complete(module)

    def _path(self, name: str) -> Path | None:
        """The package's own file of a name; None: it comes from an entry point."""
        found = importlib.util.find_spec(self.package)
        places = list(found.submodule_search_locations or []) if found else []
        paths = [Path(place) / f"{name.replace('-', '_')}.py" for place in places]
        return next((path for path in paths if path.is_file()), None)

    def _complete(self, module: ModuleType) -> ModuleType:
        missing = [word for word in self.needs if not hasattr(module, word)]
        if missing:
            raise UsageError(f"{module.__file__}: a {self.kind} file must define {', '.join(missing)}")
        if self.check is not None:
            self.check(module)
        return module


def file_name(stem: str) -> str:
    """`linear_rnn` -> `linear-rnn`."""
    return stem.replace("_", "-")


def _literals(tree: ast.Module) -> dict[str, Any]:
    """Constants at the top of a file, NAME = literal; a value that must be computed is left out."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with suppress(ValueError):
                found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def _import_file(path: Path, sha256: str | None = None) -> ModuleType:
    """Run a user's file: exactly the text that was checked, and no compiled file beside it."""
    text = read_bytes(path, CODE)
    if sha256 is not None and hashlib.sha256(text).hexdigest() != sha256:
        raise DataError(f"{path}: not the file this run was made with (its content has changed), so it was not run")
    name = f"unrolled_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # pydantic looks there for the names in annotations
    try:
        exec(compile(text, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise UsageError(f"{path}: cannot be imported ({type(error).__name__}: {error})") from error
    return module


def _import_entry(name: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise UsageError(f"the entry point '{name}' cannot be imported ({type(error).__name__}: {error})") from error


models = Room("unrolled.models", needs=model_file.NEEDS, check=model_file.check)
tasks = Room("unrolled.tasks", needs=("Config", "Task"))
questions = Room("unrolled.inspect", needs=("Config", "applies", "ask"))
