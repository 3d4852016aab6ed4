"""Discovery: one file is one name. There is no list to edit. Listing names imports nothing. Imports no torch.

`models/linear_rnn.py` is the model `linear-rnn`; `tasks/_labelled.py` is shared by tasks, and no task itself. A user's
own file joins the room whose declaration it makes, with `add_file`; an installed package joins with an entry point of
the group `unrolled.models` (or `unrolled.tasks`, `unrolled.inspect`, `unrolled.verbs`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from unrolled.core.data_spec import BuiltinSpec, ReaderSpec
from unrolled.core.declared import WrongField
from unrolled.core.errors import DataError, UnrolledError, UsageError, nearest
from unrolled.core.export import ExportSpec
from unrolled.core.front import option
from unrolled.core.inspection import QuestionSpec
from unrolled.core.opening import CODE, read_bytes
from unrolled.core.spec import ModelSpec, explained
from unrolled.core.verb import VerbSpec

KINDS = {
    "families": "family",
    "inspect": "question",
    "builtin": "built-in data set",
    "exports": "export target",
}  # what a file of a room is; others are one of many


class Room:
    """The files of one package as names, its packages left out: `Room("unrolled.models", ("MODEL",), ModelSpec)`.

    `needs` are the names that a file must define; where they are one declaration, `declares` is its class, and `page`
    explains it.
    """

    def __init__(self, package: str, needs: tuple[str, ...], declares: type[Any] | None = None, page: str = "") -> None:
        self.package, self.declares, self.page = package, declares, page
        self.kind = KINDS.get(last := package.rsplit(".", 1)[-1], last.rstrip("s"))
        self.needs = needs
        self._files: dict[str, Path] = {}
        self._modules: dict[str, ModuleType] = {}
        self._told: dict[str, dict[str, Any]] = {}  # of the package's own files, which do not change

    def names(self) -> list[str]:
        return sorted(self._own | set(self._files) | set(self._entry_points))

    @cached_property
    def _own(self) -> set[str]:
        """The names of the package's own files."""
        package = importlib.util.find_spec(self.package)
        places = list(package.submodule_search_locations or []) if package else []
        files = (found for found in pkgutil.iter_modules(places) if not found.ispkg and found.name[0] != "_")
        return {file_name(module.name) for module in files}

    def load(self, name: str) -> ModuleType:
        """Import the file of that name; it must define what the room needs."""
        if name not in self._modules:
            self._modules[name] = self._import(name)
        return self._modules[name]

    def require(self, name: str) -> None:
        """Refuse a name that is not there, with the one that was probably meant. Imports nothing."""
        names = self.names()
        if name not in names:
            aliases = {word: each for each in names for word in self.aliases(each)}
            raise UsageError(f"there is no {self.kind} '{name}'; {nearest(name, names, aliases)}")

    def aliases(self, name: str) -> tuple[str, ...]:
        """Other names of a name. Imports nothing."""
        said = self.told(name)
        return tuple(said.get("aliases") or said.get("ALIASES") or ())

    def told(self, name: str) -> dict[str, Any]:
        """What a file says of itself, read and not run: its docstring as `__doc__`, its literal constants, and those of
        its declaration."""
        path = self._files.get(name) or self._path(name)
        if path is None:
            module = self.load(name)
            return vars(module) | ({} if self.declares is None else vars(self.declaration(name)))
        if name in self._files:
            return _read(path, self.needs)
        if name not in self._told:
            self._told[name] = _read(path, self.needs)
        return self._told[name]

    def declaration(self, name: str) -> Any:
        """What the file of that name declares."""
        return vars(self.load(name))[self.needs[0]]

    def add_file(self, path: str | Path, sha256: str | None = None) -> str:
        """Let a user's own file join; the name is the file's. One with another `sha256` is not run."""
        path = Path(path)
        if path.suffix != ".py" or not path.is_file():
            raise UsageError(
                f"{path}: no such Python file; {option('own_file')} takes one that defines {', '.join(self.needs)}"
            )
        return self.take(path, _import_file(path.resolve(), sha256))

    def take(self, path: Path, module: ModuleType) -> str:
        """Let a user's file join that has been run; its name."""
        name = file_name(path.stem)
        self._modules[name] = self._complete(module)
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
        """Within it, an exception that comes out of a user's file is reported with the file and the line."""
        return _blame(lambda: self._files)

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
            other = next((f"; it is a {room.kind} file" for room in JOINED if vars(module).keys() >= {*room.needs}), "")
            raise UsageError(f"{module.__file__}: a {self.kind} file must define {', '.join(missing)}{other}")
        if self.declares is not None and not isinstance(found := vars(module)[self.needs[0]], self.declares):
            place = f"{self.declares.__name__} ({self.declares.__module__})"
            raise UsageError(f"{module.__file__}: {self.needs[0]} must be a {place}, found {type(found).__name__}")
        return module


@contextmanager
def _blame(files: Callable[[], Mapping[str, Path]]) -> Iterator[None]:
    """An exception that comes out of a user's own file is reported as that file's, with the line.

    `files` are the users' files by name, asked for only when something went wrong.
    """
    try:
        yield
    except UnrolledError:
        raise
    except Exception as error:
        own = {str(path) for path in files().values()}
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename in own:
                raise UsageError(
                    f"{frame.filename}, line {frame.lineno}, in {frame.name}: {type(error).__name__}: {error}"
                ) from error
        raise


def file_name(stem: str) -> str:
    """`linear_rnn` -> `linear-rnn`."""
    return stem.replace("_", "-")


def _read(path: Path, declared: tuple[str, ...]) -> dict[str, Any]:
    """The docstring of a file and its literals. It is not run."""
    tree = ast.parse(read_bytes(path, CODE))
    return {"__doc__": ast.get_docstring(tree)} | _literals(tree, declared)


def _literals(tree: ast.Module, declared: tuple[str, ...]) -> dict[str, Any]:
    """Constants at the top of a file, NAME = literal, and the fields of what is declared; what must be computed is left
    out."""
    found = {}
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        said = {node.targets[0].id: node.value}
        if isinstance(node.value, ast.Call) and node.targets[0].id in declared:
            said = {each.arg: each.value for each in node.value.keywords if each.arg}
        for name, value in said.items():
            with suppress(ValueError):
                found[name] = ast.literal_eval(value)
    return found


def _import_file(path: Path, sha256: str | None = None) -> ModuleType:
    """Run a user's file: exactly the text that was checked, and no compiled file beside it."""
    text = read_bytes(path, CODE)
    if sha256 is not None and hashlib.sha256(text).hexdigest() != sha256:
        raise DataError(f"{path}: its content has changed since this run was made with it, so it was not run")
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
        raise UsageError(_told(path, error)) from error
    return module


def _told(path: Path, error: BaseException) -> str:
    """Why a file cannot be loaded; of a wrong declaration with the line to change."""
    frames = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
    line = frames[-1] if frames else None
    for room in JOINED:
        if room.declares is None:
            continue
        if isinstance(error, WrongField) and error.declaration is room.declares:
            field, why = error.name, str(error)
        elif isinstance(error, TypeError) and f"{room.declares.__name__}.__init__()" in str(error):
            why = explained(error, room.declares)
            field = why.split("'")[1] if "'" in why else ""
        else:
            continue
        return f"{path}, line {_line(path, room.declares, field) or line}: {why}; see {room.page}"
    place = f"{path}, line {line}" if line else str(path)
    return f"{place}: import failed ({type(error).__name__}: {error})"


def _line(path: Path, declaration: type[Any], name: str) -> int | None:
    """The line of a field of the declaration, or of the declaration itself; None: it goes by another name."""
    for node in ast.walk(ast.parse(read_bytes(path, CODE))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == declaration.__name__:
            return next((each.value.lineno for each in node.keywords if each.arg == name), node.lineno)
    return None


def _import_entry(name: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise UsageError(f"the entry point '{name}' failed to import ({type(error).__name__}: {error})") from error


def declared(module: ModuleType) -> ModelSpec:
    """What a model file declares."""
    spec = vars(module).get("MODEL")
    if not isinstance(spec, ModelSpec):
        raise UsageError(
            f"{module.__name__} is not a model file, because it does not define MODEL; to check a class in it, "
            "name it as module:Layer"
        )
    return spec


def model(name: str) -> ModelSpec:
    """What the model file of that name declares."""
    spec: ModelSpec = models.declaration(name)
    return spec


def question(name: str) -> QuestionSpec:
    """What the file of that question declares."""
    spec: QuestionSpec = questions.declaration(name)
    return spec


def verb(name: str) -> VerbSpec:
    """What the file of that verb declares."""
    spec: VerbSpec = verbs.declaration(name)
    return spec


def export(name: str) -> ExportSpec:
    """What the file of that target declares."""
    spec: ExportSpec = exports.declaration(name)
    return spec


def rooms_of(path: str | Path) -> list[Room]:
    """The rooms whose declaration a user's file makes; it is read, and not run."""
    path = Path(path)
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(f"{path}: no such Python file; {option('own_file')} takes one that defines {_either()}")
    try:
        tree = ast.parse(read_bytes(path, CODE))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(_told(path, error)) from error
    names = {each for node in tree.body for each in _bound(node)}
    found = [room for room in JOINED if names >= {*room.needs}]
    if not found:
        raise UsageError(f"{path}: defines neither {_either(' nor ')}")
    return found


def join(path: str | Path, sha256: str | None = None) -> dict[Room, str]:
    """Let a user's file, which is run once, join the rooms whose things it declares and runs are made of; its names.

    One with another `sha256` is not run.
    """
    rooms = [room for room in rooms_of(path) if room in MADE_OF]
    if not rooms:
        kinds = " and a ".join(room.kind for room in rooms_of(path))
        raise UsageError(f"{path}: defines a {kinds}, which runs do not use; leave it out")
    module = _import_file(Path(path).resolve(), sha256)
    return {room: room.take(Path(path), module) for room in rooms}


def needed(path: str | Path | None, model: str) -> str | Path | None:
    """A file that has joined, where a run of that model is made of what it declares; None where it is not."""
    if path is None:
        return None
    names = {room: [name for name in room.names() if room.file(name) == Path(path).resolve()] for room in MADE_OF}
    return path if model in names.pop(models) or any(names.values()) else None


def join_for(path: str | Path, model: str | None) -> str | None:
    """Let a file join for a run; the run's model, which is the file's where none is asked for. The file is of use."""
    own = join(path).get(models)
    model = model or own
    if model is not None and needed(path, model) is None:
        raise UsageError(f"{path}: a run of the model '{model}' uses nothing that this file defines; leave it out")
    return model


def joined_file(name: str | None) -> Path | None:
    """The user's file of that name that has joined a room; None: there is none."""
    found = (room.file(each) for room in MADE_OF for each in room.names())
    return next((path for path in found if path is not None and path.name == name), None)


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top of a file gives a value to."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (each.asname or each.name for each in node.names)
    elif isinstance(node, ast.ClassDef):
        yield node.name
    elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (
            each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )


def _either(between: str = " or ") -> str:
    return between.join(f"{' and '.join(room.needs)} (a {room.kind})" for room in JOINED) + "; see docs/own_files.md"


models = Room("unrolled.models", ("MODEL",), ModelSpec, "docs/own_model.md")
tasks = Room("unrolled.tasks", ("Config", "Task"), page="docs/own_files.md")
readouts = Room("unrolled.layers.readouts", ("READOUT",), page="docs/own_files.md")
emissions = Room("unrolled.emissions", ("TINY",))
families = Room("unrolled.engine.families", ("RULES",))
builtins = Room("unrolled.data.builtin", ("BUILTIN",), BuiltinSpec)
readers = Room("unrolled.data.readers", ("READER",), ReaderSpec, "docs/own_reader.md")
questions = Room("unrolled.inspect", ("QUESTION",), QuestionSpec, "docs/own_question.md")
verbs = Room("unrolled.verbs", ("VERB",), VerbSpec, "docs/own_verb.md")
exports = Room("unrolled.exports", ("EXPORT",), ExportSpec, "docs/exporting.md")
MADE_OF = (
    models,
    tasks,
    readouts,
    builtins,
    readers,
)  # a run records whose file it was made with, and asks for it again
JOINED = (*MADE_OF, questions, verbs)  # that a user's file may join
