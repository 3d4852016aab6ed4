"""The corpus of bad and odd files: each is answered by its exit code, its place and its key words, or is read rightly.

The short form asks the functions that the commands call. The long form asks the commands, in a process each, and
prints those that took longest: `pytest tests/faults/test_bad_files.py -m long -s`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.commands import Ended
from tests.faults.corpus import CASES, arrays, forecasts, tables, text
from tests.faults.corpus.case import MODELS, Case
from unrolled.core import front
from unrolled.core.config import parse_assignments
from unrolled.core.errors import UnrolledError
from unrolled.data.files.file_form import files_as
from unrolled.runs import build
from unrolled.runs.describe import describe
from unrolled.training.api import configure

SECONDS = 60.0  # after which a trial hangs; the first one waits for the server
LONGEST = 1000  # characters of an answer that refuses
SLOW = 2.0  # seconds of the processor that a refusal may take
RATE = 1e6  # bytes a second, at which a fault at the end of a large file is found at least
SHOWN = 1.0  # those above are printed
PEAK = 1 << 30  # bytes of memory that a refusal may take, with all that is imported

RUNS: dict[str, tuple[Any, ...]] = {  # by name: the task, the file, its content, and more words
    "token-run": ("next-token", "a.txt", text.LINES),
    "classify-run": ("classify", "a.csv", tables.LABELS),
    "series-run": ("classify", "a.npz", arrays.npz(x=arrays.X, y=arrays.Y)),
    "frame-run": ("next-frame", "a.npz", arrays.npz(**{f"a{i}": np.roll(arrays.ROLL, i) for i in range(30)})),
    "forecast-run": ("forecast", "a.csv", forecasts.NEW, "--horizon", "6", "--target", "value", "--future", "sale"),
}


def test_the_corpus_is_large_and_each_case_has_its_name() -> None:
    names = [case.name for case in CASES]
    assert len(names) >= 340
    assert sorted(set(names)) == sorted(names)
    assert {case.asked[0] for case in CASES} >= {*MODELS, "data", "predict", "evaluate", "score", "compare"}


# ---- the short form


@pytest.fixture
def _on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name options as commands have them."""
    monkeypatch.setattr(front, "_reading", ["command line"])


def understood(case: Case) -> dict[str, Any]:
    """The facts that training, or `unrolled data`, finds in the data."""
    name, source, *settings = case.asked
    if name == "data":
        given = dict(zip(settings[::2], settings[1::2]))
        return describe(source, settings={key.strip("-").replace("-", "_"): given[key] for key in given})
    config = configure(name, MODELS[name], source, parse_assignments(settings))
    task = build.make_task(config)
    with files_as(config.files.form()):
        task.prepare(source)
    return task.facts()


def lacks(case: Case, answer: str) -> list[str]:
    return [word for word in case.says if word.lower() not in answer.lower()]


@pytest.mark.timeout(SECONDS)
@pytest.mark.usefixtures("_on_the_command_line")
@pytest.mark.parametrize("case", [case for case in CASES if case.is_read], ids=lambda case: case.name)
def test_what_is_read(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    if case.code:
        with pytest.raises(UnrolledError) as caught:
            understood(case)
        sentence = str(caught.value)
        assert caught.value.exit_code == case.code, sentence
        assert len(sentence) <= LONGEST
        assert lacks(case, sentence) == [], sentence
        return
    facts = understood(case)
    assert {name: facts.get(name) for name in case.facts} == dict(case.facts)
    assert lacks(case, json.dumps(facts, ensure_ascii=False, default=str)) == [], facts["notes"]


# ---- the long form


@pytest.fixture(scope="session")
def runs(server: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Trained runs by name, each made when the first case asks for it."""

    class Made(dict[str, str]):
        def __missing__(self, name: str) -> str:
            task, file, content, *more = RUNS[name]
            folder = tmp_path_factory.mktemp(name)
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
            words = ("train", file, "--task", task, "--model", "elman", "--steps", "1", "-o", "run", *more)
            ended = server.run(*words, cwd=folder)
            assert ended.code == 0, ended.err
            self[name] = str(folder / "run")
            return self[name]

    return Made()


@pytest.fixture(scope="session")
def took() -> Iterator[dict[str, float]]:
    """Seconds by case, told at the end."""
    found: dict[str, float] = {}
    yield found
    slow = sorted(found.items(), key=lambda item: -item[1])
    print(
        f"\n{len(found)} cases, {sum(found.values()):.0f} s; refused in more than {SHOWN:g} s of the processor: ",
        end="",
    )
    print(", ".join(f"{name} {seconds:.1f} s" for name, seconds in slow if seconds > SHOWN) or "none")


def slowness() -> float:
    """How many times slower than a usual machine this one is now, by ten million additions."""
    started, total = time.process_time(), 0
    for i in range(10_000_000):
        total += i
    return max(1.0, (time.process_time() - started) / 0.5)


def check_answer(case: Case, ended: Ended) -> None:
    assert not ended.late, f"no answer within {SECONDS} s"
    assert ended.code == case.code, f"exit {ended.code}: {ended.err}"
    assert lacks(case, ended.out + ended.err) == [], ended.err
    if case.code:
        last = ended.err.strip().splitlines()[-1]
        assert last.startswith("unrolled: ")
        assert len(last) <= LONGEST
        assert "\x1b" not in ended.err


def trial(case: Case, server: ModuleType, runs: dict[str, str], folder: Path) -> Ended:
    case.make(folder)
    words = [runs[word] if word in RUNS else word for word in case.command()]
    seconds = 5 * SECONDS if case.long else SECONDS
    return server.run(*words, cwd=folder, seconds=seconds, env={"UNROLLED_CACHE": str(folder / "cache")})


@pytest.mark.parametrize("case", [case for case in CASES if case.is_tried], ids=lambda case: case.name)
def test_commands(case: Case, server: ModuleType, runs: dict[str, str], tmp_path: Path) -> None:
    check_answer(case, trial(case, server, runs, tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_command(
    case: Case, server: ModuleType, runs: dict[str, str], took: dict[str, float], tmp_path: Path
) -> None:
    ended = trial(case, server, runs, tmp_path)
    check_answer(case, ended)
    if case.code:
        took[case.name] = ended.processor
        assert ended.peak <= PEAK, f"{ended.peak:,} bytes"
        size = sum(file.stat().st_size for file in tmp_path.iterdir() if file.is_file())
        allowed = SLOW + size / RATE
        if ended.processor > allowed:
            allowed *= slowness()
        assert ended.processor <= allowed, f"{ended.processor:.1f} s of the processor for {size:,} bytes"
