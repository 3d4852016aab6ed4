"""Built-in sounds have the pitch and the loudness that they are said to have, and their pitch is found again."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.data.builtin.tones import KINDS, NOTES, PEAK, Settings, clip, envelope
from unrolled.data.files.pitch import autocorrelation, pitch_frames, pitch_of, pitches

RATE = 8000


@pytest.mark.parametrize("kind", ["tone", "string", "vowel"])
def test_pitch_is_what_is_known(kind: str) -> None:
    settings = Settings(kind=kind, rate=RATE, seconds=0.2)
    for i in range(6):
        made = clip(i, settings)
        found = pitch_of(made.input[200:1000], RATE)
        assert found == pytest.approx(made.target["pitch"], rel=0.01)
        step = round(12 * np.log2(made.target["pitch"] / 110))
        assert made.target["note"] == NOTES[step % 12]


def test_a_chirp_moves_by_an_octave() -> None:
    made = clip(3, Settings(kind="chirp", rate=RATE, seconds=1.0))
    found = pitches(made.input, RATE, 400, 400)
    ends = sorted([found[1], found[-2]])
    assert ends[1] / ends[0] == pytest.approx(2 ** (17 / 20), rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_loudness_is_the_envelope(kind: str) -> None:
    made = clip(1, Settings(kind=kind, rate=RATE, seconds=0.5)).input
    assert np.abs(made).max() <= PEAK + 1e-6
    assert np.abs(made[:4]).max() < 0.1 * PEAK
    loud = [np.abs(made[a : a + 400]).max() for a in (400, 3600)]
    fall = envelope(4000, RATE)[[600, 3800]]
    assert loud[1] / loud[0] < 1.5 * fall[1] / fall[0]


def test_clips_are_the_same_every_time_and_differ() -> None:
    settings = Settings(kind="tone", pitches="notes", seed=3)
    made = [clip(i, settings).input for i in range(50)]
    np.testing.assert_array_equal(made[7], clip(7, settings).input)
    assert len({each.tobytes() for each in made}) == 50


def test_autocorrelation_as_the_equation_says() -> None:
    f = np.random.default_rng(0).normal(size=30)
    f -= f.mean()
    for lag, found in enumerate(autocorrelation(f, 10)):
        a, b = f[: 30 - lag], f[lag:]
        assert found == pytest.approx((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()), abs=1e-9)


def test_noise_and_silence_have_no_pitch() -> None:
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 800)
    assert pitch_of(noise, RATE) == 0
    assert pitch_of(np.zeros(800), RATE) == 0
    sine = 0.5 * np.sin(2 * np.pi * 440 * np.arange(800) / RATE)
    octaves, voiced, power = pitch_frames(sine, RATE, 800, 800)[0]
    assert (octaves, voiced) == (pytest.approx(1, abs=0.01), 1)
    assert np.exp(power) == pytest.approx(0.125, rel=0.02)
