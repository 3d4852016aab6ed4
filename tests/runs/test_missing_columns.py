"""A column that a run reads and other data lacks: the data does not fit the run, whichever task and form it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.run import Run, load
from unrolled.training.api import train

QUICK = {"threads": 1, "steps": 1, "batch_size": 8, "warmup": 1, "d_embedding": 4, "model.d_state": 4}
N = 24
NUMBERS = np.random.default_rng(0).normal(size=(N, 4))
SIDES = ["low", "high"] * (N // 2)
TEXTS = [f"{side} tide number {i}" for i, side in enumerate(SIDES)]
PEN = [[[[float(t), float(t * i % 3)] for t in range(9)]] for i in range(N)]
LONG = [
    {"case": f"c{i}", "tick": t, "side": SIDES[i], "level": NUMBERS[i, t], "true": NUMBERS[i, t] / 2}
    for i in range(N) for t in range(4)
]  # fmt: skip
TEXT_ROWS = [{"body": text, "verdict": side} for text, side in zip(TEXTS, SIDES)]
READ = {"task.reading.column": "body", "task.reading.target": "verdict"}
OF_LONG = {"task.reading.layout": "long", "task.reading.id": "case", "task.reading.time": "tick"}

CASES: dict[str, tuple[str, str, list[dict[str, Any]], dict[str, Any], dict[str, str]]] = {
    # task, model, rows, settings, and the columns that are needed: to predict, or only to evaluate
    "texts": ("next-token", "ngram", TEXT_ROWS, {"column": "body"}, {"body": "predict"}),
    "condition": ("next-token", "gru", TEXT_ROWS, QUICK | {"column": "body", "data.condition": "verdict"},
                  {"body": "predict", "verdict": "evaluate"}),
    "classes": ("classify", "naive-bayes", TEXT_ROWS, READ, {"body": "predict", "verdict": "evaluate"}),
    "series": ("classify", "prior", LONG, OF_LONG | {"task.reading.column": "level", "task.reading.target": "side"},
               {"case": "predict", "tick": "predict", "level": "predict", "side": "evaluate"}),
    "numbers": ("regress", "prior", [{"body": text, "size": i} for i, text in enumerate(TEXTS)],
                {"task.reading.column": "body", "task.reading.target": "size"},
                {"body": "predict", "size": "evaluate"}),
    "tags": ("tag", "tag-counts", [{"body": text, "marks": "A B A B"} for text in TEXTS],
             {"task.reading.column": "body", "task.reading.target": "marks"}, {"body": "predict", "marks": "evaluate"}),
    "noise": ("denoise", "identity", LONG, OF_LONG | {"task.reading.column": "level", "task.reading.target": "true"},
              {"level": "predict", "true": "evaluate"}),
    "pairs": ("translate", "copy-source", [{"de": text, "en": side, "no": i} for i, (text, side) in
              enumerate(zip(TEXTS, SIDES))], {"source_column": "de", "target_column": "en"},
              {"de": "predict", "en": "evaluate"}),
    "captions": ("caption", "nearest-target", [{"shot": f"{i}.png", "told": side, "no": i} for i, side in
                 enumerate(SIDES)], {"source_column": "shot", "target_column": "told", "size": 4},
                 {"shot": "predict", "told": "evaluate"}),
    "strokes": ("recognise", "bigru", [{"pen": pen, "word": side, "no": i} for i, (pen, side) in
                enumerate(zip(PEN, SIDES))], QUICK | {"objective": "ctc", "source_column": "pen",
                "target_column": "word"}, {"pen": "predict", "word": "evaluate"}),
}  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def renamed(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    return [{("other" if name == column else name): value for name, value in row.items()} for row in rows]


def verdict(run: Run, verb: str, data: Path) -> list[str]:
    """What is said to the data by both ways in which it can be given."""
    ways = [lambda: run.evaluate(data)] if verb == "evaluate" else [lambda: run.predict(data)]
    ways += [] if verb == "evaluate" else [lambda: list(run.examples(str(data)))]
    found = []
    for way in ways:
        with pytest.raises(DataError) as told:
            way()
        found.append(str(told.value))
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_column_that_the_data_lacks(name: str, tmp_path: Path) -> None:
    task, model, rows, settings, needed = CASES[name]
    for i in range(N) if name == "captions" else ():
        Image.new("L", (4, 4), 9 * i).save(tmp_path / f"{i}.png")
    data = write(tmp_path / "data.jsonl", rows)
    run = load(train(data, task, model, out=tmp_path / "run", settings={"split": "60/20/20"} | settings).path)
    for column, verb in needed.items():
        lacking = write(tmp_path / f"no-{column}.jsonl", renamed(rows, column))
        for told in verdict(run, verb, lacking):
            assert told.startswith(f"{lacking}: there is no column '{column}', which the run reads; "), told
            assert "other" in told
        again = load(run.path, trained_on=lacking)
        with pytest.raises(DataError, match=f"there is no column '{column}', which the run reads"):
            again.evaluate()
        with pytest.raises(UsageError, match=f"there is no column '{column}' for "):
            train(lacking, task, model, out=tmp_path / "not", settings=settings)


def test_an_array_that_a_file_lacks(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", level=NUMBERS, side=np.array(SIDES))
    np.savez(tmp_path / "b.npz", height=NUMBERS, side=np.array(SIDES))
    asked = {"column": "level", "target": "side", "split": "60/20/20"}
    run = load(train(tmp_path / "a.npz", "classify", "prior", out=tmp_path / "run", settings=asked).path)
    for told in verdict(run, "predict", tmp_path / "b.npz"):
        assert told.startswith(f"{tmp_path / 'b.npz'}: there is no array 'level', which the run reads; "), told
    with pytest.raises(UsageError, match="there is no array 'level' for "):
        train(tmp_path / "b.npz", "classify", "prior", out=tmp_path / "not", settings=asked)


def test_commands_end_with_the_code_of_bad_data(tmp_path: Path) -> None:
    task, model, _, settings, _ = CASES["series"]
    table = tmp_path / "long.csv"
    table.write_text("case,tick,side,level\n" + "".join(
        f"{row['case']},{row['tick']},{row['side']},{row['level']}\n" for row in LONG))  # fmt: skip
    run = train(table, task, model, out=tmp_path / "run", settings=settings | {"split": "60/20/20"}).path
    (tmp_path / "new.csv").write_text(table.read_text().replace("case", "other", 1))
    for words in (["predict", run, "new.csv"], ["predict", run, "new.csv", "-o", "out.csv"],
                  ["evaluate", run, "--trained-on", "new.csv"]):  # fmt: skip
        err = run_unrolled(*words, code=3, cwd=tmp_path).stderr
        assert err.startswith("unrolled: new.csv: there is no column 'case', which the run reads; "), words
    run_unrolled("train", "new.csv", "--task", "classify", "--model", "prior", "--id", "case",
                 "--column", "level", "--target", "side", "-o", "no", code=2, cwd=tmp_path)  # fmt: skip


def test_settings_of_a_run_that_the_data_cannot_have(tmp_path: Path) -> None:
    """They were not typed: there is no option to leave out."""
    data = write(tmp_path / "rows.jsonl", TEXT_ROWS)
    run = load(train(data, "next-token", "ngram", out=tmp_path / "run", settings={"column": "body"}).path)
    (tmp_path / "plain.txt").write_text("\n".join(TEXTS))
    with pytest.raises(
        DataError, match=r"plain text has no columns.*run reads data with the settings that it was train"
    ):
        run.evaluate(tmp_path / "plain.txt")
    for wrong in ("", "https://example.org/rows.jsonl"):
        with pytest.raises(UsageError):
            run.evaluate(wrong)
    with pytest.raises(UsageError, match="list"):
        unrolled.load(run.path).predict(3)
