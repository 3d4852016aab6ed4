"""Spectra of sound, frame by frame, in numpy.

    frame_m[i] = s[m h + i] w[i],   w[i] = (1 - cos(2 pi i / n)) / 2        (Hann window, n samples, hop h)
    P_m[k] = |sum_i frame_m[i] e^(-2 pi j i k / n)|^2 / (sum_i w[i])^2      (k = 0 .. n/2)
    mel(f) = 2595 log10(1 + f / 700)                                        (O'Shaughnessy 1987)
    M_m[b] = sum_k H_b[k] P_m[k],   y = log(floor + M)

H_b are triangles whose corners are equally far apart in mel. A sine of amplitude a in the middle of a bin gives there
P = a^2 / 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-8  # of the power before the logarithm: -80 dB of a full-scale wave

Floats = NDArray[np.floating]


def frames(samples: Floats, length: int, hop: int) -> NDArray[np.float64]:
    """[M, length]; the end is filled with zeros so that every sample is in a frame.

    >>> frames(np.arange(5.0), 4, 2).tolist()
    [[0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 0.0]]
    """
    n_frames = 1 + max(0, -(-(len(samples) - length) // hop))
    padded = np.zeros((n_frames - 1) * hop + length)
    padded[: len(samples)] = samples
    return np.lib.stride_tricks.sliding_window_view(padded, length)[::hop].copy()


def hann(length: int) -> NDArray[np.float64]:
    """The periodic window."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)


def power_spectrum(samples: Floats, length: int, hop: int) -> NDArray[np.float64]:
    """P [M, length // 2 + 1]."""
    window = hann(length)
    return np.abs(np.fft.rfft(frames(samples, length, hop) * window)) ** 2 / window.sum() ** 2


def to_mel(frequency: Floats | float) -> NDArray[np.float64]:
    return 2595 * np.log10(1 + np.asarray(frequency, np.float64) / 700)


def from_mel(mel: Floats) -> NDArray[np.float64]:
    return 700 * (10 ** (np.asarray(mel, np.float64) / 2595) - 1)


def mel_filters(bands: int, length: int, rate: int) -> NDArray[np.float64]:
    """H [bands, length // 2 + 1]: triangles from 0 to half the rate, of height one at their middle."""
    corners = from_mel(np.linspace(0, to_mel(rate / 2), bands + 2))  # [bands + 2] in hertz
    bins = np.fft.rfftfreq(length, 1 / rate)  # [K]
    left, middle, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (bins - left) / (middle - left), (right - bins) / (right - middle)
    return np.maximum(0, np.minimum(rising, falling))  # [bands, K]


def log_spectrum(samples: Floats, length: int, hop: int) -> NDArray[np.float32]:
    """log P [M, length // 2 + 1]."""
    return np.log(FLOOR + power_spectrum(samples, length, hop)).astype(np.float32)


def log_mel(samples: Floats, length: int, hop: int, bands: int, rate: int) -> NDArray[np.float32]:
    """log M [M, bands]."""
    power = power_spectrum(samples, length, hop) @ mel_filters(bands, length, rate).T
    return np.log(FLOOR + power).astype(np.float32)
