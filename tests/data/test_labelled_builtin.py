"""Built-in labelled data: what the equations say, and the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from unrolled.core.errors import UsageError
from unrolled.data.config import DataConfig
from unrolled.data.reading import Reading
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.sources.text import open_source


def read(name, answers):
    return list(open_labelled(f"builtin:{name}", Reading(), answers))


def test_digits():
    found = read("digits", "class")
    assert len(found) == 1797
    assert found[0].input.shape == (8, 8) and found[0].input.min() >= 0 and found[0].input.max() <= 1
    assert sorted({example.answer for example in found}) == list("0123456789")


def test_adding():
    for x, y, *_ in read("adding,length=31,examples=50", "numbers"):
        assert x.shape == (31, 2)
        marks = np.flatnonzero(x[:, 1])
        assert len(marks) == 2 and marks[0] < 15 <= marks[1]
        np.testing.assert_allclose(y, [x[marks, 0].sum()], rtol=1e-6)


def test_maximum():
    for x, y, *_ in read("maximum,examples=20", "numbers"):
        assert y[0] == x.max() and x.shape == (50, 1)


def test_sinusoids_are_at_the_ratio_that_was_asked_for():
    for snr in (0, 6):
        found = read(f"sinusoids,examples=100,snr={snr}", "series")
        clean, noise = (np.concatenate(v) for v in zip(*((e.answer, e.input - e.answer) for e in found)))
        np.testing.assert_allclose((clean**2).mean(), 1, rtol=1e-3)
        assert abs(10 * np.log10((clean**2).mean() / (noise**2).mean()) - snr) < 0.2


DIGESTS = {
    "adding,examples=20": "2dd963f68836ded8",
    "maximum,examples=20": "5951c5e866e5610c",
    "sinusoids,examples=20": "a82678f430c7666f",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_the_same_everywhere(name):
    answers = "series" if name.startswith("sin") else "numbers"
    digest = hashlib.sha256()
    for example in read(name, answers):
        digest.update(example.input.astype("<f4").tobytes() + example.answer.astype("<f4").tobytes())
    assert digest.hexdigest()[:16] == DIGESTS[name]
    first, other = (read(f"{name},seed={seed}", answers)[0].input for seed in (0, 1))
    assert not np.array_equal(first, other)


def test_settings_and_names_are_checked():
    for name, answers, expected in (
        ("adding", "class", "the targets are numbers, not class"),
        ("adding,lenght=3", "numbers", "there is no setting 'lenght'; did you mean 'length'"),
        ("adding,length=x", "numbers", "length = 'x': expected an integer"),
        ("adding,length=1", "numbers", "length = '1': expected an integer >= 2"),
        ("digit", "class", "there is no built-in data 'digit'; did you mean 'digits'"),
        ("digits,n=3", "class", "digits has no settings"),
    ):
        with pytest.raises(UsageError, match=expected):
            read(name, answers)


def test_they_are_no_text():
    with pytest.raises(UsageError, match="series with targets, no text"):
        open_source("builtin:digits", DataConfig())
    assert read("unicode-names", "class")[0].answer
