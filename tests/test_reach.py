"""Everything in the package is reached: from a command, a file that is discovered, a public name, or a law."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import unrolled
from unrolled.core import discover

PACKAGE = Path(unrolled.__file__).parent
PUBLIC = ("unrolled", "unrolled.errors", "unrolled.nn", "unrolled.sklearn", "unrolled.testing")  # for users
FOUND_BY_NAME = {"command", "main", "ALIASES", "__all__"}  # by the command line, discovery, and whoever imports all

Name = tuple[str, str]  # module and name; "": what the module does when it is imported


class Walk:
    """Which names of a package use which."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.trees = {module: ast.parse(text) for module, text in texts.items()}
        self.made: dict[Name, ast.stmt] = {}
        self.loose: dict[str, list[ast.stmt]] = {module: [] for module in texts}
        self.imported: dict[str, dict[str, Name]] = {}
        for module, tree in self.trees.items():
            self.imported[module] = dict(self._imports(tree))
            for node in tree.body:
                names = list(_made(node))
                self.made |= {(module, name): node for name in names}
                if not names and not isinstance(node, ast.Import | ast.ImportFrom):
                    self.loose[module].append(node)

    def _imports(self, tree: ast.AST) -> Iterator[tuple[str, Name]]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    yield each.asname or each.name.split(".")[0], (each.name if each.asname else "unrolled", "")
            elif isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    whole = f"{node.module}.{each.name}"
                    yield each.asname or each.name, (whole, "") if whole in self.trees else (node.module, each.name)

    def uses(self, module: str, node: ast.AST) -> Iterator[Name]:
        """The names that some code uses: its module's own, imported ones, and those behind an imported module."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                yield (
                    (module, each.id)
                    if (module, each.id) in self.made
                    else self.imported[module].get(each.id, (module, ""))
                )
            elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                place, name = self.imported[module].get(each.value.id, ("", ""))
                if place and not name:
                    yield place, each.attr
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield module, each.value  # a name in a table of names

    def reached(self, roots: list[Name]) -> set[Name]:
        seen: set[Name] = set()
        waiting = list(roots)
        while waiting:
            place = module, name = waiting.pop()
            if place in seen or module not in self.trees:
                continue
            seen.add(place)
            if name and place not in self.made:
                waiting += [self.imported[module][name]] if name in self.imported[module] else []
                continue
            waiting.append((module, ""))
            for node in [self.made[place]] if name else self.loose[module]:
                waiting += self.uses(module, node)
        return seen

    def unreached(self, roots: list[Name]) -> set[Name]:
        return set(self.made) - self.reached(roots)


def _made(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (each.id for each in node.targets if isinstance(each, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


@pytest.fixture(scope="module")
def walk() -> Walk:
    texts = {}
    for file in PACKAGE.rglob("*.py"):
        parts = ["unrolled", *file.relative_to(PACKAGE).with_suffix("").parts]
        texts[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text(encoding="utf-8")
    return Walk(texts)


@pytest.fixture(scope="module")
def roots(walk: Walk) -> list[Name]:
    rooms = {name: room for name, room in vars(discover).items() if isinstance(room, discover.Room)}
    needs = {room.package: set(room.needs) for room in rooms.values()}
    found = [(discover.__name__, name) for name in rooms]
    found += [place for place in walk.made if place[1] in FOUND_BY_NAME or place[0] in PUBLIC]
    found += [place for place in walk.made if place[1] in needs.get(place[0].rpartition(".")[0], ())]
    public = ast.literal_eval(next(node.value for node in walk.trees["unrolled"].body if _is_lazy(node)))
    found += [(module, name) for name, module in public.items()]
    return found + [place for module in PUBLIC for place in walk.imported[module].values()]


def _is_lazy(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and "_lazy" in _made(node)


def test_nothing_is_left_over(walk: Walk, roots: list[Name]) -> None:
    assert sorted(walk.unreached(roots)) == [], "nothing uses these: delete them"


def test_the_walk_sees_what_nothing_uses() -> None:
    walk = Walk({
        "unrolled.cli.a": "from unrolled.core import b\nfrom unrolled.core.c import f\n"
                          "def command():\n    from unrolled.core.d import late\n    b.used(f, late)\n",
        "unrolled.core.b": "def used(f): return TABLE['inner']\ndef inner(): pass\nTABLE = {'inner': 1}\n"
                           "def unused(): return unused()\n",
        "unrolled.core.c": "from unrolled.core.e import g\nf = g\ndef other(): pass\n",
        "unrolled.core.d": "late: int = 3\nsooner: int = 2\nprint(sooner)\n",
        "unrolled.core.e": "class g:\n    pass\nclass h(g):\n    pass\n",
    })  # fmt: skip
    assert walk.unreached([("unrolled.cli.a", "command")]) == {
        ("unrolled.core.b", "unused"), ("unrolled.core.c", "other"), ("unrolled.core.e", "h"),
    }  # fmt: skip
