"""Splits that are given, by files, names in a folder or a column, are kept by every task and never trained on."""

from __future__ import annotations

import itertools
import json
import shutil
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import unrolled
from tests.commands import run_unrolled
from tests.thorough import every
from unrolled.core.errors import DataError, UsageError
from unrolled.data.given_splits import with_given
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig
from unrolled.runs.run import load

LETTERS = {"train": "abcdefgh", "valid": "ijklmnop", "test": "qrstuvwx"}  # what only the texts of one split hold


def word(split: str, i: int) -> str:
    letters = LETTERS[split]
    return letters[i % 8] + letters[i // 8 % 8] + letters[i // 64 % 8]


def random(split: str) -> np.random.Generator:
    return np.random.default_rng(list(LETTERS).index(split))


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def text(folder: Path, split: str, n: int) -> Path:
    return written(folder / f"{split}.txt", [f"{word(split, i)} {word(split, i + 1)}" for i in range(n)])


def table(folder: Path, split: str, n: int) -> Path:
    return written(folder / f"{split}.csv", ["text", *(word(split, i) for i in range(n))])


def classes(folder: Path, split: str, n: int) -> Path:
    return written(folder / f"{split}.csv", ["text,label", *(f"{word(split, i)},{'AB'[i % 2]}" for i in range(n))])


def numbers(folder: Path, split: str, n: int) -> Path:
    return written(folder / f"{split}.csv", ["text,target", *(f"{word(split, i)},{i}.5" for i in range(n))])


def tags(folder: Path, split: str, n: int) -> Path:
    return written(folder / f"{split}.conll", [f"{word(split, i)} N\nruns V\n" for i in range(n)])


def series(folder: Path, split: str, n: int) -> Path:
    x = random(split).normal(0, 1, (n, 6, 1)).astype(np.float32)
    np.savez(folder / f"{split}.npz", x=x, y=x / 2)
    return folder / f"{split}.npz"


def pairs(folder: Path, split: str, n: int) -> Path:
    return written(folder / f"{split}.tsv", [f"{word(split, i)}\t{word(split, i).upper()}" for i in range(n)])


def captions(folder: Path, split: str, n: int) -> Path:
    place = folder / split
    place.mkdir()
    for i in range(n):
        Image.fromarray(random(split).integers(0, 255, (4, 4), np.uint8) ^ np.uint8(i)).save(place / f"{i}.png")
    written(place / "captions.csv", ["image,caption", *(f"{i}.png,{word(split, i)}" for i in range(n))])
    return place


def clips(folder: Path, split: str, n: int) -> Path:
    place = folder / split
    place.mkdir()
    for i in range(n):
        with wave.open(str(place / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(random(split).integers(-999, 999, 900 + i, np.int16).tobytes())
    written(place / "transcripts.csv", ["file,text", *(f"{i}.wav,{word(split, i)}" for i in range(n))])
    return place


def rolls(folder: Path, split: str, n: int) -> Path:
    frames = random(split).random((n, 5, 8)) < 0.5
    np.savez(folder / f"{split}.npz", **{f"roll_{i}": each for i, each in enumerate(frames)})
    return folder / f"{split}.npz"


Make = Callable[[Path, str, int], Path]
CASES: dict[str, tuple[Make, str, dict[str, Any]]] = {
    "a stream": (text, "next-token", {}),
    "lines": (text, "next-token", {"data": {"examples": "lines"}}),
    "rows": (table, "next-token", {}),
    "classify": (classes, "classify", {}),
    "regress": (numbers, "regress", {}),
    "tag": (tags, "tag", {}),
    "denoise": (series, "denoise", {}),
    "translate": (pairs, "translate", {}),
    "caption": (captions, "caption", {}),
    "recognise": (clips, "recognise", {}),
    "next-frame": (rolls, "next-frame", {}),
}  # fmt: skip


def prepared(source: Any, task: str, settings: dict[str, Any]) -> Any:
    made = make_task(RunConfig.parse({"task": task, **settings}))
    made.prepare(source)
    return made


def count(made: Any, split: str) -> int:
    """Examples of a split; characters of a stream."""
    facts = made.facts()["split"][split]
    return facts["characters"] if "cuts" in made.facts() else facts.get("examples", facts.get("pairs"))


@pytest.mark.parametrize(("given", "name"), every(2, itertools.product(["test", "valid", "both"], CASES)))
def test_given_files_are_kept_and_not_trained_on(tmp_path: Path, given: str, name: str) -> None:
    make, task, settings = CASES[name]
    sizes = {"train": 60, "valid": 9, "test": 7}
    files = {
        split: make(tmp_path, split, n) for split, n in sizes.items() if split in ("train", given) or given == "both"
    }
    whole = prepared(files["train"], task, settings)
    n_train = sum(count(whole, split) for split in whole.splits())
    made = prepared(files, task, settings)
    assert made.splits() == ("train", "valid", "test")
    missing = [split for split in sizes if split not in files]
    for split in ("valid", "test"):
        if split in files:
            per_line = 8 if name == "a stream" else 1
            assert count(made, split) == sizes[split] * per_line
    assert sum(count(made, split) for split in ("train", *missing)) == n_train
    notes = [note for note in made.facts()["notes"] if "split is given" in note]
    assert [note.split()[1] for note in notes] == missing  # a split that is not given is told
    assert not any("in train too" in note for note in made.facts()["notes"])
    learned = "".join(str(each.meaning()[0]) for each in made.vocabularies().values())
    assert not any(f'"{letter}"' in learned for split in files if split != "train" for letter in LETTERS[split])


@pytest.mark.parametrize("name", every(3, CASES))
def test_the_fingerprint_covers_all_files_and_repeats_are_told(tmp_path: Path, name: str) -> None:
    make, task, settings = CASES[name]
    files = {split: make(tmp_path, split, 60) for split in ("train", "valid", "test")}
    before = prepared(files, task, settings).facts()["fingerprint"]
    assert prepared(files, task, settings).facts()["fingerprint"] == before
    other = prepared({**files, "test": files["valid"], "valid": files["test"]}, task, settings)
    assert other.facts()["fingerprint"] != before
    (tmp_path / "again").mkdir()
    again = {**files, "test": make(tmp_path / "again", "train", 60 if name != "a stream" else 50)}
    if name == "a stream":
        longer = "a line that is long enough not to be there twice by chance\n"
        for split in ("train", "test"):
            again[split].write_text(again[split].read_text() + longer, encoding="utf-8")
    made = prepared(again, task, settings)
    assert any("of test" in note and "in train too" in note for note in made.facts()["notes"])
    assert count(made, "test") >= 50  # and left where they are


@pytest.mark.parametrize("name", CASES)
def test_names_in_a_folder_are_splits(tmp_path: Path, name: str) -> None:
    make, task, settings = CASES[name]
    files = {split: make(tmp_path, split, n) for split, n in (("train", 60), ("test", 7))}
    (tmp_path / "README.md").write_text("what it is")
    by_folder, by_file = prepared(tmp_path, task, settings), prepared(files, task, settings)
    assert by_folder.facts()["fingerprint"] == by_file.facts()["fingerprint"]


COLUMNS: dict[str, tuple[str, Callable[[str, int], str], str]] = {
    "next-token": ("text,fold", lambda split, i: word(split, i), ""),
    "classify": ("text,label,fold", lambda split, i: f"{word(split, i)},{'AB'[i % 2]}", ""),
    "translate": ("source,target,fold", lambda split, i: f"{word(split, i)},{word(split, i)}", ""),
}


@pytest.mark.parametrize("task", COLUMNS)
def test_a_column_says_the_split(tmp_path: Path, task: str) -> None:
    header, cells, _ = COLUMNS[task]
    rows = [f"{cells(split, i)},{split}" for split, n in (("train", 60), ("test", 7), ("valid", 9)) for i in range(n)]
    data = written(tmp_path / "data.csv", [header, *rows])
    made = prepared(data, task, {"data": {"part": "fold"}})
    assert {split: count(made, split) for split in made.splits()} == {"train": 60, "valid": 9, "test": 7}
    wrong = written(tmp_path / "wrong.csv", [header, *rows, f"{cells('train', 0)},hold"])
    with pytest.raises(DataError, match=r"wrong.csv, line 78, column 'fold': found 'hold'"):
        prepared(wrong, task, {"data": {"part": "fold"}})
    only = written(tmp_path / "only.csv", [header.removesuffix(",fold"), *(cells("test", i) for i in range(5))])
    both = {"train": data, "test": only}
    with pytest.raises(
        DataError, match=r"data.csv, line 62: already defines the test split, but the test split is given too"
    ):
        prepared(both, task, {"data": {"part": "fold"}})
    unmarked = written(tmp_path / "unmarked.csv", [header, *(row for row in rows if not row.endswith("test"))])
    made = prepared({"train": unmarked, "test": only}, task, {"data": {"part": "fold"}})
    assert {split: count(made, split) for split in made.splits()} == {"train": 60, "valid": 9, "test": 5}


def test_given_files_are_read_by_the_columns_of_the_training_file(tmp_path: Path) -> None:
    train = written(tmp_path / "a.csv", ["review,stars", *(f"{word('train', i)},{'AB'[i % 2]}" for i in range(60))])
    test = written(
        tmp_path / "b.csv", ["stars,text,review", *(f"A,{word('valid', i)},{word('test', i)}" for i in range(7))]
    )
    made = prepared({"train": train, "test": test}, "classify", {})
    assert count(made, "test") == 7
    first = made.prepared.sections["test"]
    assert made.inputs.decode(first.values("input")[:3]) == made.inputs.decode(made.inputs.encode(word("test", 0)))
    lacking = written(tmp_path / "c.csv", ["text,stars", "a,x"])
    with pytest.raises(UsageError, match=r"c.csv: .*review"):
        prepared({"train": train, "test": lacking}, "classify", {})


def test_a_split_is_given_once(tmp_path: Path) -> None:
    for split in ("train", "test"):
        text(tmp_path, split, 60)
    other = written(tmp_path.parent / "more.txt", ["abc"])
    with pytest.raises(UsageError, match=r"the test split is given twice, as .*test.txt and .*more.txt"):
        prepared(with_given(tmp_path, test=other), "next-token", {})
    with pytest.raises(UsageError, match=r"holds train and test, but is given as test"):
        prepared({"train": other, "test": tmp_path}, "next-token", {})
    shutil.copy(tmp_path / "train.txt", tmp_path / "train-2.txt")
    with pytest.raises(UsageError, match="several files are for the same split; name one set"):
        prepared(tmp_path, "next-token", {})


SMALL = {"threads": 1, "steps": 2, "batch_size": 8, "warmup": 1}


def test_a_saved_run_asks_for_its_files_again(tmp_path: Path) -> None:
    train, test = classes(tmp_path, "train", 60), classes(tmp_path, "test", 7)
    run = unrolled.train(train, "classify", "naive-bayes", out=tmp_path / "run", test=test, **SMALL)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["source"], config["given"]) == (str(train), {"test": str(test)})
    assert run.evaluate(split="test") == {key: run.result["test"][key] for key in run.evaluate(split="test")}
    with pytest.raises(
        DataError,
        match=rf'its test data is .*test.csv, which is opened only if you name it explicitly; .*test="{test}"',
    ):
        load(run.path, trained_on=train).evaluate(split="test")
    again = load(run.path, trained_on=train, test=test)
    assert again.evaluate(split="test") == run.evaluate(split="test")
    with pytest.raises(UsageError, match="was trained without separate valid data"):
        load(run.path, trained_on=train, test=test, valid=test).evaluate(split="test")
    test.write_text(test.read_text().replace("A", "B"))
    with pytest.raises(DataError, match="has changed since training"):
        load(run.path, trained_on=train, test=test).evaluate(split="test")


@pytest.mark.long
def test_the_command_line_takes_files(tmp_path: Path) -> None:
    train, valid, test = (classes(tmp_path, split, n) for split, n in (("train", 60), ("valid", 9), ("test", 7)))
    words = ["--models", "naive-bayes,prior", "--steps", "1", "--jobs", "1", "--task", "classify"]
    told = run_unrolled("compare", train, "--valid", valid, "--test", test, *words, "-o", tmp_path / "c", "--json")
    found = json.loads(told.stdout)
    assert f"--valid {valid} --test {test}" in found["command"]
    run = next(path for path in (tmp_path / "c").iterdir() if path.name.startswith("naive"))
    assert json.loads((run / "config.json").read_text())["given"] == {"valid": str(valid), "test": str(test)}
    refused = run_unrolled("evaluate", run, "--trained-on", train, code=3).stderr
    assert f"--trained-on {train} --valid {valid} --test {test}" in refused
    given = ["--trained-on", train, "--valid", valid, "--test", test]
    assert json.loads(run_unrolled("evaluate", run, *given, "--json").stdout)["tokens"] == 7
    opened = unrolled.load(run, trained_on=train, valid=valid, test=test)
    assert [opened.source_of(split) for split in (None, "test", "valid")] == [str(test), str(test), str(valid)]
    named = ["--trained-on", train.name, "--valid", valid.name, "--test", test.name]
    assert "test.csv: 7 examples" in run_unrolled("evaluate", run, *named, cwd=tmp_path).stdout
