"""Pictures of sound: the waveform, the spectrogram, and the recording itself to listen to."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.data.files.spectrum import power_spectrum
from unrolled.pictures.kinds import Heatmap, Plot, Series, Sounds

FRAME = 0.032  # seconds of a frame of a spectrogram
MOST_POINTS, MOST_COLUMNS, MOST_ROWS = 1500, 150, 64
QUIETEST = 80.0  # decibels below the loudest that are shown
URI = "data:audio/wav;base64,"

Samples = NDArray[Any]


def pictures_of_sound(found: Mapping[str, Samples], rate: int, about: str) -> dict[str, Any]:
    """By file name: a waveform and a spectrogram of each recording, and all of them to listen to."""
    made: dict[str, Any] = {}
    for name, samples in found.items():
        word = name.replace(" ", "-")
        made[f"waveform-{word}"] = waveform(name, samples, rate)
        made[f"spectrogram-{word}"] = spectrogram(name, samples, rate)
    players = [URI + base64.b64encode(wav_bytes(samples, rate)).decode() for samples in found.values()]
    return {**made, "recordings": Sounds(title="Recordings", alt=about, captions=list(found), sounds=players)}


def waveform(name: str, samples: Samples, rate: int) -> Plot:
    """The samples over time; of a long recording only the first."""
    shown = samples[:MOST_POINTS]
    x = [round(1000 * t / rate, 4) for t in range(len(shown))]
    line = Series(name=name, x=x, y=[round(float(each), 5) for each in shown])
    alt = f"The first {len(shown):,} samples of the recording: {name}."
    return Plot(title=f"Waveform: {name}", alt=alt, series=[line], x_label="milliseconds", y_label="amplitude")


def spectrogram(name: str, samples: Samples, rate: int) -> Heatmap:
    """Power in decibels of the loudest, low frequencies at the bottom."""
    length = max(16, 2 * round(FRAME * rate / 2))
    hop = max(1, length // 4, -(-len(samples) // MOST_COLUMNS))
    power = power_spectrum(samples, length, hop).T  # [K, M]
    pooled = max(1, -(-len(power) // MOST_ROWS))
    starts = np.arange(0, len(power), pooled)
    power = np.maximum.reduceat(power, starts, axis=0)
    decibels = 10 * np.log10(np.maximum(power / max(power.max(), 1e-12), 10 ** (-QUIETEST / 10)))
    return Heatmap(
        title=f"Spectrogram: {name}",
        alt=f"Power of each frequency over time, in decibels below the loudest, of the recording: {name}.",
        values=np.round(decibels[::-1], 1).tolist(),
        rows=[f"{f * rate / length:.0f} Hz" for f in starts[::-1]],
        columns=[f"{1000 * m * hop / rate:.0f}" for m in range(power.shape[1])],
        x_label="milliseconds",
    )


def wav_bytes(samples: Samples, rate: int) -> bytes:
    """A .wav file of 16 bits."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
