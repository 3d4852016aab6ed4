"""The shape of the package: who may import whom, what stays light, and no junk drawers."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_origin

import pytest

import unrolled
from unrolled.core.config import Config
from unrolled.core.spec import ModelSpec

PACKAGE = Path(unrolled.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = {
    ".".join(["unrolled", *f.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__") for f in FILES
}

ORDER = [
    {"core"},
    {"kernels"},
    {"layers", "data", "objectives", "decode", "pictures"},
    {"emissions", "nn", "errors", "results"},  # the last three: what users import
    {"engine"},
    {"models", "tasks", "verbs"},
    {"runs", "testing"},
    {"training", "inspect", "report", "exports"},
    {"comparison"},
    {"serve", "tuning"},
    {"cli", "sklearn"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
INSIDE = {  # rooms inside rooms, lowest first; "" is what lies in the room itself
    "layers": ["recurrent", "attention", "memory", "readouts", "conv", "counting", "parts"],
    "data": [
        "storage",
        "files",
        "codecs",
        "readers",
        "sources",
        "time_series",
        "builtin",
    ],  # data/*.py is above and below
    "engine": ["", "families"],
    "runs": ["storage", ""],
    "inspect": ["tools", ""],
    "exports": ["tools", ""],
}

LONGEST = 400  # lines of a file
MOST_NAMES = 25  # classes and functions at the top of a file
LEAST_CODE = 7  # lines of code in a file that is worth being one
MOST_SETTINGS = 17  # fields of a config


parsed = cache(ast.parse)  # every test below walks the same files


def module_name(file: Path) -> str:
    parts = ["unrolled", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file) for file in FILES}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports(tree: ast.AST, module: str, is_package: bool = False) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, at any depth of its code, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value, node.lineno


def trespasses(text: str, module: str, is_package: bool = False) -> list[str]:
    """The imports of a module that go upwards or sideways."""
    found = []
    home = room_of(module)
    for name, line in imports(parsed(text), module, is_package):
        room = room_of(name) if name.startswith("unrolled.") else ""
        if room in RANK and home in RANK and room != home and RANK[room] >= RANK[home]:
            found.append(f"{module}, line {line}: {home} may not import {room} ({name})")
    return found


def _inner(module: str) -> str:
    """The room inside a room: "" for what lies in the room itself."""
    parts = module.split(".")[2:]
    return parts[0] if len(parts) > 1 or (parts and parts[0] in INSIDE.get(room_of(module), [])) else ""


def steps_up(text: str, module: str) -> list[str]:
    """The imports that go upwards between the rooms inside a room."""
    order, found = INSIDE.get(room_of(module), []), []
    for name, line in imports(parsed(text), module):
        if name.startswith("unrolled.") and room_of(name) == room_of(module) and order:
            name = name if name in MODULES else name.rsplit(".", 1)[0]
            inner = {_inner(name), _inner(module)} <= set(order)
            if inner and order.index(_inner(name)) > order.index(_inner(module)):
                found.append(f"{module}, line {line}: may not import {name}")
    return found


def private(text: str, module: str) -> list[str]:
    """Names with an underscore that a module takes from another room."""
    found = []
    for name, line in imports(parsed(text), module):
        hidden = any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
        if name.startswith("unrolled.") and hidden and room_of(name) != room_of(module):
            found.append(f"{module}, line {line}: {name} is private to {room_of(name)}")
    return found


SPOKEN = {  # what a model file may declare, and what files said by name before there was a declaration
    *(field.name for field in dataclasses.fields(ModelSpec)),
    "MODEL", "Config", "KIND", "TINY", "INPUT", "OWNS_HEAD", "ANSWERS", "FEATURES", "PRESET", "RECIPE", "REFERENCE",
    "attending", "cell_of", "source_input", "resized",
} - {"kind", "cell"}  # fmt: skip


def asked_by_name(text: str) -> list[str]:
    """Where something of a model file is asked for by its name, or read off its module instead of its declaration."""
    found = []
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            word = node.args[1]
            if isinstance(word, ast.Constant) and word.value in SPOKEN:
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Attribute) and node.attr != "__file__":
            found += [ast.unparse(node)] * bool(re.search(r"\bmodels\.load\(.*\)$", ast.unparse(node.value)))
    return found


def asked_of_tasks(text: str) -> list[str]:
    """Where an attribute of a task is asked for by its name: what tasks can do is declared."""
    calls = [node for node in ast.walk(parsed(text)) if isinstance(node, ast.Call)]
    asks = [call for call in calls if ast.unparse(call.func).split(".")[-1] in ("getattr", "hasattr", "signature")]
    return [ast.unparse(call) for call in asks if re.search(r"(^|\.)task(\.\w+)?$", ast.unparse(call.args[0]))]


SYSTEMS = {"os", "signal", "sys"}  # what a system has is not declared
FOREIGN = {"__iter__", "__len__", "__name__", "__origin__", "__qualname__", "_fields", "shape", "strerror", "tolist"}


def undeclared(text: str) -> list[str]:
    """Where an attribute is asked for by a name that is written down: layers, cells, models and tasks declare theirs.

    What Python, numpy and users' own objects may have or lack is another matter (`FOREIGN`).
    """
    calls = [node for node in ast.walk(parsed(text)) if isinstance(node, ast.Call) and len(node.args) > 1]
    asks = [call for call in calls if ast.unparse(call.func) in ("getattr", "hasattr")]
    written = [call for call in asks if isinstance(call.args[1], ast.Constant) and call.args[1].value not in FOREIGN]
    return [ast.unparse(call) for call in written if ast.unparse(call.args[0]) not in SYSTEMS]


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Modules that import each other, directly or by way of others, at whatever depth of their code."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = edges[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {module: reached(module) for module in edges}
    groups = {frozenset(o for o in reach[m] if m in reach[o]) for m in edges if m in reach[m]}
    return [set(group) for group in groups]


def code_lines(file: Path) -> int:
    """Lines that hold code: no blank lines, no comments, no docstrings."""
    lines: set[int] = set()
    quiet = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    with tokenize.open(file) as opened:
        tokens = list(tokenize.generate_tokens(opened.readline))
    starts = True
    for token in tokens:
        is_docstring = token.type == tokenize.STRING and starts
        if token.type not in (*quiet, tokenize.ENDMARKER) and not is_docstring:
            lines.update(range(token.start[0], token.end[0] + 1))
        starts = token.type in quiet
    return len(lines)


ids = {"ids": lambda file: str(file.relative_to(PACKAGE))}


TEXTS = {file: file.read_text(encoding="utf-8") for file in FILES}


def test_no_attribute_of_a_task_is_asked_for_by_name() -> None:
    texts = {module_name(file): file.read_text(encoding="utf-8") for file in FILES}
    assert {name: found for name, text in texts.items() if (found := asked_of_tasks(text))} == {}
    bad = ["hasattr(run.task, 'say')", "getattr(task, verb, None)", "inspect.signature(opened.task.generate)"]
    assert [line for line in bad if not asked_of_tasks(line)] == []
    assert asked_of_tasks("getattr(task_config, 'x')") == []


def test_no_attribute_is_asked_for_by_name() -> None:
    """The checks of testing/ alone do so, because what a user hands them may be anything."""
    others = {module_name(file): text for file, text in TEXTS.items() if file.parent.name != "testing"}
    assert {name: found for name, text in others.items() if (found := undeclared(text))} == {}
    bad = ["getattr(module, 'max_length', None)", "hasattr(cell, 'gates')", "getattr(self.cell, 'weight_hh')"]
    assert [line for line in bad if not undeclared(line)] == []
    good = ["getattr(os, 'O_NOFOLLOW', 0)", "hasattr(cell, 'tolist')", "getattr(self, name)", "cell.gates(x, h)"]
    assert [line for line in good if undeclared(line)] == []


def test_imports_go_one_way():
    found = [each for f, text in TEXTS.items() for each in trespasses(text, module_name(f), f.name == "__init__.py")]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "line", "allowed"),
    [
        ("unrolled.core.state", "from unrolled.layers import cells", False),
        ("unrolled.core.state", "def f():\n    import unrolled.cli.main", False),
        ("unrolled.core.state", "from unrolled.core import errors", True),
        ("unrolled.models.lstm", "from unrolled.tasks import next_token", False),
        ("unrolled.tasks.next_token", "import unrolled.models.lstm", False),
        ("unrolled.models.lstm", "from unrolled.layers.recurrent.cells import LSTM", True),
        ("unrolled.layers.conv.conv", "from unrolled.data.batch import Batch", False),
        ("unrolled.runs.run", "from unrolled import testing", False),
        ("unrolled.runs.run", "from unrolled import training", False),
        ("unrolled.runs.run", "from ..training import loop", False),
        ("unrolled.runs.run", "from . import build", True),
        ("unrolled.runs.run", "import importlib\nimportlib.import_module('unrolled.training.loop')", False),
        ("unrolled.training.loop", "from unrolled.report import page", False),
        ("unrolled.serve.app", "from unrolled.comparison import table", True),
        ("unrolled.comparison.table", "from unrolled.serve import app", False),
        ("unrolled.cli.main", "from unrolled import testing", True),
        ("unrolled.cli.main", "from unrolled import sklearn", False),
        ("unrolled.training.api", "import unrolled.sklearn", False),
        ("unrolled.sklearn", "from sklearn.base import BaseEstimator", True),
        ("unrolled.models.lstm", "import torch", True),
        ("unrolled.tasks.next_token", "from unrolled.engine.stepper import stepped", True),
        ("unrolled.decode.rollout", "from unrolled.engine import stepper", False),
        ("unrolled.engine.stepper", "from unrolled.models import lstm", False),
    ],
)
def test_the_walk_sees_what_is_not_allowed(module, line, allowed):
    assert bool(trespasses(line, module)) is not allowed


def test_imports_go_one_way_inside_rooms():
    assert [each for file, text in TEXTS.items() for each in steps_up(text, module_name(file))] == []


def test_rooms_inside_rooms_have_their_place():
    packages = {(f.parent.parent.name, f.parent.name) for f in FILES if f.parent.parent.parent == PACKAGE}
    assert packages == {(room, inner) for room, order in INSIDE.items() for inner in order if inner}


@pytest.mark.parametrize(
    ("module", "line", "allowed"),
    [
        ("unrolled.layers.recurrent.cells", "from unrolled.layers.attention.scores import Dot", False),
        ("unrolled.layers.recurrent.cells", "from unrolled.layers.attention import scores", False),
        ("unrolled.layers.attention.scores", "from unrolled.layers.recurrent.cells import Cell", True),
        ("unrolled.runs.storage.atomic", "def f():\n    from unrolled.runs import run", False),
        ("unrolled.runs.run", "from unrolled.runs.storage import atomic", True),
        ("unrolled.inspect.tools.save", "import unrolled.inspect.gates", False),
        ("unrolled.core.state", "from unrolled.core import errors", True),
    ],
)
def test_the_walk_inside_rooms_sees_what_is_not_allowed(module, line, allowed):
    assert bool(steps_up(line, module)) is not allowed


KNOWN_CYCLES = {"codecs.text"}  # around these files of data/


def test_no_module_imports_itself_by_way_of_others():
    edges: dict[str, set[str]] = {module: set() for module in MODULES}
    for file in FILES:
        module = module_name(file)
        for name, _ in imports(parsed(file.read_text(encoding="utf-8")), module, file.name == "__init__.py"):
            name = name if name in MODULES else name.rsplit(".", 1)[0]
            edges[module] |= {name} & MODULES - {module}
    edges["unrolled"] = set()  # its names are loaded when they are asked for; it imports them for type checkers
    left = [group for group in cycles(edges) if not group & {f"unrolled.data.{name}" for name in KNOWN_CYCLES}]
    assert left == []


def test_cycles_are_seen():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_nothing_private_leaves_its_room():
    assert [each for file, text in TEXTS.items() for each in private(text, module_name(file))] == []


def test_private_names_are_seen():
    assert private("from unrolled.tasks._writing import Written", "unrolled.cli.asked")
    assert private("def f():\n    from unrolled.data.codecs.text import _cut", "unrolled.tasks.tag")
    assert not private("from unrolled.tasks._writing import Written", "unrolled.tasks.translate")
    assert not private("from __future__ import annotations", "unrolled.tasks.translate")


def test_no_attribute_of_a_model_file_is_asked_for_by_name():
    others = {file: text for file, text in TEXTS.items() if file.name not in ("discover.py", "spec.py")}
    assert {module_name(file): found for file, text in others.items() if (found := asked_by_name(text))} == {}


def test_attributes_asked_for_by_name_are_seen():
    bad = ["hasattr(module, 'KIND')", "getattr(file, 'make', None)", "discover.models.load(name).MODEL",
           "getattr(spec, 'recipe')"]  # fmt: skip
    good = ["discover.models.load(name)", "discover.models.load(config.model).__file__", "getattr(task, 'labels')",
            "discover.model(name).make(config, sizes)", "discover.tasks.load(name).Config"]  # fmt: skip
    assert [line for line in bad if not asked_by_name(line)] == []
    assert [line for line in good if asked_by_name(line)] == []


def test_relative_imports_in_a_package():
    assert trespasses("from .training import loop", "unrolled.runs", is_package=True) == []
    assert trespasses("from ..training import loop", "unrolled.runs", is_package=True)


def test_every_room_has_its_place():
    rooms = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in FILES}
    assert rooms - {"__init__", "__main__"} <= set(RANK)


@pytest.mark.parametrize("word", ["utils", "util", "helpers", "helper", "common", "misc"])
def test_no_drawer_for_everything(word):
    assert [f for f in FILES if word in (*f.stem.lower().split("_"), *f.parent.name.lower().split("_"))] == []


def test_files_are_neither_too_large_nor_nearly_empty():
    assert [each for file in FILES for each in out_of_proportion(file)] == []


def out_of_proportion(file: Path) -> Iterator[str]:
    length, tree = len(TEXTS[file].splitlines()), parsed(TEXTS[file])
    if length > LONGEST:
        yield f"{file}: {length} lines; split it where a second idea begins"
    names = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    if len(names) > MOST_NAMES:
        yield f"{file}: {len(names)} classes and functions"
    if not file.name.startswith("__") and code_lines(file) < LEAST_CODE:
        yield f"{file}: nearly empty"
    if file.name != "__init__.py" and not ast.get_docstring(tree):
        yield f"{file}: a file begins with a sentence on what it is for"


def test_lines_of_code_are_counted_without_words(tmp_path):
    file = tmp_path / "example.py"
    file.write_text('"""Doc\nstring."""\n\n# why\nx = 1\n\n\ndef f():\n    """Doc."""\n    return """a\nb"""\n')
    assert code_lines(file) == 4


ROOMS = [f for f in FILES if f.name == "__init__.py" and f.parent not in (PACKAGE, PACKAGE / "testing")]


@pytest.mark.parametrize("file", ROOMS, **ids)
def test_rooms_import_nothing_when_they_are_opened(file):
    body = parsed(file.read_text(encoding="utf-8")).body
    assert len(body) == 1
    assert ast.get_docstring(ast.Module(body, []))


def light_modules() -> list[str]:
    """What must answer at once: the front door, the command line, discovery, and every module of settings."""
    always = ["unrolled", "unrolled.core.config", "unrolled.core.discover", "unrolled.core.errors"]
    settings = [module_name(file) for file in FILES if file.stem == "config"]
    door = [module_name(file) for file in FILES if file.relative_to(PACKAGE).as_posix() == "cli/main.py"]
    return sorted({*always, *settings, *door})


@pytest.mark.parametrize("module", light_modules())
def test_light_modules_do_not_import_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"{module} imports torch {done.stderr}"


def outside(file: Path) -> set[str]:
    """The top-level packages that a file imports."""
    return {name.split(".")[0] for name, _ in imports(parsed(file.read_text(encoding="utf-8")), module_name(file))}


def test_the_report_needs_no_torch():
    report = [file for file in FILES if room_of(module_name(file)) == "report"]
    assert [file for file in report if "torch" in outside(file)] == []


@pytest.mark.parametrize("file", [f for f in FILES if f.parent.name == "core"], **ids)
def test_the_core_stands_on_torch_and_pydantic_only(file):
    allowed = {"unrolled", "torch", "pydantic", "annotated_types", "__future__"} | sys.stdlib_module_names
    assert outside(file) <= allowed


def configs(kind: type[Config]) -> Iterator[type[Config]]:
    for child in kind.__subclasses__():
        yield child
        yield from configs(child)


def test_configs_stay_small():
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        if "Config" in text and not file.is_relative_to(PACKAGE / "cli"):
            importlib.import_module(module_name(file))
    large = {
        f"{kind.__module__}.{kind.__qualname__}": count
        for kind in configs(Config)
        if kind.__module__.startswith("unrolled.") and (count := settings_of(kind)) > MOST_SETTINGS
    }
    assert not large


def settings_of(kind: type[Config]) -> int:
    """Fields that are one setting each: nested configs have their own limit, tables are somebody else's settings."""
    kinds = [field.annotation for field in kind.model_fields.values()]
    return sum(not (get_origin(k) is dict or (isinstance(k, type) and issubclass(k, Config))) for k in kinds)


def test_settings_are_counted_without_groups():
    class Group(Config):
        a: int = 1
        b: int | None = None

    class Whole(Config):
        group: Group = Group()
        table: dict[str, int] = {}
        c: str = ""

    assert (settings_of(Group), settings_of(Whole)) == (2, 1)


READS = {"open", "read_text", "read_bytes", "load", "memmap", "fromfile", "loadtxt", "genfromtxt", "SoundFile"}
READERS = {
    "np",
    "numpy",
    "Image",
    "gzip",
    "bz2",
    "lzma",
    "io",
    "os",
    "wave",
    "soundfile",
    "tokenize",
    "json",
    "tomllib",
}
OURS = re.compile(r"(archive|RunDirectory|directory|run|saved|self|file|files\[1\]|TextFile\(.*\))(\.directory)?")
HANDLE = re.compile(r"handle|stream|io\.BytesIO\(.*\)")  # already open
OPENS = {
    "core/opening.py": "the one way",
    "core/discover.py": "the package's own files",
    "cli/main.py": "the package's own files",
    "report/page.py": "the package's own files",
    "exports/page.py": "the package's own files",
    "runs/cost.py": "what the system says of this process",
    "runs/storage/locks.py": "locks",
    "cli/streams.py": "standard streams that the caller closed",
    "runs/storage/atomic.py": "directories, to fsync them",
    "data/storage/cache.py": "locks, and directories to fsync them",
    "data/builtin/python_source.py": "the standard library's own files",
}


def opens(text: str) -> list[str]:
    """The calls that open a file by its name for reading."""
    found = []
    for node in ast.walk(parsed(text)):
        if not isinstance(node, ast.Call):
            continue
        words, first = ast.unparse(node), ast.unparse(node.args[0]) if node.args else ""
        writes = "O_WRONLY" in words or re.search(r"open\((.*, )?'[wax]b?'", words)
        if writes or HANDLE.fullmatch(first):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("open", "safe_open", "load_file"):
            found.append(words)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            owner = ast.unparse(node.func.value)
            named = owner in READERS if node.func.attr not in ("open", "read_text", "read_bytes") else True
            if named and not OURS.fullmatch(owner):
                found.append(words)
    return found


def test_files_are_opened_in_one_place():
    """A named pipe or a device in place of a file must not be waited for: see core/opening.py."""
    others = {file: text for file, text in TEXTS.items() if file.relative_to(PACKAGE).as_posix() not in OPENS}
    assert {module_name(file): found for file, text in others.items() if (found := opens(text))} == {}


def test_calls_that_open_files_are_seen():
    bad = ["open(path)", "path.open('rb')", "Path(x).read_text()", "np.load(path)", "os.open(p, os.O_RDONLY)",
           "Image.open(path)", "soundfile.SoundFile(path)", "gzip.open(path)", "place.read_bytes()",
           "np.memmap(path)", "np.loadtxt(name)"]  # fmt: skip
    good = ["open_regular(path)", "read_text(path, JSON)", "np.load(handle)", "directory.read_text('README.md')",
            "os.open(p, os.O_WRONLY)", "unfinished.open('w', encoding='utf-8')", "RunDirectory.open(path)",
            "Image.open(io.BytesIO(data))", "discover.models.load(name)"]  # fmt: skip
    assert [line for line in bad if not opens(line)] == []
    assert [line for line in good if opens(line)] == []
