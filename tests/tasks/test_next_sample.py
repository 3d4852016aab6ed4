"""The next-sample task: figures by brute force, generated pitch and loudness, conditions, files, what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import soundfile

import unrolled
from tests.commands import run_unrolled
from tests.small import DATA, QUICK
from unrolled.core.errors import DataError, UsageError
from unrolled.data.builtin import tones
from unrolled.data.files.pitch import pitch_of
from unrolled.report.page import write_report
from unrolled.runs.guess import guess_task
from unrolled.runs.run import Run

SMALL = {"d_embedding": 16, "d_model": 16, "d_skip": 32, "n_dilations": 7, "n_stacks": 1, "warmup": 10, "threads": 1}
TINY = {"d_embedding": 4, "d_model": 4, "d_skip": 4, "n_dilations": 3, "n_stacks": 1}
RATE, HERTZ = 2000, {"A": 110.0, "C#": 138.59, "F": 174.61, "G#": 207.65}


def settings(**more: object) -> dict[str, object]:
    return {"steps": 200, "lr": 0.01, "batch_size": 8, "chunk": 256, "evaluate_tokens": 2000, **SMALL, **more}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small WaveNet of tones of known pitch."""
    out = tmp_path_factory.mktemp("tones") / "run"
    data = f"builtin:tones,kind=tone,examples=240,seconds=0.12,rate={RATE}"
    return unrolled.train(data, "next-sample", "wavenet", out, settings=settings(condition="note"))


def test_what_is_generated_has_the_pitch_that_was_asked_for(run: Run) -> None:
    off = []
    for note, hertz in HERTZ.items():
        made = run.generate(condition=f"note={note}", n=2, seconds=0.1, temperature=0.6)
        off += [abs(pitch_of(each["samples"], RATE) / hertz - 1) for each in made]
    assert np.mean(np.array(off) < 0.02) >= 0.8, off
    assert np.median(off) < 0.01


def test_what_is_generated_gets_quieter_as_the_data_does(run: Run) -> None:
    made = np.stack([run.generate(condition="A", seconds=0.12, seed=seed)[0]["samples"] for seed in range(3)])
    loud = np.sqrt((made.reshape(3, 4, 60) ** 2).mean(axis=(0, 2)))  # [4] quarters
    wanted = np.sqrt((tones.envelope(240, RATE).reshape(4, 60) ** 2).mean(axis=1))
    assert loud[0] > 2 * loud[3]
    np.testing.assert_allclose(loud / loud.max(), wanted / wanted.max(), atol=0.3)


def test_it_is_better_than_its_baselines(run: Run) -> None:
    baselines = run.result["baselines"]
    assert set(baselines) == {"linear prediction", "level frequencies", "bigram", "trigram"}
    assert run.result["test"]["nats"] < min(parts["test"]["nats"] for parts in baselines.values())
    assert run.result["test"]["bits_per_sample"] == pytest.approx(run.result["test"]["nats"] / math.log(2))
    assert run.result["test"]["receptive_field"] == 129  # 1 + (2 - 1) + (1 + 2 + .. + 64)
    assert run.result["test"]["receptive_field_ms"] == 64.5


def test_scores_are_the_sums_of_the_figures(run: Run) -> None:
    clips = [tones.clip(i, tones.Settings(kind="tone", examples=240, seconds=0.12, rate=RATE)) for i in range(2)]
    found = [run.score([each.input], condition=each.target["note"])[0] for each in clips]
    assert [line["tokens"] for line in found] == [240, 240]
    for each, line in zip(clips, found):
        ids = run.task.codec.encode(each.input)
        assert line["logp"] == pytest.approx(stepped(run, ids, each.target["note"]), rel=1e-4)
    other = run.score([clips[0].input], condition="D" if clips[0].target["note"] != "D" else "A")[0]
    assert other["logp"] < found[0]["logp"]


def stepped(run: Run, ids: np.ndarray, note: str) -> float:
    """log p of all samples, tick by tick."""
    import torch

    vectors = torch.from_numpy(run.task.conditions.asked(note, None))[None]
    state, before, total = run.model.condition(vectors), 2, 0.0  # <start>
    with torch.no_grad():
        for token in ids.tolist():
            y, state = run.model.decoder(torch.tensor([[before]]), state)
            total += float(run.task.emission.log_probabilities(y[0, 0].double())[token])
            before = token
    return total


def test_the_seed_decides_and_a_prompt_is_continued(run: Run, tmp_path: Path) -> None:
    asked = {"condition": "F", "seconds": 0.02}
    one, same, other = run.generate(**asked), run.generate(**asked), run.generate(**asked, seed=1)
    np.testing.assert_array_equal(one[0]["samples"], same[0]["samples"])
    assert not np.array_equal(one[0]["samples"], other[0]["samples"])
    soundfile.write(tmp_path / "a.wav", tones.tone(174.6, 100, RATE, np.random.default_rng(0)) / 4, RATE)
    made = run.generate(str(tmp_path / "a.wav"), **asked)[0]
    assert (made["given"], len(made["samples"])) == (100, 140)
    np.testing.assert_allclose(made["samples"][:100], soundfile.read(tmp_path / "a.wav")[0], atol=0.01)
    wanted = run.score([made["samples"]], condition="F")[0]["logp"]
    wanted -= run.score([made["samples"][:100]], condition="F")[0]["logp"]
    assert made["logp"] == pytest.approx(wanted, rel=1e-3)


def test_a_saved_run_is_the_same_run(run: Run) -> None:
    again = unrolled.load(run.path, trained_on=run.trained_on)
    assert again.evaluate()["nats"] == pytest.approx(run.result["test"]["nats"], rel=1e-6)
    asked = {"condition": "A", "seconds": 0.02}
    np.testing.assert_array_equal(again.generate(**asked)[0]["samples"], run.generate(**asked)[0]["samples"])


def test_the_command_writes_a_file(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.wav"
    words = ["generate", str(run.path), "--seconds", "0.05", "--condition", "note=A", "-n", "2", "-o", str(out)]
    done = run_unrolled(*words)
    assert done.returncode == 0
    assert done.stdout.split() == [str(tmp_path / "a-0.wav"), str(tmp_path / "a-1.wav")]
    assert "x real time" in done.stderr
    samples, rate = soundfile.read(tmp_path / "a-0.wav")
    assert (len(samples), rate) == (100, RATE)
    info = soundfile.info(tmp_path / "a-0.wav")
    assert (info.subtype, info.channels) == ("PCM_16", 1)


def test_the_report_has_pictures_and_sound(run: Run) -> None:
    names = {path.stem for path in (run.path / "figures").glob("*.json")}
    assert names == {
        "recordings", "spectrogram-generated", "spectrogram-test-data", "waveform-generated", "waveform-test-data",
    }  # fmt: skip
    page = write_report([run.path]).read_text(encoding="utf-8")
    assert page.count('<audio controls preload="none"') == 2
    assert "media-src data:" in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, "this run needs condition=... note=A; found nothing"),
        ({"condition": "note=H"}, "there is no note 'H'"),
        ({"condition": "speaker=ann"}, "note=A; found speaker=ann"),
        ({"condition": "A", "seconds": 1e9}, "seconds"),
        ({"condition": "A", "top_k": 3}, "does not apply"),
    ],
)
def test_what_generate_refuses(run: Run, words: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        run.generate(**words)
    assert sentence in str(caught.value)


def test_sound_at_another_rate_is_refused(run: Run, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(50), 8000)
    with pytest.raises(DataError, match="has 8,000 samples a second, but this run has 2,000"):
        run.generate(str(tmp_path / "a.wav"), condition="A", seconds=0.01)


# ---- other outputs, models and conditions


@pytest.mark.parametrize("model", ["wavenet", "gru", "transformer", "linear-prediction"])
def test_a_mixture_of_logistics_of_16_bits(model: str, tmp_path: Path) -> None:
    task, data, own = DATA["sounds as numbers"]
    own = own | {"features": "none"} | (TINY if model == "wavenet" else {})
    made = unrolled.train(data, task, model, tmp_path / "run", settings=QUICK | own, baselines={})
    assert 0 < made.result["test"]["bits_per_sample"] < 20
    item = made.generate(max_tokens=7)[0]
    assert item["samples"].shape == (7,)
    levels = (item["samples"].astype(np.float64) + 1) / 2 * 65535
    np.testing.assert_allclose(levels, levels.round(), atol=2e-2)


def test_features_of_a_file_are_a_condition(tmp_path: Path) -> None:
    task, data, own = DATA["sounds as numbers"]
    made = unrolled.train(data, task, "gru", tmp_path / "run", settings=QUICK | own | {"d_state": 4}, baselines={})
    conditions = made.task.conditions
    assert (conditions.width, conditions.hop, len(conditions.mean)) == (3, 4, 3)
    soundfile.write(tmp_path / "a.wav", data[0], 1000)
    item = made.generate(condition=f"log-mel={tmp_path / 'a.wav'}")[0]
    assert len(item["samples"]) % 4 == 0  # as long as the features
    with pytest.raises(UsageError, match="expected the name of a sound file"):
        made.generate(condition="log-mel=3")
    grows = QUICK | own | {"d_model": 4, "d_ff": 4, "n_heads": 2, "n_layers": 1, "d_embedding": 4}
    whole = unrolled.train(data, task, "transformer", tmp_path / "whole", settings=grows, baselines={})
    scored = whole.score(data[:3])
    assert [line["tokens"] for line in scored] == [len(each) for each in data[:3]]
    with pytest.raises(UsageError, match="pieces cannot be cut for a model whose state grows"):
        unrolled.train(data, task, "transformer", tmp_path / "other", settings=grows | {"chunk": 10})


def test_settings_that_do_not_fit(tmp_path: Path) -> None:
    _, data, own = DATA["sounds as numbers"]
    with pytest.raises(UsageError, match="bits = 16 needs output = logistic-mixture"):
        unrolled.train(data, "next-sample", "gru", tmp_path / "a", settings=own | {"output": "categorical"})
    with pytest.raises(UsageError, match="is a setting for text"):
        unrolled.train(data, "next-sample", "gru", tmp_path / "b", settings=own | {"tokens": "word"})
    with pytest.raises(UsageError, match="closed form"):
        unrolled.train(data, "next-sample", "key-chain", tmp_path / "c", settings=own)


def test_sound_is_recognised_by_a_look(tmp_path: Path) -> None:
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"{name}.wav", np.zeros(50), 8000)
    assert guess_task(tmp_path, {})[0] == "next-sample"
    assert guess_task(tmp_path, {"pattern": "(?P<answer>.)"})[0] == "classify"
    assert guess_task(tmp_path, {"pattern": "(?P<who>.)", "condition": "who"})[0] == "next-sample"
    assert guess_task("builtin:tones", {})[0] == "next-sample"


def test_predictions_are_kept_with_their_condition(run: Run) -> None:
    lines = [json.loads(line) for line in (run.path / "predictions.jsonl").read_text().splitlines()]
    assert len(lines) == 10
    assert len(lines[0]["samples"]) == 240
    assert np.array(lines[0]["condition"]).shape == (1, 12)
    said = run.predict([np.array(lines[0]["samples"])], condition="A")[0]
    assert -1 <= said["expected"] <= 1
    assert 0 < said["p"] <= 1
