"""What users import: names that load when they are asked for, and that type checkers see."""

from __future__ import annotations

import ast
import importlib
import inspect
import tomllib
from pathlib import Path

import pytest

import unrolled
from unrolled import errors
from unrolled.core import errors as core_errors

PACKAGE = Path(unrolled.__file__).parent
ROOT = PACKAGE.parent


def test_type_checkers_see_what_is_loaded() -> None:
    tree = ast.parse(Path(unrolled.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    told = {each.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for each in node.names}
    assert told == unrolled._lazy | dict.fromkeys(unrolled._modules, "unrolled")
    assert sorted(told) == sorted(unrolled.__all__)


@pytest.mark.parametrize("name", unrolled.__all__)
def test_every_name_loads(name: str) -> None:
    assert getattr(unrolled, name).__doc__
    assert name in dir(unrolled)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        unrolled.trian  # noqa: B018


@pytest.mark.parametrize("module", unrolled._modules)
def test_every_module_says_what_is_public(module: str) -> None:
    loaded = importlib.import_module(f"unrolled.{module}")
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert "py.typed" in data["unrolled"]


def test_every_error_that_users_can_catch_is_public() -> None:
    kinds = {name for name, kind in vars(core_errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert kinds - {"Misused"} == set(errors.__all__)  # how data is asked for, which only its readers tell apart
    assert len({kind.exit_code for kind in errors.UnrolledError.__subclasses__()}) >= 6
