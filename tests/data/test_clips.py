"""Recordings as they are read: folders, tables, names, rates, silence; what is wrong with a file is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError, UsageError
from unrolled.data.codecs.samples import Samples
from unrolled.data.config import DataConfig
from unrolled.data.sound_conditions import Conditions, features_of
from unrolled.data.sounds_prepare import SoundForm, prepare_sounds
from unrolled.data.sources.clips import Hearing, clips

RATE = 1000
RAMP = np.linspace(-0.5, 0.5, 40)


def form(**more: object) -> SoundForm:
    return SoundForm(
        **{"hearing": Hearing(), "bits": 8, "piece": 1.0, "features": "none", "frame": 0.01, "bands": 4} | more
    )


def write(path: Path, samples: np.ndarray = RAMP, rate: int = RATE, subtype: str | None = None) -> Path:
    path.parent.mkdir(exist_ok=True)
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


def read(source: object, **hearing: object) -> tuple[int, list]:
    rate, found = clips(source, Hearing(**hearing))
    return rate, list(found)


def refused(source: object, **hearing: object) -> str:
    with pytest.raises((DataError, UsageError)) as caught:
        read(source, **hearing)
    return str(caught.value)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "PCM_U8"])
def test_every_depth_and_both_formats(tmp_path: Path, subtype: str) -> None:
    rate, (clip,) = read(write(tmp_path / "a.wav", subtype=subtype))
    assert rate == RATE
    np.testing.assert_allclose(clip.samples, RAMP, atol=0.01)
    if subtype in ("PCM_16", "PCM_24"):
        _, (same,) = read(write(tmp_path / "a.flac", subtype=subtype))
        np.testing.assert_allclose(same.samples, RAMP, atol=1e-4)


def test_what_is_known_comes_from_folders_names_and_tables(tmp_path: Path) -> None:
    write(tmp_path / "ann" / "7_x.wav")
    write(tmp_path / "bob" / "3_y.flac")
    (tmp_path / "ann" / "notes.txt").write_text("not sound")
    _, found = read(tmp_path, pattern=r"(?P<digit>\d)_")
    assert [(clip.known["folder"], clip.known["digit"]) for clip in found] == [("ann", "7"), ("bob", "3")]
    table = tmp_path / "list.csv"
    table.write_text("file,speaker,part\nann/7_x.wav,anna,train\nbob/3_y.flac,robert,test\n")
    _, found = read(table)
    assert [(clip.known["speaker"], clip.part) for clip in found] == [("anna", "train"), ("robert", "test")]
    assert "does not match the pattern" in refused(tmp_path, pattern=r"(?P<digit>\d\d)_")
    table.write_text("file\nann/8_x.wav\n")
    assert refused(table).endswith("there is no sound file 'ann/8_x.wav' beside the table")
    table.write_text("speaker\nann\n")
    assert "no column with the names of sound files" in refused(table)


def test_resampling_keeps_a_tone_and_removes_what_is_too_high(tmp_path: Path) -> None:
    t = np.arange(8000) / 8000
    low, high = 0.5 * np.sin(2 * np.pi * 100 * t), 0.5 * np.sin(2 * np.pi * 3000 * t)
    _, (clip,) = read(write(tmp_path / "a.wav", low + high, 8000), rate=2000)
    wanted = 0.5 * np.sin(2 * np.pi * 100 * np.arange(2000) / 2000)
    assert len(clip.samples) == 2000
    np.testing.assert_allclose(clip.samples[100:-100], wanted[100:-100], atol=0.01)


def test_silence_goes_on_request(tmp_path: Path) -> None:
    padded = np.concatenate([np.zeros(300), RAMP + 0.6, np.zeros(200)])
    path = write(tmp_path / "a.wav", padded)
    assert len(read(path)[1][0].samples) == 540
    assert len(read(path, trim=True)[1][0].samples) == 40
    assert "there is no sound in it" in refused(write(tmp_path / "b.wav", np.zeros(100)), trim=True)


def test_stereo_is_mixed_with_a_note(tmp_path: Path) -> None:
    for i in range(12):
        write(tmp_path / "s" / f"{i:02}.wav", np.stack([RAMP + i / 100, -RAMP + i / 100], axis=1))
    _, found = read(tmp_path / "s")
    np.testing.assert_allclose(found[3].samples, 0.03, atol=1e-4)
    prepared = prepare_sounds(tmp_path / "s", DataConfig(split="60/20/20"), form())
    (note,) = prepared.facts["notes"]
    assert note.startswith("12 recordings have more than one channel") and note.endswith("the channels were averaged")


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "there are no sound files in this folder" in refused(tmp_path / "empty")
    (tmp_path / "bad.wav").write_bytes(b"RIFF this is no sound at all, whatever its name may be")
    assert "cannot be read as sound" in refused(tmp_path / "bad.wav")
    assert "there is no sound in this file" in refused(write(tmp_path / "none.wav", np.zeros(0)))
    write(tmp_path / "two" / "a.wav")
    write(tmp_path / "two" / "b.wav", rate=2000)
    assert "give --rate to resample" in refused(tmp_path / "two").replace("rate=...", "--rate")
    write(tmp_path / "nan.wav", np.array([0.1, np.nan, 0.2]), subtype="FLOAT")
    assert "sample 2: found nan" in refused(tmp_path / "nan.wav")
    (tmp_path / "text.txt").write_text("words")
    assert "expected sound" in refused(tmp_path / "text.txt")
    assert "have no rate" in refused([RAMP])
    assert "expected samples [time]" in refused([np.zeros((3, 20, 20))], rate=RATE)
    (tmp_path / "cut.wav").write_bytes(write(tmp_path / "whole.wav").read_bytes()[:-10])
    assert "cut off" in refused(tmp_path / "cut.wav")
    with pytest.raises(DataError, match="expected at least 2"):
        prepare_sounds(write(tmp_path / "one.wav", np.zeros(1)), DataConfig(), form())


# ---- pieces and conditions


def test_pieces_are_the_recording_and_its_features_run_on(tmp_path: Path) -> None:
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 1000)
    path = write(tmp_path / "a.wav", samples)
    prepared = prepare_sounds(path, DataConfig(split="50/25/25"), form(features="log-mel", piece=0.1, frame=0.01))
    assert prepared.facts["split_is"] == "by time"
    codec, train = Samples(8), prepared.sections["train"]
    ids = codec.encode(soundfile.read(path)[0])
    np.testing.assert_array_equal(train.values(TARGET), ids[:500])
    assert train.lengths(TARGET).tolist() == [100] * 5
    known = Conditions.parse(prepared.told["conditions"])
    whole = known.scaled(features_of(known, codec.decode(ids[:500])))
    found = np.concatenate([*train.fields[SOURCE]])
    np.testing.assert_allclose(found[: len(whole)], whole, atol=1e-4)  # the same frames as of the whole
    scaled = np.concatenate(list(train.fields[SOURCE]))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-3)


def test_classes_and_numbers_of_training_data_alone(tmp_path: Path) -> None:
    rows = [{"sound": RAMP + i / 1000, "who": "ab"[i % 2], "pitch": i} for i in range(60)]
    prepared = prepare_sounds(rows, DataConfig(condition="who,pitch"), form(hearing=Hearing(RATE)))
    known = Conditions.parse(prepared.told["conditions"])
    train = prepared.sections["train"]
    codec = Samples(8)
    first = [
        int(np.flatnonzero([np.array_equal(codec.encode(r["sound"]), x) for r in rows])[0])
        for x in train.fields[TARGET]
    ]
    assert known.columns[0].classes == ["a", "b"]
    assert known.columns[1].mean == pytest.approx(np.mean(first))
    vectors = np.concatenate(list(train.fields[SOURCE]))
    np.testing.assert_array_equal(vectors[:, 1], [i % 2 for i in first])
    assert vectors[:, 2].std() == pytest.approx(1, abs=1e-5)
    assert known.example() == f"who=a,pitch={np.mean(first):.4g}"
    np.testing.assert_allclose(known.asked("who=b,pitch=3", None)[0, :2], [0, 1])
    with pytest.raises(UsageError, match="expected who:class or who:number"):
        prepare_sounds(rows, DataConfig(condition="who:vector"), form(hearing=Hearing(RATE)))
    with pytest.raises(DataError, match="nothing called 'age' is known of it"):
        prepare_sounds(rows, DataConfig(condition="age"), form(hearing=Hearing(RATE)))


def test_the_past_of_equal_recordings_is_on_one_side(tmp_path: Path) -> None:
    again = prepare_sounds(
        [RAMP + i % 20 / 100 for i in range(60)], DataConfig(split="60/20/20"), form(hearing=Hearing(RATE))
    )
    sides: dict[bytes, set[str]] = {}
    for part, section in again.sections.items():
        for ids in section.fields[TARGET]:
            sides.setdefault(ids.tobytes(), set()).add(part)
    assert len(sides) == 20
    assert all(len(parts) == 1 for parts in sides.values())
