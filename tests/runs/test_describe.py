"""`unrolled data FILE`: what would be understood of every kind of file that a comparison reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unrolled
from tests.commands import run_unrolled
from tests.runs.test_guess import PAIRS, SERIES, TABLE, files, image, npz, sound, table, text
from unrolled.core.errors import DataError, UsageError

ROLL = np.random.default_rng(0).random((40, 30, 88)) < 0.1
KINDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a text": TABLE["a text"],
    "reviews": TABLE["reviews"],
    "texts with a condition": TABLE["texts with a condition"],
    "pairs with a tab": TABLE["pairs with a tab"],
    "pairs in a table": TABLE["pairs in a table"],
    "tags in json lines": (table("t.conll", "", lambda i: f"w{i % 9} X{i % 2}\n", 60), {}, "tag"),
    "series with numbers": TABLE["series with numbers"],
    "series with series": TABLE["series with series"],
    "piano rolls": (npz(**{f"r{i}": roll for i, roll in enumerate(ROLL)}), {}, "next-frame"),
    "a folder of images by class": (
        files(*(image(f"{c}/{i}.png") for c in "ab" for i in range(20))), {}, "classify"),
    "a folder of sounds by class": (
        files(*(sound(f"{c}/{i}.wav") for c in "ab" for i in range(20))), {}, "classify"),
    "captions": (
        files(*(image(f"{i}.png") for i in range(40)),
              table("captions.csv", "image,caption", lambda i: f"{i}.png,black {i}")), {}, "caption"),
    "clips with texts": (
        files(*(sound(f"{i}.wav") for i in range(40)),
              table("transcripts.csv", "file,text", lambda i: f"{i}.wav,yes {i}")), {}, "recognise"),
    "builtin:digits": TABLE["builtin:digits"],
    "builtin:reversal": (lambda folder: "builtin:reversal,examples=200", {}, "translate"),
    "builtin:shapes": (lambda folder: "builtin:shapes,examples=60", {}, "caption"),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_data_is_described(name: str, tmp_path: Path) -> None:
    make, settings, task = KINDS[name]
    told = unrolled.describe(make(tmp_path), **settings)
    assert json.loads(json.dumps(told)) == told
    assert told["task"] == task
    assert told["guessed"]
    assert told["split"]["train"]
    assert 1 <= len(told["first"]) <= 3
    assert all(told["first"])


@pytest.mark.parametrize(("name", "settings", "uses"), [
    ("reviews", {}, {"text": ("text", "input"), "label": ("text", "target")}),
    ("reviews", {"task": "next-token"}, {"text": ("text", "text"), "label": ("text", None)}),
    ("texts with a condition", {"condition": "language"}, {"name": ("text", "text"), "language": ("text", "class")}),
    ("pairs in a table", {}, {"source": ("text", "source"), "target": ("text", "target")}),
    ("pairs with a tab", {}, {"1": ("text", "source"), "2": ("text", "target")}),
    ("series with numbers", {}, {"x": ("[40, 6]", "input"), "y": ("[40]", "target")}),
    ("a long table of series", {}, {
        "id": ("numbers", "series"), "time": ("numbers", "time"), "value": ("numbers", "input"),
        "label": ("text", "target"),
    }),
])  # fmt: skip
def test_columns_are_told_with_what_they_hold_and_their_use(
    name: str, settings: dict[str, Any], uses: dict[str, Any], tmp_path: Path
) -> None:
    told = unrolled.describe(TABLE[name][0](tmp_path), **settings)
    assert {column["name"]: (column["holds"], column["use"]) for column in told["columns"]} == uses


def test_examples_are_shown_as_they_are_read(tmp_path: Path) -> None:
    told = unrolled.describe(TABLE["reviews"][0](tmp_path))["first"]
    assert told[0] == {"input": "good 0", "target": "a", "place": f"{tmp_path / 'r.csv'}, line 2"}
    told = unrolled.describe(PAIRS)["first"]
    assert told[1] == {"source": PAIRS[1][0], "target": PAIRS[1][1], "place": "the list, row 2"}
    told = unrolled.describe((SERIES, ["a", "b"] * 20))["first"]
    assert told[0]["input"] == "numbers [6, 1]: 0 1 2 3 4 5"
    told = unrolled.describe({"train": [{"text": f"a {i}", "label": "xy"[i % 2]} for i in range(40)]})["first"]
    assert told[1] == {"input": "a 1", "target": "y", "place": "the list, row 2"}


@pytest.mark.long
def test_the_command_shows_it(tmp_path: Path) -> None:
    TABLE["reviews"][0](tmp_path)
    told = run_unrolled("data", "r.csv", cwd=tmp_path).stdout
    assert told.startswith("task: classify (guessed because its targets are classes; override with --task NAME)\n")
    assert "column text: text, input\ncolumn label: text, target\n" in told
    assert "split: \n  train: examples 36, steps" in told
    assert "input good 0, target a, place r.csv, line 2" in told
    as_json = json.loads(run_unrolled("data", "r.csv", "--task", "next-token", "--json", cwd=tmp_path).stdout)
    assert (as_json["task"], as_json["guessed"]) == ("next-token", None)
    other = run_unrolled("data", "r.csv", "--target", "label", "--readout", "max", "--json", cwd=tmp_path).stdout
    assert {each["name"]: each["use"] for each in json.loads(other)["columns"]} == {"text": "input", "label": "target"}


@pytest.mark.parametrize(("make", "settings", "error", "says"), [
    (text("m.csv", "text;label\na;b\nc;d;e\n"), {}, DataError, "that contain ';' in double quotes"),
    (table("r.csv", "text,label", lambda i: f"a {i},{'xy'[i % 2] if i != 7 else ''}"), {}, DataError, "line 9"),
    (text("r.csv", "text,label\n" + "a,b\n" * 30), {"target": "stars"}, UsageError, "stars"),
    (text("r.txt", "a b\n" * 90), {"rubbish": 1}, UsageError, "no setting 'rubbish'"),
    (text("r.txt", "a b\n" * 90), {"model": "gru"}, UsageError, "'model' is no setting of the data or of"),
    (text("r.txt", "a b\n" * 90), {"lr": 0.1}, UsageError, "'lr' is no setting of the data"),
    (text("r.txt", "a b\n" * 90), {"d_state": 4}, UsageError, "no setting 'd_state'"),
    (lambda folder: folder / "none.csv", {}, DataError, "none.csv"),
    (text("a.npz", "PK"), {}, DataError, "not an .npz file"),
])  # fmt: skip
def test_bad_input_gets_one_sentence(
    make: Any, settings: dict[str, Any], error: Any, says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        unrolled.describe(make(tmp_path), **settings)


def test_arrays_of_a_task_that_reads_them_all_are_data(tmp_path: Path) -> None:
    rolls = {f"piece{i}": np.eye(12, 88, 20 + i) for i in range(20)}
    np.savez(tmp_path / "rolls.npz", **rolls)
    told = unrolled.describe(tmp_path / "rolls.npz", "next-frame")
    assert {column["use"] for column in told["columns"]} == {"data"}
