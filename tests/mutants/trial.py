"""Trials: a process that has collected the tests is forked for every mutant, and runs the tests that reach it."""

from __future__ import annotations

import ast
import gc
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutants.operators import functions

SLACK, TIMES = 20.0, 5.0  # a mutant that takes longer than `TIMES` what its tests take, and so many seconds, hangs


class Failures:
    """A plugin that remembers whether a test failed."""

    def __init__(self) -> None:
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def run_one(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Whether a test passes."""
    failures = Failures()
    item.config.pluginmanager.register(failures)
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    item.config.pluginmanager.unregister(failures)
    return not failures.failed


def in_a_fork(work: Callable[[Connection], None], seconds: float | None = None) -> Iterator[Any]:
    """What `work` sends from a process of its own; the last word is None if it came to its end in time."""
    here, there = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            here.close()
            silence = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(silence, number)
            work(there)
            there.send(None)
            code = 0
        finally:
            os._exit(code)
    there.close()
    end = None if seconds is None else time.monotonic() + seconds
    try:
        while here.poll(None if end is None else max(0.0, end - time.monotonic())):
            yield here.recv()
    except EOFError:
        pass
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        here.close()


Reach = dict[str, tuple[float, set[str]]]  # of every test that passes: its seconds, and the functions that it runs


def reach_of(items: Sequence[pytest.Item], package: Path, tell: Callable[[int], None]) -> Reach:
    """Run all tests as the code is, and see which functions of the package each of them executes."""
    seen: set[str] = set()

    def work(out: Connection) -> None:
        watch(package, seen)
        for item, following in zip(items, [*items[1:], None]):
            seen.clear()
            begun = time.monotonic()
            passed = run_one(item, following)
            out.send((item.nodeid, passed, time.monotonic() - begun, set(seen)))

    found: Reach = {}
    for number, said in enumerate(in_a_fork(work)):
        if said is not None:
            nodeid, passed, seconds, executed = said
            if passed:
                found[nodeid] = seconds, executed
            tell(number)
    return found


NAME = "__mutants_seen__"


def watch(package: Path, seen: set[str]) -> None:
    """Let every outermost function of a package put its name into a set when it is called; cheaper than a trace."""
    alive = live_functions(package)
    for path in sorted({Path(file) for file, _ in alive}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, node in functions(tree):
            call = ast.parse(f"{NAME}({f'{path.relative_to(package)} {name}'!r})").body[0]
            node.body.insert(0, ast.copy_location(call, node.body[0]))
        for name, _ in functions(tree):
            put_in(tree, path, name, alive)
    for living in alive.values():
        for function in living:
            function.__globals__[NAME] = seen.add


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def live_functions(folder: Path) -> dict[tuple[str, str], list[FunctionType]]:
    """All functions whose code stands in a folder, by file and qualified name."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    prefix = str(folder) + os.sep
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename.startswith(prefix):
            found.setdefault((each.__code__.co_filename, each.__code__.co_qualname), []).append(each)
    return found


def put_in(tree: ast.Module, path: Path, name: str, alive: dict[tuple[str, str], list[FunctionType]]) -> bool:
    """Give a function and those inside it the code of the changed file; False: it cannot be changed while it lives."""
    compiled = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)
    done = False
    for code in code_objects(compiled):
        if code.co_qualname == name or code.co_qualname.startswith(f"{name}.<locals>."):
            for function in alive.get((str(path), code.co_qualname), []):
                if function.__code__.co_firstlineno == code.co_firstlineno:
                    try:
                        function.__code__ = code
                    except ValueError:  # it closes over other variables than before
                        return False
                    done = done or code.co_qualname == name
    return done


def is_noticed(
    change: Callable[[], bool], tests: Iterable[pytest.Item], seconds: float
) -> tuple[str | None, str | None]:
    """("killed", test), ("killed", None) by hanging or dying, ("survived", None) or (None, None): not possible."""
    order = list(tests)

    def work(out: Connection) -> None:
        if not change():
            out.send("impossible")
            return
        for item, following in zip(order, [*order[1:], None]):
            if not run_one(item, following):
                out.send(item.nodeid)
                return
        out.send("survived")

    said = list(in_a_fork(work, SLACK + TIMES * seconds))
    if not said:
        return "killed", None
    if said[0] == "impossible":
        return None, None
    return ("survived", None) if said[0] == "survived" else ("killed", said[0])
