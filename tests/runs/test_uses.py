"""What the model card and the report tell people to type can be typed, for every task."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

import unrolled
from tests.commands import run_unrolled
from tests.thorough import only
from unrolled.core import discover
from unrolled.data.builtin.shapes import picture
from unrolled.report.page import write_report
from unrolled.runs.run import Run
from unrolled.runs.uses import data_words, own_words

QUICK = {"steps": 2, "batch_size": 8, "warmup": 1, "threads": 1, "d_embedding": 8, "split": "60/20/20"}
UNITS = {"classify": "examples", "regress": "examples", "tag": "words", "denoise": "steps", "next-frame": "frames",
         "forecast": "numbers", "handwriting": "points", "recall": "queries", "word-vectors": "words",
         "next-sample": "samples", "sound-flow": "samples", "next-pixel": "pixels"}  # fmt: skip


def lines(path: Path, *text: str) -> Path:
    path.write_text("\n".join(text) + "\n")
    return path


def text_data(folder: Path) -> Path:
    return lines(folder / "text.txt", *["the cat sat on the mat"] * 60)


def documents_data(folder: Path) -> Path:
    return lines(folder / "documents.txt", *(f"The cat {i} sat. It was a cat.\n" for i in range(30)))


def names_data(folder: Path) -> Path:
    return lines(folder / "names.csv", "name,kind", *(f"n{'ab' * (i % 7)}{i},{'xy'[i % 2]}" for i in range(60)))


def rolls_data(folder: Path) -> Path:
    np.savez(folder / "rolls.npz", pieces=np.random.default_rng(0).random((20, 12, 88)) < 0.05)
    return folder / "rolls.npz"


def bits_data(folder: Path) -> Path:
    np.savez(folder / "bits.npz", x=(np.random.default_rng(0).random((12, 4, 8)) < 0.5).astype(np.float32))
    return folder / "bits.npz"


def texts_data(folder: Path) -> Path:
    rows = (f"{'good' if i % 2 else 'bad'} number {i},{'up' if i % 2 else 'down'}" for i in range(60))
    return lines(folder / "texts.csv", "text,label", *rows)


def series_data(folder: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(60, 5))
    rows = (",".join(f"{value:.3f}" for value in (*row, row.sum())) for row in x)
    return lines(folder / "series.csv", "a,b,c,d,e,level", *rows)


def words_data(folder: Path) -> Path:
    return lines(folder / "words.conll", *(line for i in range(60) for line in ("the D", f"cat{i} N", "sat V", "")))


def noisy_data(folder: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(40, 9, 1))
    np.savez(folder / "noisy.npz", x=x, y=x / 2)
    return folder / "noisy.npz"


def pairs_data(folder: Path) -> Path:
    return lines(folder / "pairs.tsv", "source\ttarget", *(f"{'ab' * (i % 4 + 1)}{i}\t{i}" for i in range(60)))


def pictures_data(folder: Path) -> Path:
    (folder / "pictures").mkdir()
    for i in range(40):
        Image.fromarray(picture(i).image).save(folder / "pictures" / f"{i}.png")
    rows = (f"{i}.png,{picture(i).caption}" for i in range(40))
    lines(folder / "pictures" / "captions.csv", "image,caption", *rows)
    return folder / "pictures"


def strokes_data(folder: Path) -> Path:
    rows = [{"strokes": [[[0, 0], [i % 3, 1], [2, i % 5]]], "text": "ab"[i % 2] * (i % 3 + 1)} for i in range(60)]
    return lines(folder / "strokes.jsonl", *map(json.dumps, rows))


def hours_data(folder: Path) -> Path:
    hours = (f"2024-01-{1 + i // 24:02} {i % 24:02}:00,{i % 6 + 0.1 * (i % 5)}" for i in range(120))
    return lines(folder / "hours.csv", "time,value", *hours)


def drawings_data(folder: Path) -> Path:
    rows = [{"strokes": [[[0, 0], [i % 3, 1], [2, i % 5]], [[i, 0], [1, 1]]]} for i in range(60)]
    return lines(folder / "drawings.jsonl", *map(json.dumps, rows))


def tones_data(folder: Path) -> Path:
    (folder / "tones").mkdir()
    for i in range(20):
        tone = 0.5 * np.sin(np.arange(60) * (0.2 + 0.02 * i))
        soundfile.write(folder / "tones" / f"{i}.wav", tone, 1000)
    return folder / "tones"


def grey_data(folder: Path) -> Path:
    Image.new("L", (6, 6), 90).save(folder / "IMAGE.png")  # as the card calls one
    np.savez(folder / "grey.npz", images=np.random.default_rng(0).integers(0, 256, (30, 6, 6), dtype=np.uint8))
    return folder / "grey.npz"


CASES: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "next-sample": ("next-sample", "gru", tones_data, {"model.d_state": 4}),
    "sound-flow": ("sound-flow", "gru", tones_data, {"model.d_state": 4, "flows": 1}),
    "next-pixel": ("next-pixel", "gru", grey_data, {"model.d_state": 4, "levels": 4}),
    "handwriting": ("handwriting", "gru", drawings_data, {"model.d_state": 4, "task.n_mixtures": 2}),
    "forecast": ("forecast", "gru", hours_data, {"model.d_state": 4, "task.horizon": 3}),
    "next-token": ("next-token", "gru", text_data, {"model.d_state": 4}),
    "masked-token": ("masked-token", "bert", documents_data, {"model.d_model": 8, "model.n_heads": 2}),
    "next-token of a class": ("next-token", "gru", names_data, {"data.column": "name", "data.condition": "kind"}),
    "next-frame": ("next-frame", "gru", rolls_data, {"model.d_state": 4}),
    "classify": ("classify", "dan", texts_data, {}),
    "regress": ("regress", "gru", series_data, {"model.d_state": 4, "layout": "wide", "target": "level"}),
    "tag": ("tag", "bigru", words_data, {"model.d_state": 4}),
    "denoise": ("denoise", "gru", noisy_data, {"model.d_state": 4}),
    "word-vectors": ("word-vectors", "word2vec", text_data, {"subsample": 0.0}),
    "recall": ("recall", "dense-hopfield", bits_data, {}),
    "translate": ("translate", "seq2seq", pairs_data, {"model.d_state": 4}),
    "caption": ("caption", "encdec", pictures_data, {"tokens": "word", "encoder.d_first": 4}),
    "recognise": ("recognise", "seq2seq", strokes_data, {"model.d_state": 4}),
}


def test_every_task_has_a_case() -> None:
    assert {case[0] for case in CASES.values()} == set(discover.tasks.names())


@pytest.fixture(params=only({"forecast", "next-token", "classify", "translate"}, CASES))
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, Path]:
    task, model, data, settings = CASES[request.param]
    monkeypatch.chdir(tmp_path)
    made = data(tmp_path)
    return unrolled.train(str(made), task=task, model=model, out="run", settings=QUICK | settings), made


def test_commands_of_the_card_and_the_report_run(case: tuple[Run, Path]) -> None:
    run, data = case
    card = (run.path / "README.md").read_text()
    told = [line.strip() for line in card.splitlines() if line.startswith("    unrolled ")]
    page = write_report([run.path]).read_text()
    can = run.result["uses"]
    assert can
    for use in can:  # the card and the report tell the same
        command = shlex.join(["unrolled", use["verb"], "run", *use["words"]])
        assert command in told
        assert command.replace("'", "&#39;") in page or command in page
    unit = UNITS.get(run.config.task, "tokens")
    assert f"evaluated on the same {unit}" in card
    for command in told:
        words = [str(data) if word == "NEW_DATA" else word for word in shlex.split(command)[1:]]
        done = run_unrolled(*words, *(["-o", "again"] if words[0] == "train" else []), cwd=Path.cwd())
        assert done.stdout
        if words[0] == "evaluate":
            assert re.search(rf"[\d,]+\s+{unit}\b", done.stdout)


def test_what_a_saved_config_says_may_be_anything() -> None:
    assert own_words(10**30) == f" --with {10**30}"
    assert shlex.split(data_words(["a b"])) == ["['a b']"]
