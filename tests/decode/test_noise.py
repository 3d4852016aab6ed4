"""The noise is uniform, and a function of (seed, row, tick) alone."""

from __future__ import annotations

import numpy as np
import torch

from unrolled.decode.noise import BLOCK, Noise, uniform


def numbers(seed: int, rows: range, ticks: range) -> np.ndarray:
    return uniform(seed, np.array(rows, dtype=np.uint64), np.array(ticks, dtype=np.uint64))


def split_mix(state: int) -> tuple[int, int]:
    """The generator as its authors print it, in unbounded integers."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return state, z ^ (z >> 31)


def test_it_is_splitmix64() -> None:
    state, outputs = 1234567, []
    for _ in range(3):
        state, z = split_mix(state)
        outputs.append(z)
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]  # published for this seed
    state = split_mix(5 - 0x9E3779B97F4A7C15)[1]  # mix(5) is the key of seed 5
    for _ in range(4):
        state, row_key = split_mix(state)
    state = row_key  # of row 3
    for tick in range(6):
        state, z = split_mix(state)
        assert numbers(5, range(3, 4), range(tick, tick + 1)).item() == (z >> 12) * 2.0**-52


def chi_square(cells: np.ndarray) -> float:
    expected = cells.sum() / cells.size
    return float(((cells - expected) ** 2 / expected).sum())


def test_uniform_along_every_axis() -> None:
    along_ticks = numbers(0, range(1), range(100_000))
    along_rows = numbers(0, range(100_000), range(1))
    along_seeds = np.concatenate([numbers(seed, range(1), range(1)) for seed in range(20_000)])
    for u in (along_ticks, along_rows, along_seeds):
        assert u.min() >= 0
        assert u.max() < 1
        cells = np.histogram(u, bins=100, range=(0, 1))[0]
        assert 60 < chi_square(cells) < 150  # 99 degrees of freedom: 3.5 sigma either way


def test_neighbours_are_independent() -> None:
    u = numbers(7, range(400), range(400))
    pairs = [(u[:, 1:], u[:, :-1]), (u[1:], u[:-1]), (u, numbers(8, range(400), range(400))), (u, u.T)]
    for i, (a, b) in enumerate(pairs):
        if i == 3:
            a, b = a[np.triu_indices(400, 1)], b[np.triu_indices(400, 1)]
        cells = np.histogram2d(a.ravel(), b.ravel(), bins=10, range=[[0, 1], [0, 1]])[0]
        assert 55 < chi_square(cells) < 155


def test_the_largest_number_never_reaches_one() -> None:
    u = (2**52 - 1) * 2.0**-52
    for x in np.random.default_rng(0).uniform(1e-6, 1e6, 1000):
        assert u * x < x


def test_a_row_has_its_noise_alone_or_in_a_batch() -> None:
    together, alone = Noise(3, torch.tensor([4, 9, 2**32 + 9])), Noise(3, torch.tensor([9]))
    for tick in (0, BLOCK - 1, BLOCK, 5, 10 * BLOCK + 1):  # also backwards
        assert together(tick)[1] == alone(tick)[0]
        assert together(tick)[1] != together(tick)[2]


def test_seeds_beyond_64_bits_go_round() -> None:
    rows, ticks = np.arange(2, dtype=np.uint64), np.arange(3, dtype=np.uint64)
    for seed in (5, -1):
        assert (uniform(seed, rows, ticks) == uniform(seed + 2**64, rows, ticks)).all()
