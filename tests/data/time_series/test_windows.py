"""Windows of series: which steps have targets, and which these are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples
from unrolled.data.reading import as_names
from unrolled.data.time_series.prepare import FIRST, LAST, prepare_series
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.spans import Asked
from unrolled.data.time_series.windows import FEWEST_PLACES, TARGETS, Cutter, SeriesWindows, Spots, origins


def _cutter(horizon: int, lookback: int, every: bool, n: int = 3000) -> Cutter:
    asked = Asked(horizon, lookback, 1, "none", "none", None, None, None)
    found = prepare_series(np.arange(n, dtype=float), SeriesReading(target=as_names(["value"])), asked, DataConfig())
    return Cutter(found.sections["train"], found.codecs["series"], every)


@pytest.mark.parametrize(("horizon", "lookback", "n_places"), [(4, 20, 11), (600, 100, FEWEST_PLACES), (100, 200, 35)])
def test_targets_follow_the_steps_that_they_belong_to(horizon: int, lookback: int, n_places: int) -> None:
    cutter = _cutter(horizon, lookback, every=True)
    batch = cutter.batch(Spots(np.array([0, 0]), np.array([lookback + 50, lookback])))
    assert batch.at is not None
    assert batch.at.shape == (2, n_places)
    assert n_places * horizon <= max(TARGETS, FEWEST_PLACES * horizon)
    assert int(batch.at[0, 0]) == lookback - 1
    steps = batch.x[..., 0].gather(1, batch.at)  # [2, K] the value of a step is its number
    wanted = steps[..., None] + 1 + torch.arange(horizon)
    assert batch.y.equal(wanted.float())
    assert int(batch.at.min()) >= min(lookback // 2, 64) - 1


def test_a_window_without_places_has_targets_behind_its_end() -> None:
    batch = _cutter(3, 10, every=False).batch(Spots(np.array([0, 0]), np.array([30, 4])))
    assert batch.at is not None
    assert batch.at.tolist() == [[9], [3]]
    assert batch.y.tolist() == [[[30, 31, 32]], [[4, 5, 6]]]


def test_a_short_window_beside_a_long_one_has_the_targets_that_there_are() -> None:
    batch = _cutter(2, 12, every=True).batch(Spots(np.array([0, 0]), np.array([40, 3])))
    assert batch.y_mask is not None
    assert batch.y_mask[0].all()
    assert batch.y_mask[1].any(1).tolist() == [True] * 3 + [False] * 4


def test_batches_of_training_have_no_target_behind_the_span() -> None:
    sampler = SeriesWindows(_cutter(5, 30, every=True, n=200), 16, seed=0)
    last = int(np.asarray(sampler.cutter.section.columns["last"])[0])
    for step in range(sampler.steps_per_epoch):
        batch = sampler.batch(step)
        assert batch.y_mask is not None
        assert float(batch.y[batch.y_mask].max()) < last


@pytest.mark.parametrize("stride", [1, 3])
def test_forecasts_of_a_span_are_counted_back_from_its_end(stride: int) -> None:
    section = _cutter(4, 10, every=False).section
    first, last = np.array([0, 10, 7, 5]), np.array([9, 31, 9, 6])
    spans = Examples(section.fields, {**section.columns, FIRST: first, LAST: last})
    found = origins(spans, _cutter(4, 10, every=False).codec, stride)
    wanted = [
        (i, end)
        for i, (a, b) in enumerate(zip(first.tolist(), last.tolist()))
        for end in sorted(range(b - 4, max(a, 1) - 1, -stride))
    ]
    assert [*zip(found.series.tolist(), found.ends.tolist())] == wanted
