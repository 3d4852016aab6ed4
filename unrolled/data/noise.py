"""Noise that is put on clean series, so that cleaning them can be learned.

    x_{t,d} = c_{t,d} + s_d e_{t,d},    s_d = std_t(c_{t,d}) 10^(-snr / 20)        snr in decibels, for each channel

    white:  e_t independent, normal with variance 1
    pink:   the same with each frequency f > 0 weakened by 1 / sqrt(f), and none at f = 0; variance 1 again

Noise is a pure function of what it is drawn for: of the series itself where it is to stay the same (validation, test),
of (seed, epoch, number of the example) where training sees it fresh every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.batch import Batch
from unrolled.core.errors import DataError
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Noise
from unrolled.data.sampler import Sampler
from unrolled.data.sources.pieces import windows_of
from unrolled.data.split import row_key

Colour = Literal["white", "pink"]


def draw(random: np.random.Generator, shape: tuple[int, int], colour: Colour) -> NDArray[np.float64]:
    """e [T, D]."""
    e = random.standard_normal(shape)
    T = shape[0]
    if colour == "white" or T < 2:
        return e
    f = np.arange(T // 2 + 1)  # whole waves in T steps
    weaker = np.where(f > 0, 1 / np.sqrt(np.maximum(f, 1)), 0.0)
    both = np.where((f == 0) | (2 * f == T), 1, 2)  # all but these stand for two frequencies, f and -f
    power = (both * weaker**2).sum() / T
    return np.asarray(np.fft.irfft(np.fft.rfft(e, axis=0) * weaker[:, None], T, axis=0) / np.sqrt(power))


def add_noise(
    clean: NDArray[np.floating], colour: Colour, snr: float, random: np.random.Generator
) -> NDArray[np.float64]:
    """[T, D] in any unit; a channel that never varies stays as it is."""
    s = clean.astype(np.float64).std(axis=0) * 10 ** (-snr / 20)  # [D]
    return clean.astype(np.float64) + s * draw(random, clean.shape, colour)  # type: ignore[arg-type]


def with_noise(clean: LabelledSource, asked: Noise, window: int | None = None) -> LabelledSource:
    """Series, or windows of them, with noise that stays the same as inputs, and as they are as answers."""
    if clean.kind != "series":
        raise DataError(
            f"{clean.name}: noise can only be added to series, but this holds {clean.kind}; give numbers or sound"
        )
    assert asked.noise is not None
    colour: Colour = asked.noise

    def read() -> Iterator[Labelled]:
        for example in clean:
            for piece in windows_of(example._replace(answer=example.input), window):
                random = np.random.Generator(np.random.PCG64(row_key(piece.input, None, 0)))
                yield piece._replace(input=add_noise(piece.input, colour, asked.snr, random))

        result.notes.update(clean.notes)

    note = f"{colour} noise was added to the series at {asked.snr:g} dB; the targets are the clean series"
    result = replace(clean, answers="series", read=read, notes={note: None})
    return result


class FreshNoise:
    """Training batches whose noise is drawn anew in every epoch; inputs and answers are on one scale."""

    def __init__(self, batches: Sampler, colour: Colour, snr: float) -> None:
        self.batches, self.colour, self.snr = batches, colour, snr
        self.steps_per_epoch, self.tokens_per_step = batches.steps_per_epoch, batches.tokens_per_step
        self.notes = batches.notes

    def batch(self, step: int) -> Batch:
        batch, epoch = self.batches.batch(step), self.batches.epoch(step)
        assert batch.rows is not None
        assert batch.mask is not None
        x = batch.x.clone()  # [B, T, D]
        for i, (row, n) in enumerate(zip(batch.rows.tolist(), batch.mask.sum(1).tolist())):
            number = int(self.batches.examples.rows[row])
            random = np.random.Generator(np.random.PCG64([self.batches.seed, epoch, number]))
            x[i, :n] = torch.from_numpy(add_noise(batch.y[i, :n].numpy(), self.colour, self.snr, random))
        return replace(batch, x=x)
