"""What word vectors learn from: words with the words around them, and drawn ones."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.tokens import EMPTY
from unrolled.data.contexts import ContextBatches, Contexts, Text, uniform

COUNTS = np.array([0, 0, 0, 0, 800, 100, 90, 10])


def text(n: int = 4000, lines: int = 1) -> Text:
    random = np.random.default_rng(0)
    return Text(random.integers(4, 8, n).astype(np.int32), np.repeat(np.arange(lines), n // lines).astype(np.int32))


def contexts(window: int = 2, subsample: float = 0.0, method: str = "skip-gram") -> Contexts:
    return Contexts(COUNTS, window, 3, subsample, 0.75, method)  # type: ignore[arg-type]


def test_contexts_are_the_words_around_up_to_a_drawn_distance() -> None:
    t = text()
    drawn = contexts(window=2).draw(t, 0, 4000, 0, 0)
    w, x = t.words, drawn.x[:, :, 0]
    for row, place in enumerate(drawn.places.tolist()[1:-2], start=1):
        near = [w[place - 1], w[place + 1]]
        assert x[row, 1:3].tolist() == near  # a distance of one is always there
        far = [w[place - 2] if place > 1 else EMPTY, w[place + 2]]
        assert x[row, [0, 3]].tolist() in (far, [EMPTY, EMPTY])
    assert 0.45 < (x[2:-2, 0] != EMPTY).mean() < 0.55  # the larger of two distances is drawn half of the time
    assert (drawn.y[:, 0] == w).all()


def test_contexts_do_not_cross_lines() -> None:
    t = Text(np.array([4, 5, 6, 7], np.int32), np.array([0, 0, 1, 1], np.int32))
    x = contexts(window=1).draw(t, 0, 4, 0, 0).x[:, :, 0]
    assert x.tolist() == [[0, 5], [4, 0], [0, 7], [6, 0]]


def test_cbow_has_one_input_of_all_words() -> None:
    one, many = (contexts(method=method).draw(text(), 0, 100, 0, 0) for method in ("cbow", "skip-gram"))
    assert one.x.shape == (100, 1, 4)
    assert many.x.shape == (100, 4, 1)
    assert (one.x.reshape(100, 4) == many.x.reshape(100, 4)).all()


def test_frequent_words_are_left_out_by_the_formula() -> None:
    t, threshold = Text(np.repeat(np.array([4, 7], np.int32), 20_000), np.zeros(40_000, np.int32)), 0.02
    words = contexts(subsample=threshold).draw(t, 0, 40_000, 0, 0).y[:, 0]
    for word in (4, 7):
        ratio = threshold / (COUNTS[word] / COUNTS.sum())
        expected = min(np.sqrt(ratio) + ratio, 1.0)
        assert (words == word).sum() / 20_000 == pytest.approx(expected, abs=0.01)


def test_words_are_drawn_by_a_power_of_their_counts_and_never_the_word_itself() -> None:
    drawn = contexts().draw(Text(np.full(30_000, 7, np.int32), np.zeros(30_000, np.int32)), 0, 30_000, 0, 0)
    others = drawn.y[:, 1:]
    q = COUNTS**0.75 / (COUNTS**0.75).sum()
    for word in (4, 5, 6):
        assert (others == word).mean() == pytest.approx(q[word], abs=0.01)
    assert (others == EMPTY).mean() == pytest.approx(q[7], abs=0.01)
    assert not (others == 7).any()


def test_what_is_drawn_depends_on_seed_epoch_and_place_alone() -> None:
    whole = contexts().draw(text(), 0, 4000, 1, 2)
    part = contexts().draw(text(), 1000, 1500, 1, 2)
    assert (whole.y[1000:1500] == part.y).all()
    assert (whole.x[1002:1498] == part.x[2:-2]).all()
    for seed, epoch in ((1, 3), (2, 2)):
        assert (contexts().draw(text(), 0, 4000, seed, epoch).y != whole.y).mean() > 0.3
    streams = [uniform(np.arange(1000), 0, 0, name) for name in ("stays", "reach")]
    assert abs(np.corrcoef(streams)[0, 1]) < 0.1


def test_an_epoch_has_every_word_once() -> None:
    sampler = ContextBatches(contexts(), text(1001), 250, 0)
    assert sampler.steps_per_epoch == 5
    places = np.concatenate([sampler.batch(step).places.numpy() for step in range(5)])  # type: ignore[union-attr]
    assert places.tolist() == list(range(1001))
    assert (sampler.batch(0).y != sampler.batch(5).y).any()
