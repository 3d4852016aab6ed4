"""Spectra against sines whose power is known by hand."""

from __future__ import annotations

import numpy as np

from unrolled.data.files.spectrum import FLOOR, frames, from_mel, hann, log_mel, mel_filters, power_spectrum, to_mel
from unrolled.data.readers.sound import features
from unrolled.data.reading import SoundReading

RATE, N = 8000, 256


def test_a_sine_in_the_middle_of_a_bin():
    k = 20  # 625 Hz
    sine = 0.6 * np.sin(2 * np.pi * k * np.arange(N * 4) / N)
    power = power_spectrum(sine, N, N // 2)
    assert power.shape == (7, N // 2 + 1)
    np.testing.assert_allclose(power[:, k], 0.6**2 / 4, rtol=1e-9)
    np.testing.assert_allclose(power[:, [k - 1, k + 1]], 0.6**2 / 16, rtol=1e-9)  # the Hann window's neighbours: half
    assert power[:, : k - 2].max() < 1e-20


def test_a_spectrum_by_the_formula():
    samples = np.random.default_rng(0).standard_normal(10)
    w = (1 - np.cos(2 * np.pi * np.arange(8) / 8)) / 2
    expected = [
        abs(sum(samples[2 + i] * w[i] * np.exp(-2j * np.pi * i * k / 8) for i in range(8))) ** 2 / w.sum() ** 2
        for k in range(5)
    ]
    np.testing.assert_allclose(power_spectrum(samples, 8, 2)[1], expected, rtol=1e-10)
    np.testing.assert_allclose(hann(8), w)


def test_every_sample_is_in_a_frame():
    for length in (1, 7, 8, 9, 17):
        cut = frames(np.ones(length), 8, 4)
        assert cut.shape[0] == 1 + max(0, -(-(length - 8) // 4))
        assert cut[-1].any()


def test_mel_bands():
    assert abs(float(to_mel(1000.0)) - 1000) < 0.1  # 1000 mel at 1000 Hz is how the scale is made
    np.testing.assert_allclose(from_mel(to_mel(np.array([0.0, 440.0, 4000.0]))), [0, 440, 4000], atol=1e-9)
    filters = mel_filters(20, N, RATE)
    assert filters.shape == (20, N // 2 + 1)
    assert (filters >= 0).all() and (filters <= 1).all() and filters.any(axis=1).all()
    middle = from_mel(np.linspace(0, to_mel(RATE / 2), 22))[1:-1]
    peaks = filters.argmax(axis=1) * RATE / N
    assert np.abs(peaks - middle).max() <= RATE / N
    inside = filters.sum(axis=0)[(np.arange(129) * RATE / N > middle[0]) & (np.arange(129) * RATE / N < middle[-1])]
    np.testing.assert_allclose(inside, 1, atol=1e-9)  # neighbouring triangles add up to one


def test_log_mel_finds_the_sine_and_silence():
    sine = np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
    y = log_mel(sine, N, N // 2, 20, RATE)
    band = int(np.abs(from_mel(np.linspace(0, to_mel(RATE / 2), 22))[1:-1] - 1000).argmin())
    assert (y[1:-1].argmax(axis=1) == band).all()
    np.testing.assert_allclose(log_mel(np.zeros(N), N, N, 20, RATE), np.log(FLOOR), rtol=1e-6)


def test_features_of_whole_numbers():
    samples = np.array([-32768, 0, 16384], np.int16)
    assert features(samples, RATE, SoundReading(features="samples")).ravel().tolist() == [-1, 0, 0.5]
    wave = np.zeros(8000, np.int16)
    assert features(wave, RATE, SoundReading(features="spectrum")).shape == (62, 129)
    assert features(wave, RATE, SoundReading(features="mel", bands=12)).shape == (62, 12)
