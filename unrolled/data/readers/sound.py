"""Clips of sound: one channel of samples between -1 and 1, or their log-spectra, with a class from folder or name.

A folder `noisy` and a folder `clean` with files of the same names are pairs for denoising (always as samples).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError
from unrolled.core.opening import open_regular
from unrolled.data.files.file_names import named_files
from unrolled.data.files.spectrum import log_mel, log_spectrum
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Answers, Reading, SoundReading

FASTEST = 10_000_000  # samples a second
MOST_SAMPLES = 1 << 28  # of all channels: an hour and a half of 48,000 a second
BLOCK = 1 << 20  # samples of each channel that are read at a time
OGG_PAGE = 65_307  # bytes, at most
STREAMED = 0x7FFFF000  # and more bytes: what programs write that do not know the length yet


class Heard(NamedTuple):
    """What is in a file of sound."""

    samples: NDArray[np.float32]  # [T], the mean of all channels
    rate: int
    channels: int


def read_clip(path: Path) -> tuple[NDArray[np.float32], int]:
    """Samples [T], several channels averaged, and the rate."""
    return read_sound(path)[:2]


def read_sound(path: Path) -> Heard:
    """A file, with the number of its channels."""
    import soundfile

    with open_regular(path) as handle:
        cut = is_cut(handle)
        handle.seek(0)
        try:
            with soundfile.SoundFile(handle) as file:
                wanted, rate, channels = file.frames, int(file.samplerate), int(file.channels)
                _require_possible(path, wanted, channels, rate)
                blocks = file.blocks(BLOCK, dtype="float32", always_2d=True)
                means = [block.mean(axis=1) for block in blocks]  # of [T, channels]
        except (soundfile.SoundFileError, OSError, RuntimeError, TypeError) as error:
            said = error.error_string if isinstance(error, soundfile.LibsndfileError) else str(error)
            reason = said.rstrip(".")
            raise DataError(f"{path}: cannot be read as sound ({reason}); save it again as .wav") from None
    mean = np.concatenate(means) if means else np.empty(0, np.float32)
    if len(mean) < wanted or cut:
        raise DataError(f"{path}: the sound was cut off: it is shorter than the header says; copy it again")
    if len(mean) == 0:
        raise DataError(f"{path}: there is no sound in this file; remove it")
    if not (finite := np.isfinite(mean)).all():
        at = int(np.flatnonzero(~finite)[0])
        raise DataError(f"{path}, sample {at + 1}: found {mean[at]}, expected a finite number; save the clip again")
    return Heard(mean, rate, channels)


def _require_possible(path: Path, samples: int, channels: int, rate: int) -> None:
    """A header may tell of more samples than any file holds, and of more a second than any device takes."""
    if rate > FASTEST:
        raise DataError(f"{path}: the header gives {rate:,} samples a second, more than {FASTEST:,}; save it again")
    if samples * channels > MOST_SAMPLES:
        raise DataError(
            f"{path}: the header gives {samples:,} samples in {channels} channels, more than the limit of "
            f"{MOST_SAMPLES:,}; cut the recording into clips"
        )


def is_cut(file: BinaryIO) -> bool:
    """Whether a .wav file has fewer samples than its header tells, or an .ogg file no last page. Libraries read what is
    there without a word."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(12)
    if head[:4] in (b"RIFF", b"RF64") and head[8:] == b"WAVE":
        return _wav_is_cut(file, size)
    return head[:4] == b"OggS" and _ogg_is_cut(file, size)


def _wav_is_cut(file: BinaryIO, size: int) -> bool:
    """By the length of the chunk `data`, in RF64 by that in `ds64`; one that was not known when writing began is very
    large."""
    long = 0
    while len(chunk := file.read(8)) == 8:
        told = int.from_bytes(chunk[4:], "little")
        if chunk[:4] == b"data":
            told = long if long and told >= STREAMED else told
            return (told < STREAMED or told == long) and told > size - file.tell()
        body = file.tell()
        if chunk[:4] == b"ds64":
            long = int.from_bytes(file.read(16)[8:], "little")
        file.seek(body + told + told % 2)
    return False


def _ogg_is_cut(file: BinaryIO, size: int) -> bool:
    """By the last page (RFC 3533): 27 bytes, the lengths of its segments, the segments; bit 2 of byte 5 is the end."""
    file.seek(max(0, size - OGG_PAGE))
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    whole = len(page) > 27 and len(page) >= 27 + page[26] + sum(page[27 : 27 + page[26]])
    return not whole or not page[5] & 4


def in_range(samples: NDArray[Any], place: str) -> NDArray[np.floating]:
    """Samples of an array between -1 and 1: whole numbers have the range of their type, which begins at 0 for uint8 and
    uint16, with silence in its middle.

    >>> in_range(np.array([0, 128, 192], np.uint8), "here").tolist()
    [-1.0, 0.0, 0.5]
    """
    if samples.dtype.kind == "f":
        return samples
    if samples.dtype.kind not in "iu" or samples.dtype.itemsize > 4:
        raise DataError(
            f"{place}: found sound of {samples.dtype}, expected int16, int32, uint8, or numbers from -1 to 1; "
            "convert it"
        )
    half = np.float32(2 ** (8 * samples.dtype.itemsize - 1))
    return samples / half - (1 if samples.dtype.kind == "u" else 0)


def features(
    samples: NDArray[Any], rate: int, reading: SoundReading, place: str = "the sound"
) -> NDArray[np.float32]:  # fmt: skip
    """Samples [T] as a sequence [T, 1], or as frames [M, D] of the log-spectrum; whole numbers become -1 to 1."""
    samples = in_range(samples, place)
    if reading.features == "samples":
        return samples.astype(np.float32)[:, None]  # [T, 1]
    length, hop = max(2, round(reading.frame * rate)), max(1, round(reading.hop * rate))
    if reading.features == "spectrum":
        return log_spectrum(samples, length, hop)
    return log_mel(samples, length, hop, reading.bands, rate)


def open_clips(files: Sequence[Path], folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    """Clips of one sample rate."""
    if answers == "series":
        return _open_pairs(files, folder, name, reading)
    found = named_files(files, folder, reading, answers)

    def read() -> Iterator[Labelled]:
        common: int | None = None
        for path, answer, group, part in found:
            samples, rate = read_clip(path)
            common = _same_rate(path, rate, common)
            yield Labelled(features(samples, rate, reading.sound), answer, str(path), group, part)

    return LabelledSource(name, "series", answers, read, {}, reading)


def _same_rate(path: Path, rate: int, common: int | None) -> int:
    if common not in (None, rate):
        raise DataError(
            f"{path}: has {rate} samples a second, but the previous files have {common}; convert all to the same rate"
        )
    return rate


def _open_pairs(files: Sequence[Path], folder: Path, name: str, reading: Reading) -> LabelledSource:
    noisy = {path.relative_to(folder / "noisy"): path for path in files if path.is_relative_to(folder / "noisy")}
    clean = {path.relative_to(folder / "clean"): path for path in files if path.is_relative_to(folder / "clean")}
    if not noisy or set(noisy) != set(clean):
        odd = sorted(map(str, set(noisy) ^ set(clean)))
        why = f"'{odd[0]}' is only in one of them" if odd else "there are none"
        raise DataError(f"{folder}: expected files of the same names in the folders noisy and clean; {why}")
    found = named_files(list(noisy.values()), folder / "noisy", reading, "none")

    def read() -> Iterator[Labelled]:
        common: int | None = None
        for path, _, group, part in found:
            short = path.relative_to(folder / "noisy")
            (x, rate), (y, other) = read_clip(path), read_clip(clean[short])
            common = _same_rate(clean[short], other, _same_rate(path, rate, common))
            if len(x) != len(y):
                raise DataError(
                    f"{path}: has {len(x)} samples, but its clean clip has {len(y)}; both need the same length"
                )
            yield Labelled(x[:, None], y[:, None], str(path), group, part)

    as_read = reading.updated({"sound.features": "samples"})
    return LabelledSource(name, "series", "series", read, {}, as_read)


READER = ReaderSpec(
    summary="clips of sound", suffixes=(".wav", ".flac", ".ogg"), gives="examples", read=open_clips, many=True
)
