"""Intervals: against what is known of means, pairing, and seeds."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from unrolled.comparison.statistics import MOST_UNITS, Sample, draw_scores, in_common, interval, is_better
from unrolled.core.metric import Metric
from unrolled.objectives.written import bleu_statistics, chrf_statistics

LOSS, GAIN = Metric("nats"), Metric("accuracy", larger=True)


def sample(random: np.random.Generator, mean: float, units: int = 400, seeds: int = 1) -> Sample:
    return ratios(random.normal(mean, 1.0, (seeds, units)) * 10, np.full((seeds, units), 10.0))


def ratios(totals: np.ndarray, counts: np.ndarray) -> Sample:
    return Sample(np.stack([totals, counts], axis=2))


def test_the_interval_of_a_mean_is_the_one_of_the_textbook():
    one = sample(np.random.default_rng(0), 2.0)
    low, high = interval(draw_scores({"one": one})["one"])
    error = (one.statistics[..., 0] / one.statistics[..., 1]).std(ddof=1) / np.sqrt(400)
    assert low == pytest.approx(one.score - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(one.score + 1.96 * error, abs=0.15 * error)


def test_units_count_by_their_tokens():
    one = ratios(np.array([[1.0, 30.0]]), np.array([[1.0, 10.0]]))
    assert one.score == pytest.approx(31 / 11)


def test_a_difference_that_every_unit_shows_is_sure_though_the_intervals_overlap():
    random = np.random.default_rng(1)
    one = sample(random, 2.0)
    totals, counts = one.statistics[..., 0], one.statistics[..., 1]
    other = ratios(totals + random.normal(0.5, 0.1, totals.shape), counts)
    drawn = draw_scores({"one": one, "other": other})
    assert interval(drawn["one"])[1] > interval(drawn["other"])[0]
    assert is_better(LOSS, drawn["one"], drawn["other"])
    assert not is_better(LOSS, drawn["other"], drawn["one"])


def test_equal_models_are_not_told_apart():
    random = np.random.default_rng(2)
    drawn = draw_scores({"one": sample(random, 2.0), "other": sample(random, 2.0)})
    assert not is_better(LOSS, drawn["one"], drawn["other"])
    assert not is_better(LOSS, drawn["other"], drawn["one"])


def test_seeds_that_disagree_widen_the_interval():
    totals = np.full((3, 100), 20.0)
    sure = ratios(totals, np.full((3, 100), 10.0))
    spread = ratios(totals * np.array([[0.9], [1.0], [1.1]]), np.full((3, 100), 10.0))
    drawn = draw_scores({"sure": sure, "spread": spread})
    assert np.ptp(drawn["sure"]) < 1e-9
    assert interval(drawn["spread"])[1] - interval(drawn["spread"])[0] > 0.1
    assert spread.spread == pytest.approx(0.2)
    assert ratios(totals[:1], totals[:1]).spread is None


def test_many_units_are_put_together_without_changing_the_score():
    many = sample(np.random.default_rng(3), 2.0, units=3 * MOST_UNITS + 7)
    assert draw_scores({"many": many}, draws=50)["many"].mean() == pytest.approx(many.score, abs=0.1)


def test_other_data_is_refused():
    random = np.random.default_rng(4)
    with pytest.raises(ValueError, match="different data"):
        draw_scores({"one": sample(random, 1.0, 10), "other": sample(random, 1.0, 11)})


def test_a_metric_says_which_way_is_better():
    random = np.random.default_rng(5)
    drawn = draw_scores({"low": sample(random, 1.0), "high": sample(random, 2.0)})
    assert is_better(LOSS, drawn["low"], drawn["high"]) and not is_better(LOSS, drawn["high"], drawn["low"])
    assert is_better(GAIN, drawn["high"], drawn["low"]) and not is_better(GAIN, drawn["low"], drawn["high"])


def test_models_are_compared_on_the_units_that_all_were_measured_on():
    random = np.random.default_rng(6)
    one, other = sample(random, 1.0, units=50), sample(random, 2.0, units=50)
    one.statistics[0, 30:] = np.nan
    common = in_common({"one": one, "other": other})
    assert {each.statistics.shape for each in common.values()} == {(1, 30, 2)}
    assert common["other"].score == pytest.approx(other.statistics[0, :30, 0].mean() / 10)
    only = draw_scores({"other": ratios(other.statistics[:, :30, 0], other.statistics[:, :30, 1])})
    assert draw_scores({"other": other, "one": one})["other"] == pytest.approx(only["other"])


def test_the_metric_of_a_draw_is_that_of_its_texts():
    """Not a mean of the metrics of texts: each draw is what sacrebleu says of the texts that were drawn."""
    random = np.random.default_rng(7)
    words = ["the cat", "a dog sat", "on the mat", "it rains", "we see two small cats", "no"]
    references = [" ".join(random.choice(words, 3)) for _ in range(12)]
    written = [" ".join(random.permutation(text.split())[: len(text.split()) - 1]) for text in references]
    statistics = {"chrf": chrf_statistics(written, references), "bleu": bleu_statistics(written, references)}
    samples = {name: Sample(each[None], name) for name, each in statistics.items()}
    drawn = draw_scores(samples, seed=3, draws=20)
    w = np.random.default_rng(3).multinomial(12, np.full(12, 1 / 12), size=20)
    for t in range(20):
        chosen = np.repeat(np.arange(12), w[t])
        texts, wanted = [written[i] for i in chosen], [[references[i] for i in chosen]]
        assert drawn["chrf"][t] == pytest.approx(CHRF().corpus_score(texts, wanted).score, abs=1e-9)
        assert drawn["bleu"][t] == pytest.approx(BLEU().corpus_score(texts, wanted).score, abs=1e-9)
    assert np.mean([CHRF().sentence_score(a, [b]).score for a, b in zip(written, references)]) != pytest.approx(
        samples["chrf"].score, abs=0.1
    )
