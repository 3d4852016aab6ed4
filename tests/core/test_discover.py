"""Discovery: a file is a name, a user's file and an installed package join in, and listing imports nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from unrolled.core import discover
from unrolled.core.discover import Room, file_name
from unrolled.core.errors import UsageError

GOOD = '"""A model."""\nConfig = make = TINY = None\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package with two model files, one of which cannot be imported."""
    folder = tmp_path / "zoo_models"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "big_cat.py").write_text(GOOD)
    (folder / "broken.py").write_text("raise RuntimeError('imported')")
    (folder / "bare.py").write_text("Config = 1\n")
    (folder / "notes.txt").write_text("not a module")
    monkeypatch.syspath_prepend(tmp_path)
    yield Room("zoo_models", needs=("Config", "make", "TINY"))
    for name in [name for name in sys.modules if name.startswith("zoo_models")]:
        del sys.modules[name]


def test_names_are_files_and_listing_imports_nothing(package):
    assert package.names() == ["bare", "big-cat", "broken"]
    assert "zoo_models.broken" not in sys.modules


def test_load(package):
    module = package.load("big-cat")
    assert module.__name__ == "zoo_models.big_cat"
    assert package.load("big-cat") is module
    assert package.file("big-cat") is None


def test_a_misspelt_name(package):
    with pytest.raises(UsageError, match=r"there is no zoo_model 'big-cap'; did you mean 'big-cat'\?"):
        package.load("big-cap")


def test_what_a_file_must_define(package):
    with pytest.raises(UsageError, match=r"bare\.py: a zoo_model file must define make, TINY$"):
        package.load("bare")


def test_a_users_own_file(package, tmp_path):
    file = tmp_path / "own_idea.py"
    file.write_text(GOOD)
    assert package.add_file(file) == "own-idea"
    assert "own-idea" in package.names()
    assert package.load("own-idea").__doc__ == "A model."
    assert package.file("own-idea") == file.resolve()


def test_a_users_config_may_use_names_of_its_own_file(package, tmp_path):
    file = tmp_path / "annotated.py"
    file.write_text(
        "from __future__ import annotations\n"
        "from typing import Literal\n"
        "from unrolled.core import config\n"
        "class Part(config.Config):\n    size: int = 1\n"
        "class Config(config.Config):\n    kind: Literal['a', 'b'] = 'a'\n    part: Part = Part()\n"
        "make = TINY = None\n"
    )
    module = package.load(package.add_file(file))
    assert module.Config.parse({"kind": "b", "part": {"size": 3}}).part.size == 3


def test_a_users_file_goes_before_one_of_the_package(package, tmp_path):
    file = tmp_path / "big_cat.py"
    file.write_text(GOOD.replace("A model", "Mine"))
    package.load("big-cat")
    package.add_file(file)
    assert package.load("big-cat").__doc__ == "Mine."
    file.write_text(GOOD.replace("A model", "Mine again"))
    package.add_file(str(file))
    assert package.load("big-cat").__doc__ == "Mine again."


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.py", None, "no such Python file"),
        ("model.txt", GOOD, "no such Python file"),
        ("empty.py", "", "must define Config, make, TINY"),
        ("wrong.py", "def make(:\n", "import failed .SyntaxError"),
        ("fails.py", "1 / 0", "import failed .ZeroDivisionError"),
        ("imports.py", "import no_such_package", "import failed .ModuleNotFoundError"),
    ],
)
def test_users_files_that_cannot_join(package, tmp_path, name, text, words):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    before = package.names()
    with pytest.raises(UsageError, match=words) as caught:
        package.add_file(file)
    assert str(file) in str(caught.value)
    assert package.names() == before


def test_entry_points(package, monkeypatch):
    def entry_points(group):
        assert group == "zoo_models"
        return [EntryPoint("tiger", "zoo_models.big_cat", group), EntryPoint("ghost", "no_such_package", group)]

    monkeypatch.setattr(discover, "entry_points", entry_points)
    assert "tiger" in package.names()
    assert package.load("tiger").__name__ == "zoo_models.big_cat"
    with pytest.raises(UsageError, match=r"'ghost' failed to import .*no_such_package"):
        package.load("ghost")


def test_a_room_without_package_is_empty():
    assert Room("no_such_room_at_all", needs=()).names() == []


def test_file_name():
    assert file_name("linear_rnn") == "linear-rnn"


def test_the_rooms_of_the_package():
    assert discover.models.needs == ("MODEL",)
    assert discover.models.kind == "model"
    assert discover.tasks.kind == "task"


def test_listing_needs_no_torch():
    code = "import sys; from unrolled.core import discover; discover.models.names(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
