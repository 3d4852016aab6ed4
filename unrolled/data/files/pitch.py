"""The pitch of sound, frame by frame, from its autocorrelation.

    r(l) = sum_i f_i f_{i+l} / sqrt(sum_i f_i^2  sum_i f_{i+l}^2)       over the i that both have
    f0 = rate / l*,     l* the first peak of r that is near its largest, between the periods of HIGHEST and LOWEST

The peak is placed between samples by the parabola through it and its neighbours. A frame is voiced where r(l*) is at
least VOICED and it is not silent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unrolled.data.files.spectrum import FLOOR, Floats, frames

LOWEST, HIGHEST = 60.0, 1000.0  # hertz
VOICED, NEAR = 0.6, 0.9  # of r; and the share of its largest value that the first peak must have
SILENT = 1e-3  # root mean square
MIDDLE = 220.0  # hertz that are 0 octaves


def autocorrelation(frame: Floats, longest: int) -> NDArray[np.float64]:
    """r(0) .. r(longest)."""
    f = np.asarray(frame, np.float64) - np.mean(frame)
    n = len(f)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(f, size)
    r = np.fft.irfft(np.abs(spectrum) ** 2, size)[: longest + 1]
    energy = np.concatenate([[0.0], np.cumsum(f**2)])
    lags = np.arange(longest + 1)
    both = energy[n - lags] * (energy[n] - energy[lags])
    return r / np.sqrt(np.maximum(both, 1e-20))


def pitch_of(frame: Floats, rate: int) -> float:
    """Hertz of a frame; 0 where it is not voiced.

    >>> round(pitch_of(np.sin(2 * np.pi * 220 * np.arange(800) / 8000), 8000))
    220
    """
    shortest, longest = max(2, int(rate / HIGHEST)), min(int(rate / LOWEST), len(frame) // 2)
    if longest <= shortest + 1 or float(np.sqrt(np.mean(np.square(frame)))) < SILENT:
        return 0.0
    r = autocorrelation(frame, longest + 1)
    peaks = np.flatnonzero((r[1:-1] >= r[:-2]) & (r[1:-1] > r[2:])) + 1
    peaks = peaks[(peaks >= shortest) & (peaks <= longest)]
    if len(peaks) == 0 or r[peaks].max() < VOICED:
        return 0.0
    at = int(peaks[r[peaks] >= NEAR * r[peaks].max()][0])
    before, here, after = r[at - 1 : at + 2]
    bend = before - 2 * here + after
    return float(rate / (at + (0.5 * (before - after) / bend if bend < 0 else 0.0)))


def pitches(samples: Floats, rate: int, length: int, hop: int) -> NDArray[np.float64]:
    """Hertz of each frame [M]."""
    return np.array([pitch_of(frame, rate) for frame in frames(samples, length, hop)])


def pitch_frames(samples: Floats, rate: int, length: int, hop: int) -> NDArray[np.float32]:
    """[M, 3]: octaves above 220 Hz (0 where not voiced), whether it is voiced, the logarithm of the power."""
    pitch = pitches(samples, rate, length, hop)
    voiced = pitch > 0
    octaves = np.where(voiced, np.log2(np.where(voiced, pitch, MIDDLE) / MIDDLE), 0)
    power = np.log(FLOOR + np.square(frames(samples, length, hop)).mean(axis=1))
    return np.stack([octaves, voiced, power], axis=1).astype(np.float32)
