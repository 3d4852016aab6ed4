"""Intervals and differences: against textbooks, exact tests, sacrebleu; honest where there are few examples."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from unrolled.comparison.statistics import MOST_UNITS, Sample, flipped, in_common, interval, is_better
from unrolled.core.metric import Metric
from unrolled.objectives.written import bleu_statistics, chrf_statistics

LOSS, GAIN = Metric("nats"), Metric("accuracy", larger=True)


def sample(random: np.random.Generator, mean: float, units: int = 400, seeds: int = 1) -> Sample:
    return ratios(random.normal(mean, 1.0, (seeds, units)) * 10, np.full((seeds, units), 10.0))


def ratios(totals: np.ndarray, counts: np.ndarray) -> Sample:
    return Sample(np.stack([totals, counts], axis=2))


def rates(wrong: np.ndarray) -> Sample:
    """[S, U] of 0 and 1."""
    return Sample(np.stack([wrong, np.ones_like(wrong)], axis=2).astype(float), "rate")


def test_the_interval_of_a_mean_is_that_of_student():
    one = ratios(np.array([[1.0, 2.0, 4.0, 5.0, 8.0]]), np.ones((1, 5)))
    error = np.std([1, 2, 4, 5, 8], ddof=1) / np.sqrt(5)
    assert interval(one) == pytest.approx((4 - 2.7764451 * error, 4 + 2.7764451 * error), rel=1e-6)
    many = sample(np.random.default_rng(0), 2.0)
    error = (many.statistics[..., 0] / 10).std(ddof=1) / np.sqrt(400)
    assert interval(many) == pytest.approx((many.score - 1.9659 * error, many.score + 1.9659 * error), rel=1e-4)


@pytest.mark.parametrize(("wrong", "n", "low", "high"), [
    (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 10, 0.0179, 0.4042), (3, 30, 0.0346, 0.2562),
])  # fmt: skip
def test_the_interval_of_a_rate_is_that_of_wilson_and_never_nothing(wrong, n, low, high):
    found = interval(rates(np.arange(n)[None] < wrong))
    assert found == pytest.approx((low, high), abs=1e-4)


def test_one_example_has_no_interval():
    assert interval(rates(np.zeros((1, 1)))) is None


@pytest.mark.parametrize(("n", "p"), [(5, 0.1), (10, 0.05), (10, 0.3), (30, 0.1)])
def test_the_interval_of_a_rate_covers_it_as_often_as_it_says(n, p):
    """Over all numbers of wrong answers with their probabilities: nothing is drawn."""
    ends = [interval(rates(np.arange(n)[None] < k)) for k in range(n + 1)]
    covered = sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if ends[k][0] <= p <= ends[k][1])
    assert covered > 0.9


def test_sentences_that_are_wrong_as_a_whole_count_once():
    wrong = np.zeros((1, 40))
    wrong[0, :4] = 10
    tied = Sample(np.stack([wrong, np.full((1, 40), 10.0)], axis=2), "rate")
    assert interval(tied) == pytest.approx(interval(rates(wrong > 0)), rel=1e-6)
    none = Sample(np.stack([np.zeros((1, 40)), np.full((1, 40), 10.0)], axis=2), "rate")
    assert interval(none) == pytest.approx(interval(rates(np.zeros((1, 40)))), rel=1e-6)


def test_units_count_by_their_tokens():
    one = ratios(np.array([[1.0, 30.0]]), np.array([[1.0, 10.0]]))
    assert one.score == pytest.approx(31 / 11)


def test_a_difference_that_every_unit_shows_is_significant_though_the_intervals_overlap():
    random = np.random.default_rng(1)
    one = sample(random, 2.0)
    totals, counts = one.statistics[..., 0], one.statistics[..., 1]
    other = ratios(totals + random.normal(0.5, 0.1, totals.shape), counts)
    assert interval(one)[1] > interval(other)[0]
    assert is_better(LOSS, one, other)
    assert not is_better(LOSS, other, one)


def test_equal_models_are_not_told_apart():
    random = np.random.default_rng(2)
    one, other = sample(random, 2.0), sample(random, 2.0)
    assert not is_better(LOSS, one, other) and not is_better(LOSS, other, one)
    assert not is_better(LOSS, one, one)


@pytest.mark.parametrize(("only_one", "only_other"), [(0, 5), (0, 6), (1, 7), (1, 9), (2, 9), (5, 12)])
def test_of_right_and_wrong_it_is_the_test_of_mcnemar(only_one, only_other):
    """Mid-p: twice the tail of the binomial distribution, the seen number by half."""
    n, k = only_one + only_other, min(only_one, only_other)
    expected = 2 * (sum(comb(n, i) for i in range(k)) + comb(n, k) / 2) / 2**n
    d = np.array([1.0] * only_one + [-1.0] * only_other + [0.0] * 7)
    assert flipped(d) == pytest.approx(expected, abs=1e-12 if n <= 12 else 0.012)
    one, other = rates((d > 0)[None]), rates((d < 0)[None])
    assert is_better(LOSS, one, other) == (expected < 0.05)


def test_a_few_examples_are_no_proof():
    """Four of ten examples better and none worse: a bootstrap of the examples calls that sure."""
    one, other = rates(np.zeros((1, 10))), rates(np.arange(10)[None] < 4)
    assert not is_better(LOSS, one, other)


def test_equal_models_are_seldom_called_different():
    random = np.random.default_rng(8)
    called = 0
    for _ in range(300):
        one, other = (rates(random.random((1, 10)) < 0.3) for _ in range(2))
        called += is_better(LOSS, one, other) or is_better(LOSS, other, one)
    assert called <= 0.05 * 300


def test_seeds_that_disagree_widen_the_interval_and_the_difference():
    totals = np.full((3, 100), 20.0)
    sure = ratios(totals, np.full((3, 100), 10.0))
    spread = ratios(totals * np.array([[0.9], [1.0], [1.1]]), np.full((3, 100), 10.0))
    assert np.ptp(interval(sure)) < 1e-9
    assert interval(spread) == pytest.approx((2 - 4.3026527 * 0.2 / 3**0.5, 2 + 4.3026527 * 0.2 / 3**0.5), rel=1e-5)
    assert spread.spread == pytest.approx(0.2)
    assert ratios(totals[:1], totals[:1]).spread is None
    better = ratios(totals * 0.95, np.full((3, 100), 10.0))
    assert is_better(LOSS, better, sure) and not is_better(LOSS, better, spread)


def test_many_units_are_put_together():
    random = np.random.default_rng(3)
    many = sample(random, 2.0, units=3 * MOST_UNITS + 7)
    other = ratios(many.statistics[..., 0] + 1.0, many.statistics[..., 1])
    assert is_better(LOSS, many, other) and not is_better(LOSS, other, many)


def test_other_data_is_refused():
    random = np.random.default_rng(4)
    with pytest.raises(ValueError, match="different data"):
        is_better(LOSS, sample(random, 1.0, 10), sample(random, 1.0, 11))


def test_a_metric_says_which_way_is_better():
    random = np.random.default_rng(5)
    low, high = sample(random, 1.0), sample(random, 2.0)
    assert is_better(LOSS, low, high) and not is_better(LOSS, high, low)
    assert is_better(GAIN, high, low) and not is_better(GAIN, low, high)


def test_models_are_compared_on_the_units_that_all_were_measured_on():
    random = np.random.default_rng(6)
    one, other = sample(random, 1.0, units=50), sample(random, 2.0, units=50)
    one.statistics[0, 30:] = np.nan
    common = in_common({"one": one, "other": other})
    assert {each.statistics.shape for each in common.values()} == {(1, 30, 2)}
    assert common["other"].score == pytest.approx(other.statistics[0, :30, 0].mean() / 10)
    other.statistics[0, 30:, 0] = -1e6  # where only one was measured, it does not matter
    assert is_better(LOSS, one, other)
    assert interval(one) == interval(common["one"])


def test_the_value_of_a_unit_is_from_the_metric_without_it():
    """Not the metric of a text by itself: what sacrebleu says of all texts and of all but one."""
    random = np.random.default_rng(7)
    words = ["the cat", "a dog sat", "on the mat", "it rains", "we see two small cats", "no"]
    references = [" ".join(random.choice(words, 3)) for _ in range(12)]
    written = [" ".join(random.permutation(text.split())[: len(text.split()) - 1]) for text in references]
    for name, make, metric in (("chrf", chrf_statistics, CHRF()), ("bleu", bleu_statistics, BLEU())):
        found = Sample(make(written, references)[None], name)
        whole = metric.corpus_score(written, [references]).score
        without = [metric.corpus_score(written[:i] + written[i + 1 :], [references[:i] + references[i + 1 :]]).score
                   for i in range(12)]  # fmt: skip
        assert found.units == pytest.approx(12 * whole - 11 * np.array(without), abs=1e-9)
        low, high = interval(found)
        assert low < found.score < high
