"""Intervals: against what is known of means, pairing, and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.comparison.statistics import MOST_UNITS, Sample, draw_scores, interval, is_below


def sample(random: np.random.Generator, mean: float, units: int = 400, seeds: int = 1) -> Sample:
    return Sample(random.normal(mean, 1.0, (seeds, units)) * 10, np.full((seeds, units), 10.0))


def test_the_interval_of_a_mean_is_the_one_of_the_textbook():
    one = sample(np.random.default_rng(0), 2.0)
    low, high = interval(draw_scores({"one": one})["one"])
    error = (one.totals / one.counts).std(ddof=1) / np.sqrt(400)
    assert low == pytest.approx(one.score - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(one.score + 1.96 * error, abs=0.15 * error)


def test_units_count_by_their_tokens():
    one = Sample(np.array([[1.0, 30.0]]), np.array([[1.0, 10.0]]))
    assert one.score == pytest.approx(31 / 11)


def test_a_difference_that_every_unit_shows_is_sure_though_the_intervals_overlap():
    random = np.random.default_rng(1)
    one = sample(random, 2.0)
    other = Sample(one.totals + random.normal(0.5, 0.1, one.totals.shape), one.counts)
    drawn = draw_scores({"one": one, "other": other})
    assert interval(drawn["one"])[1] > interval(drawn["other"])[0]
    assert is_below(drawn["one"], drawn["other"])
    assert not is_below(drawn["other"], drawn["one"])


def test_equal_models_are_not_told_apart():
    random = np.random.default_rng(2)
    drawn = draw_scores({"one": sample(random, 2.0), "other": sample(random, 2.0)})
    assert not is_below(drawn["one"], drawn["other"])
    assert not is_below(drawn["other"], drawn["one"])


def test_seeds_that_disagree_widen_the_interval():
    totals = np.full((3, 100), 20.0)
    sure = Sample(totals, np.full((3, 100), 10.0))
    spread = Sample(totals * np.array([[0.9], [1.0], [1.1]]), sure.counts)
    drawn = draw_scores({"sure": sure, "spread": spread})
    assert np.ptp(drawn["sure"]) < 1e-9
    assert interval(drawn["spread"])[1] - interval(drawn["spread"])[0] > 0.1
    assert spread.spread == pytest.approx(0.2)
    assert Sample(totals[:1], totals[:1]).spread is None


def test_many_units_are_put_together_without_changing_the_score():
    many = sample(np.random.default_rng(3), 2.0, units=3 * MOST_UNITS + 7)
    assert draw_scores({"many": many}, draws=50)["many"].mean() == pytest.approx(many.score, abs=0.1)


def test_other_data_is_refused():
    random = np.random.default_rng(4)
    with pytest.raises(ValueError, match="different data"):
        draw_scores({"one": sample(random, 1.0, 10), "other": sample(random, 1.0, 11)})
