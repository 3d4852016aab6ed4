"""On a full disk every command that writes ends with exit 0 or 5, loses nothing, and ends well when there is room.

Two ways: the k-th file call and all later ones find no room (this runs everywhere), and a small disk of its own with so
many bytes free (a tmpfs, which only root may mount).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.commands import Ended
from tests.fixtures.make_checkpoints import HOME

TEXT = "the quick brown fox jumps over the lazy dog. " * 40
ROWS = "text,value\n" + "".join(f"{'abcdefgh'[i % 8] * 3} {'uvwxyz'[i % 6] * 2},{i * 7 % 11}\n" for i in range(40))
TOLD = re.compile(r"cannot be written \(No space left on device\): ([\d,]+ bytes are needed and )?[\d,]+ are free")
PAGE = 4096
DISK = 8 << 20  # bytes
CHUNKS = 8  # of a whole sweep, so that it can be shared among processes

TINY = ("--set", "threads=1", "--set", "batch_size=4", "--set", "d_embedding=4")
ELMAN = ("--model", "elman", "--steps", 4, "--set", "d_state=4", "--set", "length=8", "--set", "evaluate_every=2")
RACE = (*ELMAN[:2], "--steps", 16, *ELMAN[4:], "--set", "rates=[0.01, 0.1]")
FORECAST = ("train", "series.csv", "--task", "forecast", "--horizon", 3, "--model", "naive", "-o", "out")
REGRESS = ("rows.csv", "--task", "regress", "--target", "value")
COMPARE = (*REGRESS, "--models", "memoryless", "--steps", 2, "--jobs", 1, *TINY, "-o", "out")


@dataclass(frozen=True)
class Writing:
    """A command that writes, and what it replaces."""

    words: tuple[object, ...]
    begun: tuple[object, ...] = ()  # run and disturbed before, so that there is something to resume
    mark: str = ""  # with this file there is something to resume
    needs: tuple[object, ...] = ()  # run before, with room
    once: bool = False  # it makes a directory, and refuses one that is there


COMMANDS = {
    "train": Writing(("train", "text.txt", *ELMAN, *TINY, "-o", "out"), mark="config.json"),
    "resume": Writing(("train", "text.txt", "--resume", "out"), ("train", "text.txt", *ELMAN, *TINY, "-o", "out")),
    "closed form": Writing(("train", "text.txt", "--model", "ngram", "-o", "out"), mark="config.json"),
    "compare": Writing(("compare", *COMPARE), mark="plan.json"),
    "predict": Writing(("predict", "numbers", "rows.csv", "-o", "old.csv")),
    "predict lines": Writing(("predict", "numbers", "rows.csv", "-o", "new.jsonl")),
    "generate": Writing(("generate", "rolls", "--max-tokens", 4, "-o", "song"),
                        needs=("train", "rolls.npz", "--task", "next-frame", "--model", "key-chain", "-o", "rolls")),
    "inspect": Writing(("inspect", "letters", "surprise", "the fox")),
    "inspect elsewhere": Writing(("inspect", "letters", "surprise", "the fox", "-o", "looked")),
    "report": Writing(("report", "letters")),
    "report of two": Writing(("report", "letters", "numbers", "-o", "page.html")),
    "evaluate": Writing(("evaluate", "letters", "text.txt")),
    "race": Writing(("train", "text.txt", *RACE, *TINY, "-o", "out"), mark="config.json"),
    "collect": Writing(("compare", "--collect", "out"), needs=("compare", *COMPARE, "--plan-only")),
    "vectors": Writing(("vectors", "words.txt", "-o", "old.txt")),
    "embed": Writing(("embed", "out", "text.txt", "-o", "old.npz"), needs=("train", "text.txt", *ELMAN, "-o", "out")),
    "forecast": Writing(("forecast", "out", "-o", "old.csv"), needs=FORECAST),
    "forecast plot": Writing(("forecast", "out", "--plot", "old.svg"), needs=FORECAST),
    "export": Writing(("export", "out", "--to", "page"), needs=("train", "text.txt", *ELMAN, "-o", "out")),
    "convert": Writing(("convert", "bert", "-o", "out"), once=True),
    "convert back": Writing(("convert", "run", "-o", "out"), needs=("convert", "bert", "-o", "run"), once=True),
}  # fmt: skip


@pytest.fixture(scope="session")
def made(server: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and finished runs, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "text.txt").write_text(TEXT)
    (folder / "rows.csv").write_text(ROWS)
    (folder / "series.csv").write_text("value\n" + "".join(f"{i % 6 + i % 4}\n" for i in range(60)))
    (folder / "words.txt").write_text("".join(f"w{i} {i}.5 {i % 7} 1\n" for i in range(2000)))
    for kind in ("csv", "txt", "npz", "svg"):
        (folder / f"old.{kind}").write_text("what was there before\n")
    shutil.copytree(HOME / "bert", folder / "bert")
    random = np.random.default_rng(0)
    np.savez(folder / "rolls.npz", **{f"r{i}": random.integers(0, 2, (9, 6)).astype(np.uint8) for i in range(12)})
    for words in (
        ("train", "text.txt", "--model", "ngram", "-o", "letters"),
        ("train", *REGRESS, "--model", "prior", "-o", "numbers"),
    ):
        ended = server.run(*words, cwd=folder, env={"UNROLLED_CACHE": str(folder / "other")})
        assert ended.code == 0, ended.err
    shutil.rmtree(folder / "other")
    return folder


@dataclass(frozen=True)
class Trial:
    """A folder in which a command is run."""

    server: ModuleType
    command: Writing
    folder: Path

    def run(self, *words: object, **full: int) -> Ended:
        env = {"UNROLLED_CACHE": str(self.folder / "cache")}
        return self.server.run(*words or self.command.words, cwd=self.folder, env=env, **full)

    def begin(self) -> Trial:
        if self.command.needs:
            assert self.run(*self.command.needs).code == 0
        if self.command.begun:
            assert self.run(*self.command.begun, full_at=230).code == 5
            assert (self.folder / "out" / "config.json").exists()
        return self

    def check(self, ended: Ended, before: dict[str, str]) -> None:
        """0 or 5 and a sentence; what was there is there."""
        assert ended.code in (0, 5), (ended.code, ended.err)
        assert "Traceback" not in ended.err, ended.err
        if ended.code == 5:
            told = ended.err.strip().splitlines()[-1]
            assert told.startswith("unrolled: ") and TOLD.search(told), ended.err
            after = contents(self.folder)
            lost = [name for name in before if name not in after and not _replaced(name)]
            assert not lost, lost
            assert not [name for name in before if name.startswith("old.") and after[name] != before[name]]

    def finish(self) -> None:
        """There is room again."""
        mark, words = self.command.mark, self.command.words
        if mark and (self.folder / "out" / mark).exists():
            words = (*words[:2], "--resume", "out")
        if self.command.once and (self.folder / "out").exists():  # then there is all of it
            assert {"config.json", "model.safetensors"} <= set(os.listdir(self.folder / "out"))
            shutil.rmtree(self.folder / "out")
        ended = self.run(*words)
        assert ended.code == 0, ended.err
        left = [str(path) for path in self.folder.rglob("*") if ".tmp-" in path.name or path.name.endswith(".part")]
        assert not left


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _replaced(name: str) -> bool:
    """Whether a file of an older answer or checkpoint may go for a new one."""
    return bool(re.search(r"inspect/|looked/|checkpoints/|\.tmp-", name))


def trial(server: ModuleType, made: Path, name: str, folder: Path) -> Trial:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return Trial(server, COMMANDS[name], folder).begin()


# ---- from the k-th file call on


def out_of_room(server: ModuleType, made: Path, name: str, folder: Path, **full: int) -> None:
    found = trial(server, made, name, folder)
    before = contents(folder)
    found.check(found.run(**full), before)
    found.finish()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def whole(server: ModuleType, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ended]:
    """A command that has room."""
    known: dict[str, Ended] = {}

    def whole(name: str) -> Ended:
        if name not in known:
            known[name] = trial(server, made, name, tmp_path_factory.mktemp("whole")).run()
            assert known[name].code == 0, known[name].err
        return known[name]

    return whole


def needing_room(names: tuple[str, ...]) -> list[int]:
    """Numbers of calls that need room: without room from another call on, the next of these is the first to fail."""
    free = ("os.rename", "os.remove", "os.rmdir", "os.truncate")
    return [number for number, name in enumerate(names, 1) if name not in free]


SOME = {
    "closed form": (40,), "predict": (1, 3), "predict lines": (2,), "inspect": (5,), "report": (9,), "evaluate": (12,),
    "vectors": (1, 2), "convert": (20,),
}  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_no_room_at_a_file_call(server: ModuleType, made: Path, tmp_path: Path, name: str) -> None:
    for number in SOME[name]:
        out_of_room(server, made, name, tmp_path / str(number), full_at=number)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", COMMANDS)
def test_no_room_at_many_file_calls(
    server: ModuleType, made: Path, whole: Callable[[str], Ended], tmp_path: Path, name: str, chunk: int
) -> None:
    numbers = needing_room(whole(name).names)
    every = max(1, len(numbers) // 100)  # of a training, which has hundreds
    for number in numbers[::every][chunk::CHUNKS]:
        out_of_room(server, made, name, tmp_path / str(number), full_at=number)


# ---- in a process of a comparison


def test_no_room_in_a_worker(server: ModuleType, made: Path, tmp_path: Path) -> None:
    """Its checkpoint finds none; it is told as if the command itself had met it."""
    found = trial(server, made, "compare", tmp_path)
    ended = found.run(full_worker_at=30)
    found.check(ended, contents(made))
    assert ended.code == 5 and ended.worker_names, ended.err
    assert "resume with" in ended.err
    found.finish()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_room_at_many_file_calls_of_a_worker(
    server: ModuleType, made: Path, whole: Callable[[str], Ended], tmp_path: Path, chunk: int
) -> None:
    names = whole("compare").worker_names
    assert names
    for number in needing_room(names)[::3][chunk::CHUNKS]:
        out_of_room(server, made, "compare", tmp_path / str(number), full_worker_at=number)


# ---- a disk of its own


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here ({mounted.stderr.decode().strip()}); this needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def leave(disk: Path, room: int) -> Path:
    """Fill a disk so that `room` bytes are free."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * PAGE
    ballast.write_bytes(bytes(max(0, free - room)))
    return ballast


def on_disk(server: ModuleType, made: Path, disk: Path, name: str, room: int) -> int:
    """A command with so much room, and again with enough; its first exit code."""
    found = trial(server, made, name, disk / "work")
    before = contents(disk / "work")
    ballast = leave(disk, room)
    ended = found.run()
    ballast.unlink()
    found.check(ended, before)
    found.finish()
    shutil.rmtree(disk / "work")
    return ended.code


@pytest.mark.parametrize(
    ("name", "rooms"),
    [("train", (3,)), ("compare", (60,)), ("predict", (0,))],
)
def test_a_disk_with_little_room(server: ModuleType, made: Path, disk: Path, name: str, rooms: tuple[int, ...]) -> None:
    assert [on_disk(server, made, disk, name, pages * PAGE) for pages in rooms] == [5] * len(rooms)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_with_any_room(server: ModuleType, made: Path, disk: Path, name: str) -> None:
    """More and more room, until it is enough three times."""
    enough, pages = 0, 0
    while enough < 3:
        enough += on_disk(server, made, disk, name, pages * PAGE) == 0
        pages += max(1, pages // 8)


# ---- standard output


@pytest.mark.parametrize("words", [
    ("predict", "numbers", "rows.csv"), ("evaluate", "letters", "text.txt"), ("generate", "letters", "--max-tokens", 9),
])  # fmt: skip
def test_standard_output_on_a_full_disk(
    server: ModuleType, made: Path, tmp_path: Path, words: tuple[object, ...]
) -> None:
    env = {"UNROLLED_CACHE": str(tmp_path)}
    ended = server.run(*words, cwd=made, env=env, stdout="/dev/full")
    assert ended.code == 5, ended.err
    assert (
        ended.err == "unrolled: standard output cannot be written (No space left on device): the output is incomplete\n"
    )
