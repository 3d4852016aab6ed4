"""Samples as levels and back."""

from __future__ import annotations

import math

import numpy as np

from unrolled.data.codecs.samples import Samples, compress, expand


def test_mu_law_is_the_equation() -> None:
    for x in (-1.0, -0.3, 0.0, 1e-4, 0.5, 1.0):
        wanted = math.copysign(math.log(1 + 255 * abs(x)) / math.log(256), x) if x else 0.0
        assert math.isclose(float(compress(np.array(x))), wanted, abs_tol=1e-12)
        assert math.isclose(float(expand(compress(np.array(x)))), x, abs_tol=1e-12)


def test_there_and_back_stays_in_its_level() -> None:
    random = np.random.default_rng(0)
    for bits in (8, 16):
        codec, x = Samples(bits), random.uniform(-1, 1, 5000)
        ids = codec.encode(x)
        assert ids.min() >= 4
        assert ids.max() < codec.size
        assert np.array_equal(codec.encode(codec.decode(ids)), ids)
        u = compress(x) if bits == 8 else x
        assert np.abs(codec.places(ids) - u).max() <= 1 / (codec.levels - 1) + 1e-6


def test_what_is_too_loud_is_cut_off() -> None:
    codec = Samples(16)
    assert codec.decode(codec.encode(np.array([-3.0, 2.0]))).tolist() == [-1.0, 1.0]
