"""Clips of every depth: a ramp that is written by hand is read as it was written, or refused in one sentence."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from unrolled.core.errors import DataError
from unrolled.data.readers import sound
from unrolled.data.readers.sound import features, read_clip
from unrolled.data.reading import Reading, SoundReading
from unrolled.data.sources.open_labelled import open_labelled

RAMP = np.array([-1, -0.5, -0.25, 0, 0.25, 0.5, 0.75])
SAMPLES = SoundReading(features="samples")
DEPTHS = {
    "u8": (1, 8, (RAMP * 128 + 128).astype("u1").tobytes()),
    "i16": (1, 16, (RAMP * 2**15).astype("<i2").tobytes()),
    "i24": (1, 24, b"".join(int(v * 2**23).to_bytes(3, "little", signed=True) for v in RAMP)),
    "i32": (1, 32, (RAMP * 2**31).astype("<i4").tobytes()),
    "f32": (3, 32, RAMP.astype("<f4").tobytes()),
    "f64": (3, 64, RAMP.astype("<f8").tobytes()),
}


def wav(kind: int, bits: int, data: bytes, told: int | None = None, channels: int = 1) -> bytes:
    """A file by hand, whose header tells `told` bytes of samples."""
    size = bits // 8 * channels
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, kind, channels, 8000, 8000 * size, size, bits)
    body = form + b"data" + struct.pack("<I", len(data) if told is None else told) + data
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_clip(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


@pytest.mark.parametrize("depth", DEPTHS)
def test_every_depth_is_the_same_ramp(tmp_path: Path, depth: str) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(*DEPTHS[depth]))
    samples, rate = read_clip(path)
    assert rate == 8000
    np.testing.assert_array_equal(samples, RAMP)


def expanded(code: int, law: str) -> float:
    """A sample of 8 bits by the tables of ITU-T G.711, in words of its appendix."""
    if law == "mu":
        code ^= 0xFF
        size = (((code & 0x0F) << 3) + 132 << (code >> 4 & 7)) - 132
        return (-size if code & 0x80 else size) / 2**15
    code ^= 0x55
    segment, size = code >> 4 & 7, (code & 0x0F) << 4
    size = size + 8 if segment == 0 else size + 264 << segment - 1
    return (size if code & 0x80 else -size) / 2**15


@pytest.mark.parametrize(("kind", "law"), [(6, "A"), (7, "mu")])
def test_companded_samples_are_those_of_the_standard(tmp_path: Path, kind: int, law: str) -> None:
    (tmp_path / "a.wav").write_bytes(wav(kind, 8, bytes(range(256))))
    samples, _ = read_clip(tmp_path / "a.wav")
    np.testing.assert_allclose(samples, [expanded(code, law) for code in range(256)], atol=1e-7)


def test_floats_beyond_one_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav(3, 32, (RAMP * 4).astype("<f4").tobytes()))
    np.testing.assert_array_equal(read_clip(tmp_path / "a.wav")[0], RAMP * 4)


def test_a_clip_is_read_in_blocks_and_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "BLOCK", 3)
    (tmp_path / "a.wav").write_bytes(wav(1, 16, np.repeat(RAMP * 2**15, 2).astype("<i2").tobytes(), channels=2))
    np.testing.assert_array_equal(read_clip(tmp_path / "a.wav")[0], RAMP)
    monkeypatch.setattr(sound, "MOST_SAMPLES", 13)
    assert "7 samples in 2 channels, more than the limit of 13" in refused(tmp_path / "a.wav")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_clip_that_was_cut_off_is_refused(tmp_path: Path, depth: str) -> None:
    path, (kind, bits, data) = tmp_path / "a.wav", DEPTHS[depth]
    path.write_bytes(wav(kind, bits, data)[: -bits // 8])
    assert "the sound was cut off" in refused(path)


def test_a_streamed_clip_does_not_know_its_length(tmp_path: Path) -> None:
    path, (kind, bits, data) = tmp_path / "a.wav", DEPTHS["i16"]
    path.write_bytes(wav(kind, bits, data, told=0xFFFFFFFF))
    np.testing.assert_array_equal(read_clip(path)[0], RAMP)


def test_a_compressed_clip_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.flac"
    soundfile.write(path, np.random.default_rng(0).uniform(-1, 1, 20_000), 8000)
    path.write_bytes(path.read_bytes()[:15_000])
    assert "cut off" in refused(path) or "cannot be read as sound" in refused(path)


@pytest.mark.parametrize(("name", "form"), [("a.ogg", "OGG"), ("a.wav", "RF64"), ("a.wav", "WAVEX")])
def test_other_forms_of_files_that_were_cut_off(tmp_path: Path, name: str, form: str) -> None:
    path = tmp_path / name
    soundfile.write(path, np.random.default_rng(0).uniform(-1, 1, 20_000), 8000, format=form)
    assert len(read_clip(path)[0]) == 20_000
    whole = path.read_bytes()
    for kept in (len(whole) - 2, len(whole) // 2):
        path.write_bytes(whole[:kept])
        assert "the sound was cut off" in refused(path)
    page = whole.rfind(b"OggS")
    if page > 0:  # without its last page the file is well-formed, but has no end
        path.write_bytes(whole[:page])
        assert "the sound was cut off" in refused(path)


def test_channels_are_averaged(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    both = np.stack([RAMP, 0 * RAMP], axis=1)
    path.write_bytes(wav(3, 32, both.astype("<f4").tobytes(), channels=2))
    np.testing.assert_array_equal(read_clip(path)[0], RAMP / 2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(3, 32, np.array([0, 0.5, value, 0], "<f4").tobytes()))
    assert "sample 3: found" in refused(path).replace(f"{path}, ", "")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "float32", "float64"])
def test_arrays_of_every_type_are_the_same_ramp(dtype: str) -> None:
    kind = np.dtype(dtype)
    half = 1 if kind.kind == "f" else 2 ** (8 * kind.itemsize - 1)
    values = (RAMP * half + (half if kind.kind == "u" else 0)).astype(kind)
    np.testing.assert_array_equal(features(values, 8000, SAMPLES)[:, 0], RAMP)
    (found,) = open_labelled({"x": values[None], "rate": 8000}, Reading(sound=SAMPLES), "none")
    np.testing.assert_array_equal(found.input[:, 0], RAMP)


@pytest.mark.parametrize("values", [[1, 2, 3], [1j, 2j, 3j], [True, False, True]])
def test_arrays_without_a_known_range_are_refused(values: list) -> None:
    with pytest.raises(DataError, match=f"example 0: found sound of {np.asarray(values).dtype}"):
        list(open_labelled({"x": [values], "rate": 8000}, Reading(sound=SAMPLES), "none"))


def test_noisy_and_clean_samples_are_in_the_same_units() -> None:
    values = (RAMP * 2**15).astype(np.int16)[None]
    (found,) = open_labelled({"x": values, "y": values, "rate": 8000}, Reading(sound=SAMPLES), "series")
    np.testing.assert_array_equal(found.answer, found.input)
