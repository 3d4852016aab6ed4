"""Runs and comparisons of other formats: listed, and refused by every other command with one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import unrolled
from tests.commands import run_unrolled
from tests.faults import hostile
from unrolled.core.errors import DataError
from unrolled.report.listing import delete, list_all
from unrolled.report.page import write_report
from unrolled.runs.storage import formats
from unrolled.runs.storage.formats import RUN_FORMAT

ABSENT = object()
OLDER = f"written by an earlier release in format 1, and this release reads format {RUN_FORMAT}"
ROWS = [{"text": f"{'abcdefgh'[i % 8] * 3} {'uvwxyz'[i % 6] * 2}", "value": i * 7 % 11} for i in range(40)]
SETTINGS = {"steps": 2, "models": "memoryless", "target": "value", "d_embedding": 4, "batch_size": 8, "threads": 1}
FILES = ("plan.json", "table.json", "memoryless-0/config.json")
READING = (
    ("predict", "PLACE", "rows.csv"), ("generate", "PLACE"), ("evaluate", "PLACE", "rows.csv"),
    ("inspect", "PLACE", "parameters"), ("report", "PLACE"), ("train", "rows.csv", "--steps", 1, "--from", "PLACE"),
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    unrolled.compare(ROWS, "regress", out=folder / "comparison", settings=SETTINGS)
    (folder / "rows.csv").write_text("text,value\n" + "".join(f"{row['text']},{row['value']}\n" for row in ROWS))
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def renumber(file: Path, number: Any) -> None:
    """Another number in a file that is whole otherwise."""
    values = {key: value for key, value in json.loads(file.read_text()).items() if key != formats.FORMAT}
    values |= {} if number is ABSENT else {formats.FORMAT: number}
    if formats.CHECK in values:
        del values[formats.CHECK]
        values = formats.with_check(values)
    file.write_text(json.dumps(values))
    if (file.parent / "MANIFEST.json").exists():
        hostile.reseal(file.parent)


def refuse_all(place: Path, target: str, sentence: str, *more: tuple[object, ...]) -> None:
    """Every command ends with exit code 3 and one sentence, and changes nothing."""
    before = sorted(place.rglob("*"))
    for words in (*READING, *more):
        said = run_unrolled(*(target if word == "PLACE" else word for word in words), cwd=place, code=3).stderr
        assert sentence in said and len(said.splitlines()) == 1, (words, said)
    assert sorted(place.rglob("*")) == before


def refuse(place: Path, sentence: str) -> None:
    """The same of what the commands call."""
    folder, run = place / "comparison", place / "comparison" / "memoryless-0"
    for call in (
        lambda: unrolled.load(folder), lambda: unrolled.load(run), lambda: write_report([folder]),
        lambda: write_report([run]), lambda: unrolled.train(ROWS, resume=run),
        lambda: unrolled.train(ROWS, "regress", settings={"from_run": str(run), "steps": 1, "target": "value"}),
        lambda: unrolled.compare(ROWS, resume=folder), lambda: unrolled.Comparison(folder),
    ):  # fmt: skip
        with pytest.raises(DataError) as caught:
            call()
        assert sentence in str(caught.value)
        assert len(str(caught.value)) < 600


def test_every_file_says_its_format(made: Path) -> None:
    for name in (*FILES, "baseline-mean/config.json"):
        assert json.loads((made / "comparison" / name).read_text())["format"] == RUN_FORMAT, name


def test_commands_on_a_run_of_an_older_format(place: Path) -> None:
    shutil.move(place / "comparison" / "memoryless-0", place / "run")
    renumber(place / "run" / "config.json", ABSENT)
    assert "older format" in run_unrolled("runs", place).stdout
    refuse_all(place, "run", f"{OLDER}; train the run again", ("train", "rows.csv", "--resume", "PLACE"))
    run_unrolled("runs", "--delete", "--yes", "run", cwd=place)
    assert not (place / "run").exists()


def test_commands_on_a_comparison_of_an_older_format(place: Path) -> None:
    for name in ("plan.json", "table.json"):
        renumber(place / "comparison" / name, 1)
    refuse_all(place, "comparison", f"{OLDER}; compare again", ("compare", "rows.csv", "--resume", "PLACE"))


@pytest.mark.parametrize("number", [ABSENT, 1], ids=["none", "1"])
def test_older_formats_are_listed_refused_and_deleted(place: Path, number: Any) -> None:
    folder = place / "comparison"
    for name in FILES:
        renumber(folder / name, number)
    refuse(place, OLDER)
    (found,), (run,) = list_all([folder]), list_all([folder / "memoryless-0"])
    assert (found.kind, found.state, found.task, found.data) == ("comparison", "older format", "regress", "memory")
    assert found.runs == len(list(folder.glob("*/config.json"))) > 1
    assert (run.kind, run.state, run.task, run.model) == ("run", "older format", "regress", "memoryless")
    delete([folder])
    assert not folder.exists()


def test_a_file_that_is_only_called_table_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    for values in ({"legs": 4}, {"format": 1, "legs": 4}, {"format": RUN_FORMAT + 1, "rows": []}):
        (tmp_path / "odd" / "table.json").write_text(json.dumps(values))
        with pytest.raises(DataError):
            delete([tmp_path / "odd"])


def test_a_run_of_an_older_format_in_a_comparison_is_left_out_of_its_page(place: Path) -> None:
    renumber(place / "comparison" / "memoryless-0" / "config.json", 1)
    text = write_report([place / "comparison"]).read_text()
    assert "memoryless-0 is left out: " in text and OLDER in text
    with pytest.raises(DataError, match=OLDER):
        unrolled.load(place / "comparison")  # the run that it selected


@pytest.mark.parametrize("number", [RUN_FORMAT + 1, 10**30], ids=["next", "huge"])
def test_what_a_later_release_wrote(place: Path, number: int) -> None:
    for name in FILES:
        renumber(place / "comparison" / name, number)
    (found,), (run,) = list_all([place]), list_all([place / "comparison" / "memoryless-0"])
    assert (found.state, run.state) == ("later format", "later format")
    refuse(
        place, f"written by a later release (format {number}, this release reads format {RUN_FORMAT}); update unrolled"
    )


ODD = {"true": True, "text": "2", "float": 2.0, "zero": 0, "minus": -1, "nothing": None, "list": [2], "long": "9" * 999}


@pytest.mark.parametrize("kind", ODD)
def test_a_number_that_is_none(place: Path, kind: str) -> None:
    for name in FILES:
        renumber(place / "comparison" / name, ODD[kind])
    assert [each.state for each in list_all([place])] == ["damaged"]
    refuse(place, "invalid value format = ")
