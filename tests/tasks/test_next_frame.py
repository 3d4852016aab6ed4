"""The next-frame task: its figures by brute force, its rolls and files from saved runs, the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from tests.data.test_midi import parse
from unrolled.core.errors import DataError, UsageError
from unrolled.data.sources.pianoroll import read_rolls
from unrolled.runs.run import Run

QUICK = {"steps": 150, "d_state": 32, "d_embedding": 16, "batch_size": 8, "lr": 0.02, "warmup": 2, "threads": 1}


def scale(n: int, seed: int) -> list[np.ndarray]:
    """Pieces that go up the keys, two held at a time, from anywhere: easy to learn."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        start, length = random.integers(20, 40), random.integers(4, 12)
        roll = np.zeros((length, 88), np.uint8)
        for t in range(length):
            roll[t, [start + t, start + t + 5]] = 1
        found.append(roll)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rolls")
    parts = {"train": scale(60, 0), "valid": scale(12, 1), "test": scale(12, 2)}
    np.savez(folder / "scales.npz", **{f"{part}_{i}": r for part, found in parts.items() for i, r in enumerate(found)})
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return unrolled.train(folder / "scales.npz", task="next-frame", model="gru", out=folder / "run", settings=QUICK)


def test_figures_are_totals_over_frames(run: Run, folder: Path) -> None:
    total = first = n = 0.0
    pieces = read_rolls(folder / "scales.npz")["test"]
    for roll in pieces:
        x = torch.cat([torch.zeros(1, 88), torch.from_numpy(roll[:-1]).float()])[None]
        with torch.no_grad():
            y = run.model(x)[0][0]
        nats = torch.nn.functional.binary_cross_entropy_with_logits(y, torch.from_numpy(roll).float(), reduction="none")
        total, first, n = total + float(nats.sum()), first + float(nats[0].sum()), n + len(roll)
    figures = run.evaluate()
    assert figures["tokens"] == n
    assert figures["nats"] == pytest.approx(total / n, rel=1e-4)
    assert figures["nats_after_first"] == pytest.approx((total - first) / (n - len(pieces)), rel=1e-4)
    assert run.result["test"] == pytest.approx(figures, rel=1e-5)
    scored = run.score(pieces)
    assert sum(line["logp"] for line in scored) == pytest.approx(-total, rel=1e-4)
    assert [line["tokens"] for line in scored] == [len(roll) for roll in pieces]


def test_it_learns_more_than_its_baselines(run: Run) -> None:
    baselines = run.result["baselines"]
    assert set(baselines) == {"key frequencies", "key by key"}
    assert run.result["test"]["nats"] < min(parts["test"]["nats"] for parts in baselines.values())
    assert len((run.path / "predictions.jsonl").read_text().splitlines()) == 12


def test_a_saved_run_is_the_same_run(run: Run) -> None:
    again = unrolled.load(run.path, trained_on=run.trained_on)
    assert again.evaluate()["nats"] == pytest.approx(run.result["test"]["nats"], rel=1e-6)
    assert again.generate(n=2, max_tokens=5)[0]["roll"].tolist() == run.generate(n=2, max_tokens=5)[0]["roll"].tolist()


def test_generation_goes_on_from_a_prompt(run: Run, folder: Path) -> None:
    prompt = read_rolls(folder / "scales.npz")["train"][0][:3]
    made = run.generate(prompt, n=3, max_tokens=6)
    for item in made:
        assert item["given"] == 3 and item["roll"].shape == (9, 88)
        np.testing.assert_array_equal(item["roll"][:3], prompt)
        wanted = run.score([item["roll"]])[0]["logp"] - run.score([prompt])[0]["logp"]
        assert item["logp"] == pytest.approx(wanted, rel=1e-4)
    assert [item["logp"] for item in made] == sorted((item["logp"] for item in made), reverse=True)
    named = run.generate(f"{folder / 'scales.npz'}:3", n=3, max_tokens=6)
    assert [item["roll"].tolist() for item in named] == [item["roll"].tolist() for item in made]
    assert (run.generate(temperature=0)[0]["roll"] == run.generate(sample=False, n=2)[1]["roll"]).all()


def test_what_is_written_is_a_roll_and_a_midi_file(run: Run, tmp_path: Path) -> None:
    made = run.generate(n=2, max_tokens=8)
    contents = run.task.files_of(made, tmp_path / "piece")
    files = list(contents)
    for file, content in contents.items():
        file.write_bytes(content)
    assert [file.name for file in files] == ["piece.npz", "piece-0.mid", "piece-1.mid"]
    for i, roll in enumerate(read_rolls(files[0])["all"]):
        np.testing.assert_array_equal(roll, made[i]["roll"])
        notes, length, _ = parse(files[i + 1].read_bytes())
        assert length == pytest.approx(8 * 0.5)
        assert {number - 21 for _, _, number in notes} == set(np.flatnonzero(roll.any(axis=0)).tolist())
    assert [file.name for file in run.task.files_of(made[:1], tmp_path / "one.mid")] == ["one.npz", "one.mid"]


def test_predictions_name_keys(run: Run) -> None:
    line = run.predict([np.eye(88, dtype=np.uint8)[39:41]])[0]
    assert line["frames"] == 2
    assert [each["p"] for each in line["likely"]] == sorted((each["p"] for each in line["likely"]), reverse=True)
    assert run.task.name(0) == "A0" and run.task.name(39) == "C4" and run.task.name(87) == "C8"


@pytest.mark.parametrize("model", ["ar", "key-chain", "elman"])
def test_other_models_and_widths(model: str, tmp_path: Path) -> None:
    rolls = [roll[:, 20:40] for roll in scale(40, 3)]
    settings = {"steps": 3, "batch_size": 4, "input": "one-hot", "split": "80/20"}
    made = unrolled.train(rolls, task="next-frame", model=model, out=tmp_path / "run", settings=settings)
    assert made.task.width == 20
    item = made.generate(max_tokens=4)[0]
    assert item["roll"].shape == (4, 20)
    assert [file.suffix for file in made.task.files_of([item], tmp_path / "x")] == [".npz"]
    assert made.evaluate(rolls)["tokens"] == sum(map(len, rolls))
    if model == "key-chain":
        assert made.result["valid"]["nats"] == made.result["baselines"]["key by key"]["valid"]["nats"]


def test_ahead_predicts_a_later_frame(tmp_path: Path) -> None:
    settings = QUICK | {"ahead": 3, "split": "80/20", "steps": 3}
    made = unrolled.train(scale(40, 3), task="next-frame", out=tmp_path / "run", settings=settings)
    counted = made.evaluate(scale(5, 4))["tokens"]
    assert counted == sum(max(len(roll) - 2, 0) for roll in scale(5, 4))


def test_what_does_not_fit_is_said(run: Run, folder: Path, tmp_path: Path) -> None:
    source = folder / "scales.npz"
    with pytest.raises(UsageError, match="tokens is a setting for text"):
        unrolled.train(source, task="next-frame", out=tmp_path / "a", settings={"tokens": "word"})
    with pytest.raises(UsageError, match="it reads tokens, but the input of the task is numbers"):
        unrolled.train(source, task="next-frame", model="ngram", out=tmp_path / "b")
    with pytest.raises(UsageError, match="it reads numbers, but the input of the task is tokens"):
        unrolled.train("builtin:python-docs", model="key-chain", out=tmp_path / "c")
    with pytest.raises(
        UsageError, match=r"top_k=.* does not apply to the task 'next-frame'; generate takes n=.*, max_tokens"
    ):
        run.generate(top_k=3)
    with pytest.raises(DataError, match="have width 20, expected 88"):
        run.evaluate([np.zeros((3, 20))])
    with pytest.raises(DataError, match="the prompt"):
        run.generate(np.full((3, 88), 7))


def test_the_command_line(folder: Path) -> None:
    words = ["--task", "next-frame", "--model", "lstm", "--steps", 5, "--set", "d_state=8", "--threads", 1]
    made = run_unrolled("train", "scales.npz", *words, "-o", "cli", "--json", cwd=folder)
    assert json.loads(made.stdout)["steps"] == 5
    assert "nats after first" in run_unrolled("evaluate", "cli", "--trained-on", "scales.npz", cwd=folder).stdout
    out = run_unrolled("generate", "cli", "--max-tokens", 6, "--out", "roll", "--prompt", "scales.npz:2", cwd=folder)
    assert out.stdout.split() == ["roll.npz", "roll.mid"]
    assert read_rolls(folder / "roll.npz")["all"][0].shape == (8, 88)
    lines = run_unrolled("predict", "cli", "roll.npz", cwd=folder).stdout.splitlines()
    assert json.loads(lines[0])["frames"] == 8
    assert "--beam" in run_unrolled("generate", "cli", "--out", "x", "--beam", 3, code=2, cwd=folder).stderr
