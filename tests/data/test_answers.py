"""Codecs of answers: there and back, saved and loaded, and what training never showed."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.errors import DataError
from unrolled.data.codecs.labels import (
    ClassCodec,
    NumberScaler,
    SeriesScaler,
    SetCodec,
    TagCodec,
    fit_answers,
    fit_scaler,
    load_answers,
)
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.labelled import Labelled

RANDOM = np.random.default_rng(0)


def fitted(kind, answers):
    return fit_answers(kind, [Labelled("", answer, "here") for answer in answers], "the data")


CASES = {
    "class": (["b", "a", "b"], ["a", "b"]),
    "classes": ([("b", "a"), (), ("c",)], ["a", "b", "c"]),
    "tags": ([["N", "D"], ["N"]], ["D", "N"]),
}


@pytest.mark.parametrize("kind", CASES)
def test_classes_there_and_back(kind, tmp_path):
    answers, names = CASES[kind]
    codec = fitted(kind, answers)
    assert codec.names == names
    for each in (codec, (codec.save(tmp_path), load_answers(tmp_path))[1]):
        assert type(each) is {"class": ClassCodec, "classes": SetCodec, "tags": TagCodec}[kind]
        assert each.counts.tolist() == codec.counts.tolist()
        for answer in answers:
            back = each.decode(each.encode(answer, "here"))
            assert back == (tuple(sorted(answer)) if kind == "classes" else answer)


def test_what_training_never_showed():
    codec = fitted("class", ["cat", "dog"])
    with pytest.raises(DataError, match="row 7: the class 'dgo' is not in the training split; did you mean 'dog'"):
        codec.encode("dgo", "row 7")
    wider = codec.with_unseen(["dog", "owl", "cow"])
    assert (wider.size, wider.names, wider.unseen) == (2, ["cat", "dog"], ["cow", "owl"])
    assert wider.encode("cow", "row 7") == 2 and wider.decode(wider.encode("cow", "row 7")) == "cow"
    assert wider.to_json() == codec.to_json()
    with pytest.raises(DataError, match="row 8: the tag 'X' is not in the training split"):
        fitted("tags", [["A", "B"]]).encode(["A", "X"], "row 8")


@pytest.mark.parametrize(
    ("kind", "answers", "expected"),
    [
        ("class", ["a", "a"], "the data: found a single class, 'a'; at least two are needed"),
        ("tags", [["N"], ["N", "N"]], "the data: found a single tag, 'N'"),
        ("classes", [(), ()], "the data: no example has a class"),
        ("numbers", [np.array([1.0, 3.0]), np.array([2.0, 3.0])], "the data: target 2 is 3 in every example"),
    ],
)
def test_nothing_to_learn(kind, answers, expected):
    with pytest.raises(DataError, match=expected):
        fitted(kind, answers)


def test_numbers_are_scaled_as_numpy_would(tmp_path):
    values = RANDOM.normal(1e6, 2.0, (500, 3)) * [1, 10, 0.1]
    codec = fitted("numbers", list(values))
    assert isinstance(codec, NumberScaler)
    np.testing.assert_allclose(codec.mean, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(codec.std, values.std(axis=0), rtol=1e-6)
    codec.save(tmp_path)
    again = load_answers(tmp_path)
    np.testing.assert_allclose(again.decode(again.encode(values[0], "here")), values[0], rtol=1e-7)
    with pytest.raises(DataError, match="row 1: found 2 numbers, expected 3"):
        codec.encode(values[0][:2], "row 1")


def test_series_of_unequal_lengths_and_a_constant_channel():
    arrays = [RANDOM.normal(5, 3, (n, 2)) * [1, 0] + [0, 4] for n in (3, 1, 50)]
    scaler = fit_scaler(SeriesScaler, arrays, "the data")
    whole = np.concatenate(arrays)
    np.testing.assert_allclose(scaler.mean, whole.mean(axis=0))
    np.testing.assert_allclose(scaler.std, [whole[:, 0].std(), 1])
    encoded = np.concatenate([scaler.encode(array, "here") for array in arrays])
    np.testing.assert_allclose(encoded.mean(axis=0), 0, atol=1e-6)


DAMAGED = [
    "",
    "{}",
    "[" * 10_000,
    '{"answers": "class"}',
    '{"answers": "class", "names": ["b", "a"], "counts": [1, 1]}',
    '{"answers": "numbers", "mean": [0], "std": [0]}',
]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_files(text, tmp_path):
    (tmp_path / "answers.json").write_text(text)
    with pytest.raises(DataError, match=r"answers\.json: damaged"):
        load_answers(tmp_path)


def test_words_and_their_letters(tmp_path):
    codec = WordListCodec.fit([["the", "dog", "the"], ["running", "the", "dog"]], 100, least=2, letters=4)
    assert codec.words == ["the", "dog"]
    codec.save(tmp_path)
    again = WordListCodec.load(tmp_path)
    ids = again.encode(["dog", "running", "ox"])
    assert ids.shape == (3, 5)
    assert ids[:, 0].tolist() == [5, 1, 1]
    letters = ["".join("?" if i == 1 else again.characters[i - 4] for i in row if i) for row in ids[:, 1:].tolist()]
    assert letters == ["dog", "rung", "o?"]
    assert again.unknown(["dog", "ox"]) == ["ox"]
    assert WordListCodec.fit([["b", "a", "a"]], 5).encode(["a", "b"]).tolist() == [4, 1]
    (tmp_path / "words.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        WordListCodec.load(tmp_path)
