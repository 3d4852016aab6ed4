"""Directories from anybody: every value of their files replaced and sealed again, other files in place of theirs.

Whatever is in them, every command ends with exit 0 or 3, within 5 s and 1 GB, says why in less than 2 kB, runs nothing
and opens nothing outside. Seconds are those of the processor, because others may use the machine; the long form
counts them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import unrolled
from tests.commands import Ended
from tests.faults import hostile
from unrolled.runs.storage import formats, manifest
from unrolled.runs.storage.atomic import Seal

QUICK = {"steps": 2, "batch_size": 4, "warmup": 1, "threads": 1, "d_embedding": 4, "evaluate_every": 1}
OWN = "from pathlib import Path\nPath({!r}).touch()\n"
MOST_MEMORY, MOST_WORDS, MOST_SECONDS = 2**30, 2_000, 5.0
RUNS = {
    "lm": ("text.txt", "next-token", "gru", {"model.d_state": 4}, ["generate", "run", "--max-tokens", 3]),
    "classes": ("rows.csv", "classify", "naive-bayes", {"tokens": "word"}, ["evaluate", "run", "rows.csv"]),
    "numbers": ("numbers.csv", "regress", "gru", {"layout": "wide", "target": "level"}, ["inspect", "run", "saliency"]),
    "pairs": ("pairs.tsv", "translate", "seq2seq", {"model.d_state": 4}, ["predict", "run", "pairs.tsv", "--beam", 2]),
    "series": ("series.csv", "forecast", "gru", {"model.d_state": 4, "horizon": 3}, ["forecast", "run"]),
}  # fmt: skip
WORK = {"huge", "huger", "float", "digits"}  # a budget of these is trained for as long as it says


def write_data(folder: Path) -> None:
    files = {
        "text.txt": ["the cat sat on the mat"] * 60,
        "rows.csv": ["text,label", *(f"{('bad', 'good')[i % 2]} {i},{('down', 'up')[i % 2]}" for i in range(40))],
        "numbers.csv": ["a,b,c,level", *(f"{i % 7},{i % 5},{i % 3},{i % 11}" for i in range(40))],
        "series.csv": ["time,value", *(f"2024-01-01 {i // 60:02}:{i % 60:02},{i % 6 + i % 4}" for i in range(60))],
        "lines.txt": [f"row {i} of {i * i}" for i in range(40)],
        "pairs.tsv": ["source\ttarget", *(f"{'ab' * (i % 4 + 1)}{i}\t{i}" for i in range(40))],
    }  # fmt: skip
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of several tasks, and a comparison, each trained for a moment."""
    folder = tmp_path_factory.mktemp("hostile")
    write_data(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, (data, task, model, settings, _) in RUNS.items():
            unrolled.train(data, task, model, out=name, settings=({} if model == "naive-bayes" else QUICK) | settings)
        few = {"models": "elman", "steps": 2, "threads": 1, "jobs": 1, "d_state": 4, "d_embedding": 4}
        stop(Path("lm"), Path("stopped"))
        unrolled.compare("lines.txt", "next-token", out="comparison", settings=few)
        unrolled.compare("lines.txt", "next-token", out="planned", settings=few, plan_only=True)
        shutil.copytree("planned", "racing")
        plan = without(json.loads(Path("racing", "plan.json").read_text()), formats.CHECK)
        rungs = [
            {"time": 2.0, "until": 1.0, "runs": ["elman-0"], "scores": {"elman": 3.0}, "stopped": {}, "judged": True},
            {"time": 3.0, "until": None, "runs": ["elman-0"], "scores": {}, "stopped": {}, "judged": False},
        ]
        raced = {**plan, "asked": {**plan["asked"], "steps": None, "time": 5.0}, "share": 2.0, "joins": None}
        Path("racing", "plan.json").write_text(json.dumps(formats.with_check({**raced, "rungs": rungs})))
    finally:
        os.chdir(before)
    return folder


def stop(run: Path, place: Path) -> None:
    """A copy of a run that lacks its last words."""
    shutil.copytree(run, place)
    (place / "result.json").unlink()
    seals = manifest.read_manifest(place)
    seals.files.pop("result.json")
    (place / manifest.NAME).write_text(seals.to_text())


class Trial:
    """A hostile copy of a run in a folder of its own, and what commands make of it."""

    def __init__(self, server: ModuleType, made: Path, folder: Path) -> None:
        self.server, self.made, self.folder = server, made, folder
        self.seconds = float("inf")  # of the processor, that a command may take
        self.marker = folder / "executed"
        write_data(folder)
        (folder / "evil.py").write_text(OWN.format(str(self.marker)))

    def copy(self, name: str) -> Path:
        place = self.folder / "run"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.made / name, place)
        return place

    def check(self, what: str, *words: object) -> Ended:
        ended = self.server.run(*words, cwd=self.folder, env={"UNROLLED_CACHE": str(self.folder / "c")}, seconds=60.0)
        told = f"{what}, unrolled {' '.join(map(str, words))}: exit {ended.code}\n{ended.err[-1000:]}"
        assert ended.code in (0, 3) and not ended.late, told
        assert "Traceback" not in ended.err and "internal error" not in ended.err, told
        assert ended.code == 0 or len(ended.err) < MOST_WORDS, told
        assert ended.peak < MOST_MEMORY, told
        assert ended.processor < self.seconds, f"{ended.processor:.1f} s, {told}"
        assert "\x1b]" not in ended.out + ended.err, told
        assert not self.marker.exists(), told
        inside = (str(self.folder), "/tmp", "/dev/null", "/etc/mime", "/usr/share")
        assert [path for path in ended.opened if not path.startswith(inside)] == [], told
        return ended


@pytest.fixture
def trial(server: ModuleType, made: Path, tmp_path: Path) -> Trial:
    return Trial(server, made, tmp_path)


def commands(name: str) -> list[list[object]]:
    data, *_, own = RUNS[name]
    found = [own, ["predict", "run", data], ["evaluate", "run", "--trained-on", data], ["report", "run"], ["runs", "."]]
    return [*found, ["train", data, "--resume", "run"]]


def changed(trial: Trial, name: str, n: int, seed: int, files: tuple[str, ...] = ()) -> Iterator[str]:
    """The run with one value of one file replaced, time and again."""
    home = trial.made / name
    for file in sorted(home.rglob("*.json*")):
        if file.name != manifest.NAME and (not files or file.name in files):
            for what, text in hostile.trials(file.read_text(), seed, n):
                place = trial.copy(name)
                (place / file.relative_to(home)).write_text(text)
                for folder in (place, *(inner.parent for inner in place.glob("checkpoints/*/MANIFEST.json"))):
                    hostile.reseal(folder)
                yield f"{name}/{file.relative_to(home)}: {what}"


@pytest.mark.parametrize("name", RUNS)
def test_values_of_files_are_replaced(trial: Trial, name: str) -> None:
    choice = random.Random(name)
    for what in changed(trial, name, 1, seed=3, files=("config.json", "data.json", "baselines.json", "result.json")):
        trial.check(what, *choice.choice(commands(name)))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RUNS)
def test_many_values_of_files_are_replaced(trial: Trial, name: str, seed: int) -> None:
    choice, trial.seconds = random.Random(seed), MOST_SECONDS
    for what in changed(trial, name, 8, seed):
        for words in choice.sample(commands(name), 2):
            trial.check(what, *words)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_a_stopped_run_with_replaced_values_is_resumed(trial: Trial, seed: int) -> None:
    trial.seconds = MOST_SECONDS
    for what in changed(trial, "stopped", 8, seed):
        if what.rpartition("=")[2] not in WORK:
            trial.check(what, "train", "text.txt", "--resume", "run")


PLANNED = [["report", "run"], ["runs", "."], ["compare", "lines.txt", "--resume", "run"]]
JOINED = [["compare", "--collect", "run"], ["compare", "lines.txt", "--join", "run"]]
COMPARISONS = {  # by directory and file: what reads it
    "comparison/plan.json": PLANNED, "comparison/table.json": [*PLANNED[:2], ["generate", "run", "--max-tokens", 3]],
    "planned/plan.json": JOINED, "racing/plan.json": PLANNED[2:],
}  # fmt: skip


def compared(trial: Trial, name: str, n: int, seed: int) -> None:
    folder, file = name.split("/")
    for what, odd in hostile.trials((trial.made / name).read_text(), seed, n):
        body = json.loads(odd)
        for words in COMPARISONS[name]:
            if words[-1] == "run" and words[1] == "lines.txt" and what.rpartition("=")[2] in WORK:
                continue
            place = trial.copy(folder)
            (place / file).write_text(json.dumps(formats.with_check(without(body, formats.CHECK))))
            trial.check(f"{name}: {what}", *words)


def without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


@pytest.mark.parametrize("name", ["comparison/plan.json", "comparison/table.json", "planned/plan.json"])
def test_a_comparison_with_replaced_values(trial: Trial, name: str) -> None:
    compared(trial, name, n=1, seed=5)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_with_many_replaced_values(trial: Trial, name: str, seed: int) -> None:
    compared(trial, name, n=25, seed=seed)


def link(to: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(to)


def lengthened(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**36)  # sparse


def header(text: bytes, length: int | None = None) -> Callable[[Path], None]:
    size = len(text) if length is None else length
    return lambda path: path.write_bytes(size.to_bytes(8, "little") + text)


OTHERS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo, "zeros": link("/dev/zero"), "passwd": link("/etc/passwd"), "loop": link("config.json"),
    "sparse": lengthened, "folder": Path.mkdir, "deep": lambda path: path.write_bytes(b"[" * 1_000_000),
    "large": lambda path: path.write_bytes(b"[" + b"[]," * 20_000_000 + b"[]]"),
    "header": header(b"{}", 2**62), "sizes": header(b'{"w":{"dtype":"F32","shape":[9,999999],"data_offsets":[0,8]}}'),
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_something_else_in_place_of_a_file(trial: Trial, other: str) -> None:
    for file, words in (("config.json", ["report", "run"]), ("metrics.jsonl", ["report", "run"]),
                        ("model.safetensors", ["generate", "run", "--max-tokens", 3])):  # fmt: skip
        place = trial.copy("lm") / file
        place.unlink()
        OTHERS[other](place)
        ended = trial.check(f"{other} for {file}", *words)
        assert ended.code == 3, file
        assert not ended.opened & {"/dev/zero", "/etc/passwd"}


LINKS = {  # of a run or a comparison: the folder that is a link, where it leads in a run of the user, and a command
    "checkpoints": ("stopped", "checkpoints", "checkpoints", ["train", "text.txt", "--resume", "run"]),
    "tensorboard": ("stopped", "tensorboard", "tensorboard", ["train", "text.txt", "--resume", "run"]),
    "a race of rates": ("stopped", "race/{lr:g}", ".", ["train", "text.txt", "--resume", "run"]),
    "an answer": ("lm", "inspect/surprise", ".", ["inspect", "run", "surprise", "the cat"]),
    "exports": ("lm", "exports", ".", ["export", "run", "--to", "torch"]),
    "a run of a comparison": ("comparison", "elman-0", ".", ["compare", "lines.txt", "--resume", "run"]),
    "a run that is selected": ("comparison", "elman-0", ".", ["generate", "run", "--max-tokens", 3]),
    "claims": ("planned", ".claims", ".", ["compare", "lines.txt", "--join", "run"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_a_folder_that_is_a_link(trial: Trial, name: str) -> None:
    """What is behind it belongs to the user: it is neither opened nor written to nor removed."""
    what, folder, to, words = LINKS[name]
    precious, place = trial.folder / "precious", trial.copy(what)
    shutil.copytree(trial.made / "stopped", precious)
    before = {path: path.stat().st_mtime_ns for path in precious.rglob("*")}
    lr = json.loads((precious / "config.json").read_text())["optimiser"]["lr"]
    link = place / folder.format(lr=lr)
    shutil.rmtree(link, ignore_errors=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(precious / to)
    ended = trial.check(name, *words)
    assert ended.code == 3 and "is a link to a folder elsewhere" in ended.err, ended.err
    assert {path: path.stat().st_mtime_ns for path in precious.rglob("*")} == before
    assert [path for path in ended.opened if path.startswith(str(precious))] == []


def test_code_and_paths_that_a_directory_names(trial: Trial) -> None:
    """A file that leaves a mark when it is run, named wherever a directory can name one."""
    place = trial.copy("lm")
    config = json.loads((place / "config.json").read_text())
    mine = str(trial.folder / "evil.py")
    for more in ({"own_file": mine}, {"own_file": mine, "own_file_sha256": "0" * 64, "model": "evil"}, {"model": mine},
                 {"source": "/etc/passwd"}, {"start": {**config["start"], "from_run": "/etc"}}):  # fmt: skip
        (place / "config.json").write_text(json.dumps({**config, **more}))
        hostile.reseal(place)
        for words in (["evaluate", "run"], ["train", "--resume", "run"]):
            trial.check(f"{list(more)}", *words)


def test_a_later_release_has_its_own_sentence(trial: Trial) -> None:
    place = trial.copy("lm")
    config = json.loads((place / "config.json").read_text())
    config["versions"]["unrolled"] = "99.0"
    (place / "config.json").write_text(json.dumps({**config, "teleport": True}))
    hostile.reseal(place)
    assert "later release" in trial.check("later", "predict", "run", "text.txt").err


@pytest.mark.parametrize("more", [{"threads": 10**9}, {"processes": 64}, {"processes": 4000},
    {"processes": 4000, "batching": {"batch_size": 4000}}, {"members": 100}], ids=str)  # fmt: skip
def test_a_stopped_run_that_asks_for_a_crowd(trial: Trial, more: dict[str, Any]) -> None:
    place = trial.copy("stopped")
    config = json.loads((place / "config.json").read_text())
    more = {key: {**config[key], **value} if isinstance(value, dict) else value for key, value in more.items()}
    (place / "config.json").write_text(json.dumps({**config, **more}))
    hostile.reseal(place)
    assert trial.check(str(more), "train", "text.txt", "--resume", "run").code == 3


@pytest.mark.parametrize("file", ["model.safetensors", "checkpoints/step/state.safetensors"])
def test_weights_of_gigabytes(trial: Trial, file: str) -> None:
    """The file says that it holds another tensor, of which the disk holds nothing."""
    place = trial.copy("stopped")
    for old in sorted((place / "checkpoints").glob("step-*"))[:-1]:
        shutil.rmtree(old)
    (place / "checkpoints" / "latest").unlink()
    path = next(place.glob(file.replace("step", "step-*")))
    data, more = path.read_bytes(), 20 * 2**30
    length = int.from_bytes(data[:8], "little")
    end, values = len(data) - 8 - length, json.loads(data[8 : 8 + length])
    values["more"] = {"dtype": "F32", "shape": [more // 4], "data_offsets": [end, end + more]}
    head = json.dumps(values).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + length :])
    os.truncate(path, path.stat().st_size + more)
    seals = manifest.read_manifest(path.parent)
    seals.files[path.name] = Seal("0" * 64, path.stat().st_size)
    (path.parent / manifest.NAME).write_text(seals.to_text())
    words = ["train", "text.txt", "--resume", "run"] if "step" in file else ["generate", "run", "--max-tokens", 3]
    assert trial.check(file, *words).code == 3


ONE = b'{"last":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}'.ljust(64)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff" * 8 + b"{}", b"\2" + bytes(7) + b"{}", b"@" + bytes(7) + ONE])
def test_the_ends_of_series_may_be_anything(trial: Trial, data: bytes) -> None:
    place = trial.copy("series")
    (path,) = place.glob("codec/*.safetensors")
    path.write_bytes(data)
    hostile.reseal(place)
    assert trial.check("ends", "forecast", "run").code == 3


def test_settings_of_a_stopped_run_were_not_typed(trial: Trial) -> None:
    place = trial.copy("stopped")
    config = json.loads((place / "config.json").read_text())
    for more in ({"model_settings": {**config["model_settings"], "initial": "x"}},
                 {"data": {**config["data"], "column": "x"}}):  # fmt: skip
        (place / "config.json").write_text(json.dumps({**config, **more}))
        hostile.reseal(place)
        assert trial.check(f"{list(more)}", "train", "text.txt", "--resume", "run").code == 3
