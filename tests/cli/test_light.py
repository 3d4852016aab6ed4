"""What must answer at once: help, lists, misspelt names and completion work without torch and its like."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from unrolled.cli import models
from unrolled.cli.main import commands
from unrolled.cli.options import fitted
from unrolled.core import discover

HEAVY = ("torch", "numpy", "polars", "matplotlib", "sklearn", "scipy", "pyarrow")
SERVER = f"""
import json, os, sys
from unrolled.cli.main import main

for line in sys.stdin:
    given = json.loads(line)
    child = os.fork()
    if child == 0:
        for stream, path in zip((1, 2), given["streams"]):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
        os.chdir(given["cwd"])
        sys.stdin = open(os.devnull)
        os.environ.update(given["env"])
        sys.argv = ["unrolled", *given["words"]]
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        if heavy := [name for name in {HEAVY} if name in sys.modules]:
            sys.stderr.write(f"imported {{heavy}}")
            code = 99
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@cache
def server() -> subprocess.Popen[str]:
    """A process that has loaded the command line and nothing heavy; each command is forked from it."""
    return subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"COLUMNS": "80", "TERM": "dumb"})  # fmt: skip


def run(*words: str, cwd: Path, **env: str) -> Done:
    process, streams = server(), [cwd / "printed", cwd / "errors"]
    for stream in streams:
        stream.unlink(missing_ok=True)
    assert process.stdin and process.stdout
    given = {"words": words, "cwd": str(cwd), "env": env, "streams": list(map(str, streams))}
    process.stdin.write(json.dumps(given) + "\n")
    process.stdin.flush()
    return Done(int(process.stdout.readline()), *(stream.read_text() for stream in streams))


@pytest.fixture(scope="module", autouse=True)
def _server_ends() -> Iterator[None]:
    yield
    if server.cache_info().currsize:
        server().kill()
        server().communicate()
        server.cache_clear()


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in commands()), ["tasks"], ["models"]])
def test_help_and_lists(words: list[str], tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(("words", "says"), [
    (["trian"], "'train'"),
    (["train", "--modell"], "--model"),
    (["train", "x.txt", "--model", "rnn"], "'elman'"),
    (["train", "x.txt", "--model", "LSTM"], "'lstm'"),
    (["train", "x.txt", "--task", "ner"], "'tag'"),
    (["train", "x.txt", "--model", "encdec", "--encoder", "encoder-only"], "'transformer-encoder'"),
    (["compare", "x.txt", "--models", "lstm,gpt"], "'transformer'"),
    (["models", "linear_rnn"], "'linear-rnn'"),
    (["tasks", "classification"], "'classify'"),
    (["check", "lstmm"], "'lstm'"),
    (["inspect", "runs/none", "Attention"], "'attention'"),
])  # fmt: skip
def test_misspelt_names(words: list[str], says: str, tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.split("Known")[0]


@pytest.mark.parametrize(("typed", "offers"), [
    ("unrolled tr", "train"),
    ("unrolled train --mod", "--model"),
    ("unrolled compare --pres", "--preset"),
])  # fmt: skip
def test_completion(typed: str, offers: str, tmp_path: Path) -> None:
    bash = {"_UNROLLED_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = run(cwd=tmp_path, **bash)
    assert done.stdout.split() == [offers], done.stderr
    done = run(cwd=tmp_path, _UNROLLED_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=typed)
    assert offers in done.stdout, done.stderr


def test_every_command_is_listed_with_its_own_sentence() -> None:
    import importlib

    for name, sentence in commands().items():
        module = importlib.import_module(f"unrolled.cli.{name}")
        assert (module.command.__doc__ or "").startswith(sentence.split("\n")[0]), name
        assert sentence, name


@pytest.mark.parametrize("width", [80, 100])
def test_models_and_tasks_are_one_line_each_that_fits(width: int, tmp_path: Path) -> None:
    for command, room in (("models", discover.models), ("tasks", discover.tasks)):
        lines = run(command, cwd=tmp_path, COLUMNS=str(width)).stdout.splitlines()
        assert [line.split()[0] for line in lines] == room.names()
        assert max(map(len, lines)) <= width


def test_a_file_that_computes_its_kind_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "strange.py"
    source = (Path(discover.__file__).parents[1] / "models" / "elman.py").read_text(encoding="utf-8")
    own.write_text(source.replace('kind="causal"', 'kind="".join(["cau", "sal"])'), encoding="utf-8")
    name = discover.models.add_file(own)
    try:
        models.command(with_=own)
        lines = capsys.readouterr().out.splitlines()
    finally:
        discover.models.forget(name)
    assert next(line.split()[1] for line in lines if line.startswith("strange")) == "causal"


def test_what_files_tell_is_what_they_define() -> None:
    for room in (discover.models, discover.tasks, discover.questions):
        for name in room.names():
            told = discover.Room(room.package, room.needs).told(name)
            module = room.load(name)
            assert told["__doc__"].splitlines()[0] == (module.__doc__ or "").strip().splitlines()[0]
            literal = {word: value for word, value in told.items() if word.isupper()}
            assert {word: getattr(module, word) for word in literal} == literal


def test_aliases_are_no_names_and_mean_one_thing() -> None:
    for room in (discover.models, discover.tasks, discover.questions):
        words = [word for name in room.names() for word in room.aliases(name)]
        assert len(words) == len(set(words))
        assert not set(words) & set(room.names())


def test_lines_are_cut_where_they_may_be() -> None:
    assert fitted("short", 80) == "short"
    assert len(fitted("a " * 60, 80)) <= 80
    assert fitted("name  kind  one thing; another thing", 24) == "name  kind  one thing"
