"""After a kill at any file call, or at any moment, the same command or `--resume` ends well and with the same bits."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.commands import Ended
from tests.fixtures.make_checkpoints import HOME

TEXT = "the quick brown fox jumps over the lazy dog. " * 40
ROWS = "text,value\n" + "".join(f"{'abcdefgh'[i % 8] * 3} {'uvwxyz'[i % 6] * 2},{i * 7 % 11}\n" for i in range(40))
TIMES = ("seconds", "closing_seconds", "training_seconds", "tokens_per_second", "cost")
MARKS = {"train": "config.json", "compare": "plan.json"}  # with it a directory can be resumed
CHUNKS = 16  # of a whole sweep, so that it can be shared among processes
SETTINGS = ("d_embedding=4", "batch_size=4", "threads=1")


def words(*given: object, settings: tuple[str, ...] = SETTINGS) -> tuple[object, ...]:
    return (*given, "--out", "out", *(word for each in settings for word in ("--set", each)))


SMALL = ("d_state=4", "length=8", "evaluate_every=2", "evaluate_tokens=40", "warmup=1", *SETTINGS)
REGRESS = ("rows.csv", "--task", "regress", "--target", "value")
MODELS = ("--models", "memoryless", "--steps", 2, "--jobs", 1)
RACE = ("rates=[0.01, 0.1]", *SMALL)
COMMANDS = {
    "next token": words("train", "text.txt", "--model", "lstm", "--steps", 4, settings=SMALL),
    "labelled": words("train", *REGRESS, "--model", "gru", "--steps", 4, settings=("evaluate_every=2", *SETTINGS)),
    "race": words("train", "text.txt", "--model", "elman", "--steps", 16, settings=RACE),
    "closed form": words("train", "text.txt", "--model", "ngram", settings=("threads=1",)),
    "compare": words("compare", *REGRESS, *MODELS),
    "folds": words("compare", *REGRESS, *MODELS, "--folds", 2),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command that was run undisturbed, and how to run it in other folders."""

    server: ModuleType
    words: tuple[object, ...]
    whole: Ended
    expected: dict[str, Any]

    def attempt(self, folder: Path, *words: object, **disturbed: Any) -> Ended:
        cache = {"UNROLLED_CACHE": str(folder / "c")}
        return self.server.run(*words or self.words, cwd=folder, env=cache, seconds=240, **disturbed)

    def finish(self, folder: Path) -> None:
        """The same command where nothing can be resumed, `--resume` otherwise; and nothing is missing or left over."""
        command = str(self.words[0])
        begun = (folder / "out" / MARKS[command]).exists()
        ended = self.attempt(folder, command, self.words[1], "--resume", "out") if begun else self.attempt(folder)
        assert ended.code == 0, ended.err
        assert contents(folder / "out") == self.expected


@pytest.fixture(scope="session")
def case(server: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    known: dict[str, Case] = {}

    def case(name: str) -> Case:
        if name not in known:
            folder = begin(tmp_path_factory.mktemp("whole"))
            new = Case(server, COMMANDS[name], None, {})  # type: ignore[arg-type]
            ended = new.attempt(folder)
            assert ended.code == 0, ended.err
            known[name] = Case(server, COMMANDS[name], ended, contents(folder / "out"))
        return known[name]

    return case


def begin(folder: Path) -> Path:
    """A folder with the data."""
    folder.mkdir(exist_ok=True)
    (folder / "text.txt").write_text(TEXT)
    (folder / "rows.csv").write_text(ROWS)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder with the data."""
    yield begin(tmp_path)
    shutil.rmtree(tmp_path)


def contents(place: Path) -> dict[str, Any]:
    """Everything in a run directory or a comparison that does not depend on time."""
    found: dict[str, Any] = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if "tensorboard" in path.parts or "checkpoints" in path.parts or path.is_dir():
            assert not path.name.startswith("."), f"{name} was left behind"
        elif path.name == "events.jsonl":  # tells what happened, and when
            found[name] = "is there"
        elif path.name == "metrics.jsonl":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [without_times(line) for line in lines]
        elif path.name == "result.json":
            found[name] = without_times(json.loads(path.read_text()))
        elif path.name == "table.json":
            rows = json.loads(path.read_text())["rows"]
            found[name] = [(row["label"], row["score"], row["valid"], row["failed"], row["runs"]) for row in rows]
        elif path.suffix in (".safetensors", ".jsonl") or "codec" in path.parts:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "is there"
    return found


def without_times(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in TIMES}


def kill_at(case: Case, folder: Path, number: int, **where: int) -> None:
    """Killed before one file call, and taken up again."""
    where = where or {"kill_at": number}
    killed = case.attempt(folder, **where)
    assert killed.code == -signal.SIGKILL if "kill_at" in where else killed.code in (0, 6), killed.err
    require_whole(folder)
    case.finish(folder)


def require_whole(folder: Path) -> None:
    """A run that says that it is finished lacks nothing."""
    finished = [path.parent for path in folder.rglob("result.json")]
    assert all((run / name).exists() for run in finished for name in ("README.md", "model.safetensors")), finished


def some(names: tuple[str, ...], n: int) -> list[int]:
    """Numbers of calls, evenly over all that change a name: what comes before and after them differs most."""
    changes = [number for number, name in enumerate(names, 1) if name.startswith("os.")]
    return [changes[(2 * i + 1) * len(changes) // (2 * n)] for i in range(n)]


@pytest.mark.parametrize(("name", "n"), [("next token", 3), ("labelled", 1), ("race", 2), ("closed form", 1)])
def test_training_killed_at_a_file_call(case: Callable[[str], Case], tmp_path: Path, name: str, n: int) -> None:
    found = case(name)
    for number in some(found.whole.names, n):
        kill_at(found, begin(tmp_path / str(number)), number)


def test_training_killed_before_it_began(case: Callable[[str], Case], folder: Path) -> None:
    """The lock, the directory, the manifest, the data of the run: all before there is anything to resume."""
    found = case("closed form")
    for number in (2, 6, 25):
        assert found.attempt(folder, kill_at=number).code == -signal.SIGKILL
        assert not (folder / "out" / "config.json").exists()
    found.finish(folder)


def test_comparing_killed_at_a_file_call(case: Callable[[str], Case], folder: Path) -> None:
    found = case("compare")
    kill_at(found, folder, some(found.whole.names, 3)[1])


@pytest.mark.long
def test_a_worker_killed_while_folds_are_joined(case: Callable[[str], Case], folder: Path) -> None:
    """These are its last calls."""
    found = case("folds")
    kill_at(found, folder, 0, kill_worker_at=int(0.93 * len(found.whole.worker_names)))


def differing(names: tuple[str, ...]) -> list[int]:
    """Numbers of calls before which a kill leaves something of its own: an fsync changes nothing that can be seen."""
    return [number for number, name in enumerate(names, 1) if name != "fsync"]


@pytest.fixture(scope="module")
def left(case: Callable[[str], Case], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """The folder in which a command was run, and one with all that kills before its file calls would have left."""
    known: dict[str, tuple[Path, Path]] = {}

    def left(name: str) -> tuple[Path, Path]:
        if name not in known:
            folder, copies = begin(tmp_path_factory.mktemp("run")), tmp_path_factory.mktemp("copies")
            ended = case(name).attempt(folder, copies=copies)
            assert ended.code == 0, ended.err
            for number in set(range(1, ended.calls + 1)) - set(differing(ended.names)):
                shutil.rmtree(copies / str(number))
            known[name] = folder, copies
        return known[name]

    return left


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(("name", "every"), [("next token", 1), ("labelled", 1), ("race", 3), ("closed form", 1)])
def test_what_a_kill_at_every_file_call_leaves(
    case: Callable[[str], Case], left: Callable[[str], tuple[Path, Path]], name: str, every: int, chunk: int
) -> None:
    """The command is one process, so that nothing of it outlives a kill but files; these are put back in place."""
    folder, copies = left(name)
    for copy in sorted(copies.iterdir(), key=lambda path: int(path.name))[::every][chunk::CHUNKS]:
        shutil.rmtree(folder)
        shutil.copytree(copy, folder, symlinks=True)
        require_whole(folder)
        case(name).finish(folder)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", ["compare", "folds"])
def test_killed_at_every_file_call(case: Callable[[str], Case], tmp_path: Path, name: str, chunk: int) -> None:
    found = case(name)
    for number in differing(found.whole.names)[chunk::CHUNKS]:
        kill_at(found, begin(tmp_path / str(number)), number)
        shutil.rmtree(tmp_path / str(number))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(("name", "every"), [("compare", 3), ("folds", 12)])
def test_a_worker_killed_at_many_file_calls(
    case: Callable[[str], Case], tmp_path: Path, name: str, every: int, chunk: int
) -> None:
    found = case(name)
    for number in differing(found.whole.worker_names)[::every][chunk::CHUNKS]:
        kill_at(found, begin(tmp_path / str(number)), 0, kill_worker_at=number)
        shutil.rmtree(tmp_path / str(number))


def disturb(case: Case, folder: Path, seed: int, number: int) -> None:
    """Up to three signals at moments that a seed gives, each while the command is run or resumed."""
    moments, command = random.Random(seed), str(case.words[0])
    for _ in range(3):
        resumed = (folder / "out" / MARKS[command]).exists()
        given = (command, case.words[1], "--resume", "out") if resumed else ()
        ended = case.attempt(folder, *given, after=(moments.uniform(0.0, case.whole.seconds), number))
        assert "Traceback" not in ended.err, ended.err
        if ended.code == 0:
            break
        if ended.code != -number:
            begun = (folder / "out" / MARKS[command]).exists()
            assert ended.code in ((75, 130) if begun else (130,)), ended.err
        else:  # a signal that can be heard is heard as soon as anything is done
            assert number == signal.SIGKILL or not ended.names
    case.finish(folder)


SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


@pytest.mark.parametrize(
    ("name", "number"), [("closed form", SIGNALS[0]), ("next token", SIGNALS[1]), ("compare", SIGNALS[2])]
)
def test_signals_at_a_random_moment(case: Callable[[str], Case], folder: Path, name: str, number: int) -> None:
    disturb(case(name), folder, seed=number, number=number)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("name", COMMANDS)
def test_signals_at_random_moments(
    case: Callable[[str], Case], folder: Path, name: str, number: int, seed: int
) -> None:
    disturb(case(name), folder, seed, number)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_checkpoint_is_converted_whole_or_not_at_all(server: ModuleType, tmp_path: Path, every: int) -> None:
    """What a kill at every file call would have left: nothing under its name, or all; the same command does it then."""
    begin(tmp_path / "whole")
    shutil.copytree(HOME / "bert", tmp_path / "whole" / "bert")
    command = ("convert", "bert", "-o", "out")
    ended = server.run(*command, cwd=tmp_path / "whole", copies=tmp_path / "copies")
    assert ended.code == 0 and ended.calls > 20, ended.err
    expected = contents(tmp_path / "whole" / "out")
    for number in range(1, ended.calls + 1, every):
        left = tmp_path / "copies" / str(number)
        if not (left / "out").exists():
            assert server.run(*command, cwd=left).code == 0
        assert contents(left / "out") == expected
        assert sorted(os.listdir(left)) == sorted(os.listdir(tmp_path / "whole"))
