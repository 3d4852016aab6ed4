"""The mutation check itself: what it changes, what it leaves alone, and that it tells noticed from unnoticed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.operators import mutants_of
from tests.mutants.trial import is_noticed, live_functions, put_in

CODE = '''
class Box:
    """Doc: 1 < 2."""

    LIMIT = 3

    def clip(self, x: int, low: int = 0) -> int:
        """1 + 1."""
        assert low >= 0
        if x < low:
            raise ValueError(f"{x - 1} < {low}")
        inner = lambda y: y * 2
        x += 1
        self.seen(x)
        return min(inner(x), self.LIMIT) if not self.open else -x

    open = False

    def seen(self, x):
        pass
'''


@pytest.fixture
def box(tmp_path: Path) -> ModuleType:
    file = tmp_path / "box.py"
    file.write_text(CODE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("box", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_operator_changes_one_thing_and_leaves_words_and_signatures_alone(box: ModuleType) -> None:
    found = [(m.operator, m.before, m.after) for m, _ in mutants_of(Path(box.__file__ or ""), "box.py")]
    assert found == [
        ("condition negated", "if x < low:", "if not x < low:"),
        ("comparison", "x < low", "x <= low"),
        ("arithmetic", "y * 2", "y / 2"),
        ("constant", "2", "3"),
        ("arithmetic", "x += 1", "x -= 1"),
        ("statement deleted", "x += 1", "pass"),
        ("constant", "1", "2"),
        ("statement deleted", "self.seen(x)", "pass"),
        ("condition negated", "min(inner(x), self.LIMIT) if not self.open else -x",
         "min(inner(x), self.LIMIT) if not not self.open else -x"),
        ("sign or not dropped", "not self.open", "self.open"),
        ("other function", "min(inner(x), self.LIMIT)", "max(inner(x), self.LIMIT)"),
        ("sign or not dropped", "-x", "x"),
    ]  # fmt: skip


def test_a_living_function_is_changed_with_what_is_inside_it(box: ModuleType) -> None:
    path = Path(box.__file__ or "")
    living = box.Box()
    assert living.clip(0) == 2
    alive = live_functions(path.parent)
    seen = {}
    for mutant, tree in mutants_of(path, "box.py"):
        assert put_in(tree, path, mutant.function, alive)
        try:
            seen[mutant.before, mutant.after] = living.clip(0)
        except ValueError:
            seen[mutant.before, mutant.after] = "raises"
    assert seen["y * 2", "y / 2"] == 0.5
    assert seen["2", "3"] == 3
    assert seen["x += 1", "x -= 1"] == -2
    assert seen["x < low", "x <= low"] == "raises"


class Item:
    """What a trial needs of a test."""

    def __init__(self, name: str, passes: bool) -> None:
        self.nodeid, self.passes = name, passes


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_trial_tells_who_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.trial.run_one", lambda item, following: item.passes)
    good, bad = Item("good", True), Item("bad", False)
    assert is_noticed(lambda: True, [good, bad, good], 1) == ("killed", "bad")  # type: ignore[list-item]
    assert is_noticed(lambda: True, [good, good], 1) == ("survived", None)  # type: ignore[list-item]
    assert is_noticed(lambda: False, [good], 1) == (None, None)  # type: ignore[list-item]
    assert is_noticed(lambda: 1 // 0 == 1, [good], 1) == ("killed", None)
