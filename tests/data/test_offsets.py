"""Series and numbers that share a large offset are scaled as in exact arithmetic, whichever file they come from."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from unrolled.core.errors import DataError
from unrolled.data.codecs.labels import NumberScaler, SeriesScaler, fit_scaler
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT
from unrolled.data.labelled import check_series
from unrolled.data.labelled_prepare import prepare_labelled
from unrolled.data.noise import add_noise
from unrolled.data.reading import Reading
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.split import row_key

OFFSET = 1e6
RANDOM = np.random.default_rng(0)
WAVES = 0.01 * RANDOM.standard_normal((40, 12))  # single precision has steps of 0.06 at the offset


def lines_file(folder: Path) -> Path:
    path = folder / "waves.jsonl"
    rows = [{"series": (wave + OFFSET + i).tolist(), "label": "ab"[i % 2]} for i, wave in enumerate(WAVES)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def long_file(folder: Path) -> Path:
    path = folder / "long.csv"
    with path.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["id", "value", "label"])
        for i, wave in enumerate(WAVES):
            writer.writerows([f"s{i}", repr(float(value + OFFSET + i)), "ab"[i % 2]] for value in wave)
    return path


def arrays_file(folder: Path) -> Path:
    path = folder / "waves.npz"
    x = WAVES + OFFSET + np.arange(40)[:, None]
    np.savez(path, x=x[..., None], y=np.array(["ab"[i % 2] for i in range(40)]))
    return path


READINGS = {lines_file: Reading(column="series", target="label"), arrays_file: Reading(),
            long_file: Reading(id="id", column="value", target="label")}  # fmt: skip


@pytest.mark.parametrize("file", READINGS)
def test_what_varies_by_less_than_the_rounding_of_its_level_is_kept(file, tmp_path: Path) -> None:
    source = open_labelled(str(file(tmp_path)), READINGS[file], "class")
    found = prepare_labelled(source, DataConfig(split="60/20/20"))
    rows = found.sections["train"].rows
    exact = WAVES[rows] + rows[:, None]
    exact = (exact - exact.mean()) / exact.std()
    x = found.sections["train"].values(INPUT).reshape(len(rows), 12)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, exact, atol=2e-6)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("kind", [NumberScaler, SeriesScaler])
def test_mean_and_standard_deviation_far_from_zero(kind, offset: float) -> None:
    values = RANDOM.standard_normal((5000, 2)) * [1.0, 0.01] + offset
    scaler = fit_scaler(kind, np.split(values, 500), "here")
    exact = (values - offset).astype(np.longdouble)
    np.testing.assert_allclose(scaler.std, exact.std(0).astype(float), rtol=1e-8)
    np.testing.assert_allclose(scaler.mean - offset, exact.mean(0).astype(float), atol=1e-9)


def test_noise_is_put_on_what_varies() -> None:
    clean = WAVES[:1].T + OFFSET
    noisy = add_noise(clean, "white", 20.0, np.random.default_rng(0))
    plain = add_noise(WAVES[:1].T, "white", 20.0, np.random.default_rng(0))
    np.testing.assert_allclose(noisy - OFFSET, plain, atol=1e-9)


def test_a_series_is_in_the_same_part_in_either_precision() -> None:
    assert row_key(WAVES[0], None, 3) == row_key(WAVES[0].astype(np.float32), None, 3)


def test_numbers_beyond_single_precision_are_refused() -> None:
    with pytest.raises(DataError, match=r"here, step 2, channel 1: found 1e\+200"):
        check_series(np.array([[1.0], [1e200]]), "here")
