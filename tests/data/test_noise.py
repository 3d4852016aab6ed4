"""Noise that is put on clean series: its colour and strength, the same where it must be, fresh where it may be."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.errors import DataError
from unrolled.data.codecs.labels import SeriesScaler
from unrolled.data.collate import BESIDE
from unrolled.data.labelled_prepare import encode_examples
from unrolled.data.noise import FreshNoise, add_noise, draw, with_noise
from unrolled.data.reading import Noise, Reading
from unrolled.data.sampler import Pooled
from unrolled.data.sources.open_labelled import open_labelled


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def sines(n: int = 6, T: int = 40) -> np.ndarray:
    t = np.arange(T)[:, None] / np.array([3.0, 7.0])
    return np.stack([(1 + i) * np.sin(t + i) for i in range(n)]).astype(np.float32)  # [n, T, 2]


@pytest.mark.parametrize("colour", ["white", "pink"])
@pytest.mark.parametrize("T", [64, 65])
def test_noise_has_variance_one_and_its_colour(colour, T):
    e = draw(random(), (T, 4000), colour)  # [T, D]
    assert np.square(e).mean() == pytest.approx(1.0, abs=0.02)
    power = np.square(np.abs(np.fft.rfft(e, axis=0))).mean(axis=1)
    assert power[2] / power[16] == pytest.approx({"white": 1.0, "pink": 8.0}[colour], rel=0.1)
    if colour == "pink":
        assert power[0] < 1e-20
    assert draw(random(), (1, 2), colour).shape == (1, 2)


def test_the_strength_is_as_asked_for_in_each_channel():
    clean = np.stack([np.sin(np.arange(9000) / 5), 100 + 30 * np.cos(np.arange(9000) / 9), np.full(9000, 3.0)], 1)
    noisy = add_noise(clean, "white", 6.0, random())
    got = 10 * np.log10(clean.var(axis=0)[:2] / np.square(noisy - clean).mean(axis=0)[:2])
    assert got == pytest.approx([6.0, 6.0], abs=0.2)
    assert (noisy[:, 2] == 3).all()


def opened(**settings):
    return with_noise(open_labelled((sines(),), Reading(), "none"), Noise(noise="white", snr=3.0), **settings)


def test_noise_that_stays_belongs_to_the_series():
    first, again = list(opened()), list(opened())
    for one, other, clean in zip(first, again, sines(), strict=True):
        assert np.array_equal(one.input, other.input)
        assert np.array_equal(one.answer, clean)
        assert not np.array_equal(one.input, clean)
    notes = opened()
    list(notes)
    assert any("white noise" in note and "3 dB" in note for note in notes.notes)


def test_series_are_cut_into_windows():
    found = list(opened(window=15))
    assert [len(example.input) for example in found[:3]] == [15, 15, 10]
    assert np.array_equal(np.concatenate([example.answer for example in found[:3]]), sines()[0])
    assert "step 16" in found[1].place


def test_texts_are_refused():
    clean = open_labelled([{"text": "a b"}, {"text": "c"}], Reading(), "none")
    with pytest.raises(DataError, match="noise can only be added to series"):
        with_noise(clean, Noise(noise="pink"))


def test_fresh_noise_is_a_function_of_seed_epoch_and_example():
    examples = list(opened())
    codec = SeriesScaler([0.0, 0.0], [1.0, 1.0])
    section = encode_examples(examples, codec, codec)

    def batches(seed: int, section=section) -> FreshNoise:
        return FreshNoise(Pooled(section, 4, BESIDE, seed), "white", 3.0)

    def by_example(fresh: FreshNoise, epoch: int) -> dict[int, np.ndarray]:
        steps = range(epoch * fresh.steps_per_epoch, (epoch + 1) * fresh.steps_per_epoch)
        taken = [fresh.batch(step) for step in steps]
        return {int(fresh.batches.examples.rows[r]): x.numpy() for b in taken for r, x in zip(b.rows, b.x, strict=True)}

    first = by_example(batches(0), 0)
    for row, x in by_example(batches(0), 0).items():
        assert np.array_equal(x, first[row])
    for other in (by_example(batches(0), 1), by_example(batches(1), 0)):
        assert all(not np.array_equal(x, first[row]) for row, x in other.items())
    alone = by_example(batches(0, section.take(np.array([4]))), 0)
    assert np.array_equal(alone[4], first[4])
    errors = np.square(np.stack([first[i] - sines()[i] for i in range(6)])).mean((1, 2))
    assert errors == pytest.approx(sines().var(axis=1).mean(1) * 10 ** (-0.3), rel=0.5)
