"""`unrolled inspect`: the list, an answer with its files, inputs of both kinds, and what cannot be."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.cli.inspect import command
from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError

QUICK = {"steps": 2, "batch_size": 4, "evaluate_every": 2, "evaluate_tokens": 50, "warmup": 1, "threads": 1,
         "d_embedding": 6, "d_state": 6, "split": "80/20"}  # fmt: skip


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "text.txt").write_text("the cat sat on the mat.\nthe dog sat on the log.\n" * 20)
    unrolled.train(folder / "text.txt", model="gru", out=folder / "gru", settings=QUICK)
    return folder / "gru"


@pytest.fixture(scope="module")
def frame_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rolls")
    rolls = [np.eye(6, dtype=np.uint8)[(np.arange(5 + i % 4) + i) % 6] for i in range(24)]
    unrolled.train(rolls, task="next-frame", model="gru", out=folder / "gru", settings=QUICK)
    np.savez(folder / "other.npz", test_0=rolls[3], test_1=rolls[4])
    return folder / "gru"


def test_the_list_says_what_applies(text_run: Path) -> None:
    shown = run_unrolled("inspect", text_run).stdout
    for question in discover.questions.names():
        assert question in shown
    assert "not available: this gru has no attention layers" in shown
    assert "unrolled inspect" in run_unrolled("inspect", "--help").stdout


def test_an_answer_is_shown_and_saved(text_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(str(text_run), "gates", "the cat")
    shown = capsys.readouterr().out
    assert "1 is open, 0 is closed" in shown
    assert "update" in shown
    saved = text_run / "inspect" / "gates"
    assert str(saved / "numbers.json") in shown.replace("\n", "")
    assert "Reset gate, layer 1" in shown
    assert (saved / "picture-1.svg").read_text().lstrip().startswith("<")
    unrolled.load(text_run).directory.verify()  # the run is as whole as before


def test_json_settings_standard_input_and_another_place(
    text_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\n"))
    command(str(text_run), "states", "-", set_=["length=4"], out=str(tmp_path / "here"), json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["numbers"]["positions"] == ["\\n", "t", "h", "e"]
    assert "first 4" in said["reading"]
    assert {Path(name).parent for name in said["files"]} == {tmp_path / "here"}
    assert json.loads((tmp_path / "here" / "numbers.json").read_text())["numbers"] == said["numbers"]
    command(str(text_run), json=True)
    listed = {fact["question"]: fact for fact in json.loads(capsys.readouterr().out)}
    assert listed["attention"]["not"]
    assert listed["gates"]["not"] is None
    assert listed["gates"]["settings"]["length"]["default"] == 64


def test_what_is_not_text_is_read_from_a_file(frame_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(str(frame_run), "states", str(frame_run.parent / "other.npz"), json=True)
    said = json.loads(capsys.readouterr().out)
    assert len(said["numbers"]["positions"]) == 5 + 3  # as many as the first roll has frames
    with pytest.raises(DataError, match=r"none\.npz"):
        command(str(frame_run), "states", "none.npz")


@pytest.mark.parametrize(("words", "says"), [
    (("attenton",), "did you mean 'attention'"),
    (("attention",), "does not apply to"),
    (("gates", None, ["lenght=4"]), "did you mean 'length'"),
    (("gates", None, ["length=0"]), "an integer >= 1"),
    (("gates", None, ["layer=2"]), "has 1 gated layer"),
    ((None, None, ["length=4"]), "need a question"),
], ids=str)  # fmt: skip
def test_what_cannot_be_is_said_in_a_sentence(text_run: Path, words: tuple, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        command(str(text_run), *words)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
