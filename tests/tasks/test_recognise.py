"""The recognise task: strokes and sounds to texts, by attention and by CTC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.core.errors import DataError, UsageError
from unrolled.data.pairs_prepare import examples_of_pairs
from unrolled.objectives.ctc import frames_needed
from unrolled.pictures.kinds import Heatmap
from unrolled.runs.run import Run, load
from unrolled.tasks import _frames

QUICK = {"steps": 4, "batch_size": 16, "warmup": 1, "threads": 1, "lr": 0.01, "d_embedding": 8, "split": "60/20/20"}
CTC = {"objective": "ctc", "model.d_state": 8}
WAYS = {"u": (0, -1), "d": (0, 1), "l": (-1, 0), "r": (1, 0)}


def drawings(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Pen strokes of two or three letters, each two steps in one of four directions with the pen lifted between."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        word = "".join(random.choice(list(WAYS), random.integers(2, 4)))
        at, strokes = np.zeros(2), []
        for letter in word:
            steps = at + np.outer([0, 1, 2], WAYS[letter]) + random.normal(0, 0.05, (3, 2))
            strokes.append(steps.tolist())
            at = steps[-1]
        rows.append({"strokes": strokes, "text": word})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recognise")
    (folder / "pen.jsonl").write_text("\n".join(map(json.dumps, drawings(160))))
    return folder


@pytest.fixture(scope="module")
def by_frames(folder: Path) -> Run:
    settings = QUICK | CTC | {"steps": 90, "model.d_state": 24}
    return unrolled.train(folder / "pen.jsonl", task="recognise", model="bigru", out=folder / "ctc", settings=settings)


def test_ctc_learns_to_read_a_pen(by_frames: Run) -> None:
    test = by_frames.result["test"]
    assert set(test) >= {"nats", "character_error_rate", "word_error_rate", "exact_match"}
    assert test["character_error_rate"] < 0.3
    assert by_frames.result["baselines"] == {}


def test_a_saved_run_reads_other_strokes(by_frames: Run, folder: Path) -> None:
    saved = load(by_frames.path)
    rows = drawings(30, seed=1)
    (folder / "more.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = run_unrolled("predict", str(by_frames.path), str(folder / "more.jsonl"), "--json")
    assert told.returncode == 0, told.stderr
    found = [json.loads(line)["prediction"] for line in told.stdout.splitlines()]
    wanted = [line["prediction"] for line in saved.predict([row["strokes"] for row in rows])]
    assert found == wanted
    assert sum(a == row["text"] for a, row in zip(found, rows, strict=True)) > 12
    (best,) = saved.predict([rows[0]["strokes"]], n=3)
    assert len(best["candidates"]) == 3
    assert best["candidates"][0]["logp"] >= best["candidates"][1]["logp"]
    with pytest.raises(
        UsageError, match=r"length_penalty=.* does not apply to the task 'recognise'; predict takes n=.* and beam="
    ):
        saved.predict([rows[0]["strokes"]], length_penalty=0.5, beam=2)
    figures = saved.task.measure_on(folder / "more.jsonl")(saved.model)
    assert figures["exact_match"] == pytest.approx(sum(a == row["text"] for a, row in zip(found, rows)) / 30)


def test_pictures_and_predictions(by_frames: Run, folder: Path) -> None:
    lines = [json.loads(line) for line in (by_frames.path / "predictions.jsonl").read_text().splitlines()]
    assert set(lines[0]) >= {"source", "vectors", "target", "prediction", "right", "nats_per_token"}
    batch, names = by_frames.task.example(by_frames.task.input_of(lines[0]))
    assert batch.x.shape == (1, len(lines[0]["vectors"]), 3)
    assert len(names) == len(lines[0]["vectors"])
    by_frames.task.prepare(folder / "pen.jsonl")
    picture = by_frames.task.pictures(by_frames.model, "test")["alignment"]
    assert isinstance(picture, Heatmap)
    assert picture.rows[0] == "(blank)"


def test_questions_are_asked_of_frames(by_frames: Run) -> None:
    assert by_frames.inspect("saliency").numbers
    assert by_frames.inspect("gates").numbers


def test_attention_stands_beside_its_baselines(folder: Path, tmp_path: Path) -> None:
    settings = QUICK | {"model.d_state": 8}
    run = unrolled.train(
        folder / "pen.jsonl", task="recognise", model="seq2seq", out=tmp_path / "run", settings=settings
    )
    assert set(run.result["baselines"]) == {"most frequent text", "text of the nearest"}
    run.task.prepare(folder / "pen.jsonl")
    assert isinstance(run.task.pictures(run.model, "test")["alignment"], Heatmap)
    (line,) = run.predict([drawings(1)[0]["strokes"]], beam=2)
    assert isinstance(line["prediction"], str)


@pytest.mark.parametrize(("settings", "model", "says"), [
    ({"objective": "ctc"}, "seq2seq", "needs encoder or causal models"),
    ({}, "bigru", "needs conditional models"),
    ({"objective": "ctc", "model.channels": 1}, "cnn", "needs a prediction at each position"),
])  # fmt: skip
def test_models_that_do_not_fit(folder: Path, tmp_path: Path, settings: dict[str, Any], model: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        unrolled.train(
            folder / "pen.jsonl", task="recognise", model=model, out=tmp_path / "run", settings=QUICK | settings
        )


def test_texts_that_are_too_long_for_their_frames_are_told_before_training(tmp_path: Path) -> None:
    rows = drawings(40)
    rows[7]["text"] = "abcdefghijklmnop"
    with pytest.raises(
        DataError, match=r"example 8 of the data .* 6 frames are too few for 16 tokens with CTC, which needs 16"
    ):
        unrolled.train(rows, task="recognise", model="bigru", out=tmp_path / "run", settings=QUICK | CTC)


def test_frames_are_counted_as_the_loss_does() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        targets = [random.integers(4, 6, random.integers(0, 5)).astype(np.int32) for _ in range(3)]
        padded = torch.zeros(3, 5, dtype=torch.long)
        for row, target in zip(padded, targets, strict=True):
            row[: len(target)] = torch.from_numpy(target.astype(np.int64))
        needed = frames_needed(padded).tolist()
        enough = examples_of_pairs([np.zeros((max(n, 1), 2), np.float32) for n in needed], targets)
        _frames.check_frames(enough, "train")
        if max(needed) > 1:
            i = int(np.argmax(needed))
            short = examples_of_pairs(
                [np.zeros((max(n, 1) - (k == i), 2), np.float32) for k, n in enumerate(needed)], targets
            )
            with pytest.raises(DataError, match=f"example {i + 1} of"):
                _frames.check_frames(short, "train")


def test_sound(tmp_path: Path) -> None:
    random, rate = np.random.default_rng(0), 4000
    table = ["file,text"]
    for i in range(40):
        low = i % 2
        t = np.arange(rate // 2) / rate
        wave = 0.3 * np.sin(2 * np.pi * (300 if low else 900) * t) + 0.01 * random.standard_normal(len(t))
        soundfile.write(tmp_path / f"{i}.wav", wave, rate)
        table.append(f"{i}.wav,{'low' if low else 'high'}")
    (tmp_path / "transcripts.csv").write_text("\n".join(table))
    settings = QUICK | CTC | {"steps": 40, "bands": 12}
    run = unrolled.train(tmp_path, task="recognise", model="lstm", out=tmp_path / "run", settings=settings)
    assert run.result["test"]["character_error_rate"] < 1
    lines = run.predict([str(tmp_path / "0.wav"), str(tmp_path / "1.wav")])
    assert lines[0]["source"].endswith("0.wav")
    assert lines[0]["prediction"] != lines[1]["prediction"]
