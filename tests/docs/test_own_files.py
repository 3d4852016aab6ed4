"""The page about files of one's own: what it shows trains, is recorded, and is asked for again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError

PAGE = Path(__file__).parents[2] / "docs" / "own_files.md"
BLOCKS = {
    text.split(":")[0].strip('"'): text for text in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
}
ROOMS = {"middle": discover.readouts, "shouted": discover.tasks, "squares": discover.builtins}
TINY = {"steps": 2, "batch_size": 4, "d_embedding": 4, "d_state": 4, "threads": 1}
WORDS = [f"{key}={value}" for key, value in TINY.items()]
QUICK = [word for pair in WORDS for word in ("--set", pair)]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    for name, text in BLOCKS.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(f"good {i},{'ab'[i % 2]}\n" for i in range(40)))
    (tmp_path / "poems.txt").write_text("".join(f"roses {i} are red\n" for i in range(40)))
    yield tmp_path
    for name, room in ROOMS.items():
        room.forget(name)


ASKED = {
    "middle": ("reviews.csv", {"task": "classify", "model": "elman", "readout": "middle"}),
    "shouted": ("poems.txt", {"task": "shouted", "model": "elman"}),
    "squares": ("builtin:squares", {"task": "translate", "model": "seq2seq"}),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_run_is_made_with_the_file_and_asks_for_it_again(own: Path, name: str) -> None:
    source, asked = ASKED[name]
    data, file = source if source.startswith("builtin:") else own / source, own / f"{name}.py"
    run = unrolled.train(data, out=own / "run", own_file=file, **asked, settings=TINY)  # type: ignore[arg-type]
    assert run.config.own_file == file.name and run.config.own_file_sha256
    ROOMS[name].forget(name)
    with pytest.raises(
        DataError, match=f"made with a Python file, which is run only if you name it explicitly; add .*{name}.py"
    ):
        unrolled.load(own / "run")
    assert unrolled.load(own / "run", own_file=file).result["steps"] == 2
    ROOMS[name].forget(name)
    file.write_text(BLOCKS[name] + "raise SystemExit(3)\n", encoding="utf-8")
    with pytest.raises(DataError, match="content has changed"):
        unrolled.load(own / "run", own_file=file)


def test_a_readout_is_an_option_and_its_own(own: Path) -> None:
    words = ("--task", "classify", "--model", "elman", "--set", "readout=middle", *QUICK)
    run_unrolled("train", "reviews.csv", *words, "--with", "middle.py", "-o", "run", cwd=own)
    missing = run_unrolled("predict", "run", "reviews.csv", cwd=own, code=3)
    assert "--with PATH/middle.py" in missing.stderr
    assert run_unrolled("predict", "run", "reviews.csv", "--with", "middle.py", cwd=own).stdout.count("\n") == 40
    wrong = run_unrolled("train", "reviews.csv", *words, "-o", "other", cwd=own, code=2)
    assert "there is no readout 'middle'" in wrong.stderr


def test_all_models_of_a_comparison_are_made_with_it(own: Path) -> None:
    words = ("--task", "classify", "--models", "elman,memoryless", "--set", "readout=middle", *QUICK, "--jobs", "1")
    run_unrolled("compare", "reviews.csv", *words, "--with", "middle.py", "-o", "out", cwd=own, forked=True)
    for folder in ("elman-0", "memoryless-0"):
        assert unrolled.load(own / "out" / folder, own_file=own / "middle.py").config.own_file == "middle.py"
        discover.readouts.forget("middle")


def test_a_file_that_is_of_no_use_is_refused(own: Path) -> None:
    (own / "mine.py").write_text(Path(discover.models.load("elman").__file__ or "").read_text())
    with pytest.raises(UsageError, match="a run of the model 'gru' uses nothing that this file defines"):
        unrolled.train(own / "poems.txt", model="gru", own_file=own / "mine.py", out=own / "run", settings=TINY)
    discover.models.forget("mine")
