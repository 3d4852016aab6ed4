"""Built-in pairs: clear answers, and splits that hold out what they say."""

from __future__ import annotations

import datetime
from collections import defaultdict

import pytest

from unrolled.core.errors import UsageError
from unrolled.data.builtin.dates import NEW_DATES, NEW_STYLES, combinations, held_out, write
from unrolled.data.config import DataConfig
from unrolled.data.files.number_words import english, french
from unrolled.data.pairs_prepare import prepare_pairs
from unrolled.data.reading import PairReading
from unrolled.data.sources.open_pairs import open_pairs


@pytest.fixture(scope="module")
def dates():
    return list(open_pairs("builtin:dates,examples=2000", PairReading()))


def test_no_date_has_two_readings():
    found = defaultdict(set)
    for n in range(366):
        day = datetime.date(2024, 1, 1) + datetime.timedelta(n)
        for combination in combinations():
            found[write(day, combination)].add(day)
    assert not [text for text, days in found.items() if len(days) > 1]


def test_dates_are_those_of_babel():
    from babel.dates import format_date

    day = datetime.date(1987, 12, 9)
    for combination in combinations():
        wanted = format_date(day, combination.pattern, locale=combination.language)
        assert write(day, combination) == " ".join(wanted.split())


def test_held_out_combinations_are_new_but_their_halves_are_not():
    new, old = held_out(), set(combinations()) - set(held_out())
    assert len(new) >= 20
    for one in new:
        own = [each for each in old if each.language == one.language]
        assert one.needs <= set().union(*(each.needs for each in own))
        assert any(
            each.style == one.style or each.pattern == one.pattern for each in old if each.language != one.language
        )


def test_what_is_held_out_is_not_trained_on(dates):
    new = set(held_out())
    for pair in [pair for pair in dates if pair.part != "test"][::20]:
        day = datetime.date.fromisoformat(pair.target)
        assert any(write(day, each) == pair.source for each in combinations() if each not in new), pair
    for pair in [pair for pair in dates if pair.kind == NEW_STYLES][::10]:
        day = datetime.date.fromisoformat(pair.target)
        assert any(write(day, each) == pair.source for each in new), pair


def test_dates_of_the_parts_are_disjoint(dates):
    days = defaultdict(set)
    for pair in dates:
        days[pair.part, pair.kind].add(pair.target)
    assert not days["train", ""] & days["valid", ""]
    assert not days["train", ""] & days["test", NEW_DATES]
    texts = [pair.source for pair in dates]
    assert len(set(texts)) == len(texts)
    assert len([pair for pair in dates if pair.kind == NEW_STYLES]) == 200


def test_dates_are_prepared_with_their_parts_and_kinds():
    data = prepare_pairs(open_pairs("builtin:dates,examples=2000", PairReading()), DataConfig())
    assert {part: section.n_examples for part, section in data.sections.items()} == {
        "train": 2000,
        "valid": 200,
        "test": 400,
    }
    assert data.facts["split"]["test"]["kinds"] == {NEW_DATES: 200, NEW_STYLES: 200}
    assert data.codecs["target"].characters == "-0123456789"


@pytest.mark.parametrize(
    ("n", "words", "mots"),
    [
        (0, "zero", "zéro"),
        (21, "twenty-one", "vingt et un"),
        (71, "seventy-one", "soixante et onze"),
        (80, "eighty", "quatre-vingts"),
        (91, "ninety-one", "quatre-vingt-onze"),
        (180, "one hundred eighty", "cent quatre-vingts"),
        (300, "three hundred", "trois cents"),
        (1000, "one thousand", "mille"),
        (80_000, "eighty thousand", "quatre-vingt mille"),
        (300_201, "three hundred thousand two hundred one", "trois cent mille deux cent un"),
        (999_999, "nine hundred ninety-nine thousand nine hundred ninety-nine",
         "neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf"),
    ],
)  # fmt: skip
def test_numbers_in_words(n, words, mots):
    assert (english(n), french(n)) == (words, mots)


def test_numbers_go_both_ways_and_no_words_mean_two():
    there = [tuple(p[:2]) for p in open_pairs("builtin:numbers,examples=3000", PairReading())]
    back = [tuple(p[:2]) for p in open_pairs("builtin:numbers,examples=3000,from=french", PairReading())]
    assert back == [(target, source) for source, target in there]
    assert len({source for source, _ in there}) == len({target for _, target in there}) == 3000


def test_reversal():
    pairs = [tuple(p[:2]) for p in open_pairs("builtin:reversal,length=6,examples=500", PairReading())]
    assert len(set(pairs)) == 500
    assert all(target == source[::-1] and len(source) <= 6 for source, target in pairs)
    assert pairs != [tuple(p[:2]) for p in open_pairs("builtin:reversal,length=6,examples=500,seed=1", PairReading())]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("builtin:date", "did you mean 'dates'"),
        ("builtin:dates,size=3", "no setting 'size'"),
        ("builtin:reversal,length=0", "expected an integer >= 1 and <= 10000"),
        ("builtin:numbers,from=german", "from = 'german': expected one of english, french"),
    ],
)
def test_what_cannot_be(name, sentence):
    with pytest.raises(UsageError, match=sentence):
        list(open_pairs(name, PairReading()))
