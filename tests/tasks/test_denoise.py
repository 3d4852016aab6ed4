"""The denoise task: figures by hand, doing nothing as the baseline, and live exactly what the whole series gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from tests.commands import run_unrolled
from unrolled.cli.live import lines_of
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.guess import guess_task
from unrolled.runs.run import Run

QUICK = {"steps": 60, "d_state": 16, "d_embedding": 8, "batch_size": 16, "lr": 0.02, "warmup": 2, "threads": 1}
SINES = "builtin:sinusoids,length=60,examples=120"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return unrolled.train(
        SINES, task="denoise", model="gru", out=tmp_path_factory.mktemp("sines") / "run", settings=QUICK
    )


def test_figures_by_hand(run: Run) -> None:
    lines = list(run.directory.read_lines("predictions.jsonl"))
    noisy, clean, said = (np.array([line[key] for line in lines]) for key in ("input", "target", "prediction"))
    figures = run.evaluate(split="test")
    after, before = np.square(said - clean), np.square(noisy - clean)  # [n, T, 1]
    assert figures["tokens"] == clean.size
    assert figures["snr_gain"] == pytest.approx(10 * np.log10(before.sum() / after.sum()), rel=1e-4)
    assert figures["mse"] == pytest.approx(after.mean() / run.task.answers.std[0] ** 2, rel=1e-4)
    assert [line["error"] for line in lines] == pytest.approx(
        after.mean((1, 2)) / run.task.answers.std[0] ** 2, rel=1e-3
    )
    assert run.result["test"] == pytest.approx(figures, rel=1e-5)
    units = run.directory.read_tensors("units.safetensors")
    assert float(torch.div(*units["test.mse"].sum(0))) == pytest.approx(figures["mse"], rel=1e-6)
    assert units["test.mse"][:, 1].tolist() == [60.0] * len(lines)


def test_it_beats_doing_nothing(run: Run) -> None:
    nothing = run.result["baselines"]["left as it is"]["test"]
    assert nothing["snr_gain"] == pytest.approx(0.0, abs=1e-9)
    assert run.result["test"]["mse"] < 0.7 * nothing["mse"]
    assert run.result["test"]["snr_gain"] > 1.5


def test_clean_series_are_enough(tmp_path: Path) -> None:
    """Noise is put on them: fresh ones in training, the same in every figure; a new series is taken as it is."""
    t = np.arange(50)
    x = np.stack([np.sin(t / (2 + i % 7) + i) for i in range(80)]).astype(np.float32)[..., None]  # [80, 50, 1]
    np.savez(tmp_path / "clean.npz", x=x)
    settings = QUICK | {"noise": "pink", "snr": 6.0, "steps": 20, "split": "60/20/20"}
    made = unrolled.train(tmp_path / "clean.npz", task="denoise", model="gru", out=tmp_path / "run", settings=settings)
    line = next(iter(made.directory.read_lines("predictions.jsonl")))
    assert min(np.abs(x - np.array(line["target"])).max((1, 2))) < 1e-4
    noise = np.array(line["input"]) - np.array(line["target"])
    assert 0.05 < np.square(noise).mean() / np.array(line["target"]).var() < 1.0
    assert made.result["baselines"]["left as it is"]["test"]["snr_gain"] == pytest.approx(0.0, abs=1e-9)
    again = unrolled.load(made.path, trained_on=tmp_path / "clean.npz")
    assert again.evaluate(split="test") == pytest.approx(made.result["test"], rel=1e-6)
    assert again.evaluate(tmp_path / "clean.npz")["tokens"] == 80 * 50
    [some] = again.task.read(str(tmp_path / "clean.npz"))
    assert np.array_equal(some[0].value, x[0])
    assert guess_task(tmp_path / "clean.npz", {"noise": "white"})[0] == "denoise"


@pytest.mark.parametrize(("source", "task", "says"), [
    (SINES, "denoise", "already has noise"),
    ("builtin:digits", "classify", "there is no setting 'noise'"),
])  # fmt: skip
def test_noise_where_it_does_not_belong_is_refused(tmp_path: Path, source: str, task: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        unrolled.train(source, task=task, model="gru", out=tmp_path / "run", settings={"noise": "white"})


def test_a_saved_run_is_the_same_run(run: Run) -> None:
    again = unrolled.load(run.path)
    assert again.evaluate(split="test") == pytest.approx(run.result["test"], rel=1e-6)
    assert again.evaluate(SINES)["tokens"] == 120 * 60
    series = next(iter(run.directory.read_lines("predictions.jsonl")))
    assert np.allclose(again.predict([series["input"]])[0]["prediction"], series["prediction"], atol=1e-4)


@pytest.mark.parametrize("model", ["gru", "tcn", "transformer"])
def test_live_is_what_the_whole_gives(run: Run, tmp_path: Path, model: str) -> None:
    made = run
    if model != "gru":
        small = {key: value for key, value in QUICK.items() if key != "d_state"} | {"steps": 2, "ends.dropout": 0.3}
        made = unrolled.train(SINES, task="denoise", model=model, out=tmp_path / "run", settings=small)
    series = np.random.default_rng(0).normal(size=20)
    whole = np.array(made.predict([series])[0]["prediction"])[:, 0]
    lines = [f"{value:.9f}" for value in series]
    live = [float(line) for line in lines_of(made.session(), lines)]
    assert np.allclose(live, whole, atol=2e-5)
    parts = list(lines_of(made.session(), [*lines[:5], "", *lines[:5]]))
    assert parts[5] == "" and parts[:5] == parts[6:]


def test_live_answers_before_it_reads_on(run: Run) -> None:
    asked: list[int] = []

    def lines():  # type: ignore[no-untyped-def]
        for number in range(3):
            asked.append(number)
            yield f"{number}.0"

    answers = lines_of(run.session(), lines())
    next(answers)
    assert asked == [0]
    with pytest.raises(DataError, match="line 2: found 'x'"):
        list(lines_of(run.session(), ["1", "x"]))
    with pytest.raises(DataError, match="line 1: found 2 numbers, expected 1"):
        list(lines_of(run.session(), ["1, 2"]))


def test_a_model_that_looks_ahead_is_not_live(tmp_path: Path) -> None:
    made = unrolled.train(SINES, task="denoise", model="bigru", out=tmp_path / "run", settings=QUICK | {"steps": 2})
    with pytest.raises(UsageError, match="cannot run live"):
        made.session()


def test_a_delay_is_worth_its_wait(tmp_path: Path, run: Run) -> None:
    """The model that waits sees more and errs less; live, each line is answered so many ticks later, none is lost."""
    made = unrolled.train(SINES, task="denoise", model="gru", out=tmp_path / "run", settings=QUICK | {"delay": 4})
    assert made.result["test"]["snr_gain"] > run.result["test"]["snr_gain"] + 0.5
    again = unrolled.load(made.path)
    series = np.random.default_rng(0).normal(size=9)
    whole = np.array(again.predict([series])[0]["prediction"])[:, 0]
    lines, asked = [f"{value:.9f}" for value in series], []
    answers = lines_of(again.session(), (asked.append(line) or line for line in lines))
    first = next(answers)
    assert len(asked) == 5
    assert np.allclose([float(first), *map(float, answers)], whole, atol=2e-5)
    parts = list(lines_of(again.session(), [*lines[:2], "", *lines, "", ""]))
    assert (
        parts[2] == ""
        and parts[12:] == ["", ""]
        and np.allclose([float(line) for line in parts[3:12]], whole, atol=2e-5)
    )
    assert np.allclose(again.predict([series, series[:2]])[1]["prediction"], np.array([parts[:2]], float).T, atol=2e-5)


def test_a_model_that_looks_ahead_has_no_delay(tmp_path: Path) -> None:
    settings = QUICK | {"steps": 2}
    plain, late = (
        unrolled.train(
            SINES, task="denoise", model="bigru", out=tmp_path / str(delay), settings=settings | {"delay": delay}
        )
        for delay in (0, 4)
    )
    assert plain.result["test"] == late.result["test"]


def test_live_on_the_command_line(run: Run) -> None:
    done = run_unrolled("predict", run.path, "-", "--live", stdin="0.5\n-0.25\n\n0.5\n")
    wanted = list(lines_of(run.session(), ["0.5", "-0.25", "", "0.5"]))
    assert done.stdout.splitlines() == wanted


def test_doing_nothing_is_a_model_like_others(tmp_path: Path) -> None:
    made = unrolled.train(SINES, task="denoise", model="identity", out=tmp_path / "run")
    assert made.predict([[1.0, -2.0]])[0]["prediction"] == [[1.0], [-2.0]]
    assert made.evaluate(split="test")["snr_gain"] == pytest.approx(0.0, abs=1e-9)


def test_fewer_channels_out_than_in(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 12, 2)).astype(np.float32)
    made = unrolled.train(
        (x, x[..., :1] * 3), task="denoise", model="memoryless", out=tmp_path / "run",
        settings={"steps": 2, "batch_size": 4, "threads": 1},
    )  # fmt: skip
    assert "snr_gain" not in made.result["test"]
    assert np.shape(made.predict([x[0]])[0]["prediction"]) == (12, 1)
    assert len(next(lines_of(made.session(), ["1 2"])).split()) == 1


def test_pairs_of_series_are_guessed() -> None:
    assert guess_task(SINES, {})[0] == "denoise"


def test_an_encoder_of_images_has_no_output_for_each_position(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'cnn' does not fit .*: it predicts once for a whole sequence or for each"):
        unrolled.train(SINES, task="denoise", model="cnn", out=tmp_path / "run", settings={"steps": 1, "threads": 1})
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match=r"'cnn' does not fit the task 'denoise': .*bilstm"):
        unrolled.compare(SINES, "denoise", out=tmp_path / "out", settings={"models": "cnn", "steps": 1})
