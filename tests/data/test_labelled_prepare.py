"""Splits that hold in every class, keep equal inputs and groups together, and fit on training data only."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError, UsageError
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT
from unrolled.data.labelled_prepare import encode_examples, prepare_labelled
from unrolled.data.prepared import n_values, used
from unrolled.data.reading import Reading
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.split import fold_shares, grouped, row_key, stratified

SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}
RANDOM = np.random.default_rng(0)


def prepared(rows, answers="class", config=None, reading=None, **more):
    return prepare_labelled(open_labelled(rows, reading or Reading(), answers), config or DataConfig(), **more)


# ---- the split itself


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4)), min_size=30, max_size=300), st.integers(0, 3))
def test_equal_inputs_stay_together_and_nothing_is_lost(rows, seed):
    keys = np.array([row_key(str(text), None, seed) for text, _ in rows], np.uint64)
    classes = np.array([label for _, label in rows])
    if len(set(keys.tolist())) < 12:
        return
    side = stratified(keys, classes, SHARES, "the data")
    assert len({(key, part) for key, part in zip(keys.tolist(), side.tolist())}) == len(set(keys.tolist()))
    assert set(side.tolist()) == {0, 1, 2}
    assert np.array_equal(side, stratified(keys, classes, SHARES, "the data"))


def test_shares_hold_in_every_class():
    sizes = {0: 1000, 1: 100, 2: 33, 3: 7, 4: 1, 5: 2}
    classes = np.repeat(list(sizes), list(sizes.values()))
    keys = RANDOM.permutation(len(classes)).astype(np.uint64)
    side = stratified(keys, classes, SHARES, "the data")
    for label, size in sizes.items():
        for part, share in enumerate(SHARES.values()):
            assert abs((side[classes == label] == part).sum() - share * size) <= 2
        assert (side[classes == label] == 0).any()
    assert abs((side == 1).sum() - 114.3) <= 2 and abs((side == 2).sum() - 114.3) <= 2


def test_many_small_classes_share_the_rounding():
    classes = np.repeat(np.arange(50), 4)
    side = stratified(RANDOM.permutation(200).astype(np.uint64), classes, SHARES, "the data")
    assert abs((side == 1).sum() - 20) <= 1 and abs((side == 2).sum() - 20) <= 1
    assert all((side[classes == label] == 0).any() for label in range(50))


def test_every_class_is_shown_in_training():
    classes = np.repeat(np.arange(10), 2)
    side = stratified(RANDOM.permutation(20).astype(np.uint64), classes, {"train": 0.2, "valid": 0.8}, "the data")
    assert [int((side[classes == label] == 0).sum()) for label in range(10)] == [1] * 10


def test_folds_are_equal_and_stratified():
    classes = np.repeat([0, 1], [531, 269])
    keys = np.array([row_key(str(i), None, 1) for i in range(800)], np.uint64)
    fold = stratified(keys, classes, fold_shares(10), "the data")
    assert {abs(n - 80) <= 1 for n in Counter(fold.tolist()).values()} == {True}
    assert all(abs((fold[classes == 1] == k).sum() - 26.9) <= 1 for k in range(10))


def test_groups_stay_together():
    names = [f"speaker {i % 10}" for i in range(200)]
    side = grouped(names, SHARES, 0, "the data")
    assert len(set(zip(names, side.tolist()))) == 10
    assert Counter(side.tolist()) == {0: 160, 1: 20, 2: 20}
    with pytest.raises(DataError, match="the data: 2 groups cannot be divided into 3 splits"):
        grouped(["a", "b"] * 5, SHARES, 0, "the data")


def test_too_small():
    with pytest.raises(DataError, match="only 2 different examples for 3 splits"):
        stratified(np.array([1, 2], np.uint64), np.array([0, 1]), SHARES, "the data")
    with pytest.raises(DataError, match="no class has an example to spare for the valid split"):
        stratified(np.arange(4).astype(np.uint64), np.arange(4), SHARES, "the data")


# ---- from source to sections

TEXTS = [{"text": f"text number {i % 150}", "label": "ab"[i % 150 % 3 == 0]} for i in range(200)]


def test_texts_become_sections():
    data = prepared(TEXTS, config=DataConfig(split="80/10/10", seed=3))
    assert data.facts["duplicates"] == 50
    assert "50 examples have the same input as another one" in data.facts["notes"]
    assert "equal inputs are in the same split" in data.facts["notes"]
    inputs = {part: {bytes(x) for x in section.fields[INPUT]} for part, section in data.sections.items()}
    assert not inputs["train"] & inputs["valid"] and not inputs["train"] & inputs["test"]
    assert sum(section.n_examples for section in data.sections.values()) == 200
    section = data.sections["valid"]
    row = TEXTS[section.rows[0]]
    assert data.codecs["inputs"].decode(section.at(INPUT, 0)) == row["text"]
    assert data.codecs["answers"].decode(section.at(TARGET, 0)) == row["label"]
    assert prepared(TEXTS, config=DataConfig(split="80/10/10", seed=3)).fingerprint == data.fingerprint
    assert prepared(TEXTS, distinct=True).facts["examples"] == 150
    config = DataConfig(split="80/10/10", seed=3, fraction=0.5)
    half = used(prepared(TEXTS, config=config).sections, config, n_values)
    assert half["train"].n_examples == round(data.sections["train"].n_examples / 2)


def test_codecs_see_the_training_part_only():
    rows = [{"x": [i, i + 1.0], "y": i * 2.0, "set": "train" if i < 6 else "test"} for i in range(10)]
    data = prepared(rows, "numbers", DataConfig(split="50/50"), Reading(part="set"))
    train = data.sections["train"].rows
    assert set(data.sections["train"].rows) | set(data.sections["valid"].rows) == set(range(6))
    assert data.sections["test"].rows.tolist() == [6, 7, 8, 9]
    np.testing.assert_allclose(data.codecs["answers"].mean, [2 * train.mean()])
    np.testing.assert_allclose(data.codecs["inputs"].mean, [train.mean() + 0.5])
    assert data.facts["split_is"] == "given; validation taken from the training data"
    mixed = [*rows, {"x": [0, 1.0], "y": 0.0, "set": "test"}]
    notes = prepared(mixed, "numbers", DataConfig(split="50/50"), Reading(part="set")).facts["notes"]
    assert any("1 inputs of test are in train too" in note for note in notes) or 0 not in train


def test_a_label_only_in_test_is_named():
    rows = [{"text": f"t{i}", "label": "ab"[i % 2], "set": "train"} for i in range(20)]
    rows.append({"text": "odd", "label": "c", "set": "test"})
    data = prepared(rows, reading=Reading(part="set"))
    assert data.facts["classes"]["test"] == {"a": 0, "b": 0, "c": 1}
    assert data.facts["classes"]["train"].keys() == {"a", "b"}
    assert data.codecs["answers"].size == data.facts["outputs"] == 2
    assert data.facts["notes"][-1:] == [
        "1 targets of test are a class that does not occur in the training data (c): they count as wrong"
    ]
    with pytest.raises(DataError, match="there is no train split; it has test"):
        prepared(rows[20:], reading=Reading(part="set"))
    with pytest.raises(DataError, match="found a single class, 'a'"):
        prepared([{"text": f"t{i}", "label": "a"} for i in range(20)])


def test_lengths_have_a_limit():
    config = DataConfig(max_length=11)
    with pytest.raises(DataError, match=r"more than max_length = 11; choose .*too_long.*truncate"):
        prepared(TEXTS, config=config)
    data = prepared(TEXTS, config=config.updated({"too_long": "truncate"}))
    assert data.facts["lengths"]["max"] == 11
    assert any("were truncated to 11 steps" in note for note in data.facts["notes"])
    with pytest.raises(UsageError, match="examples with one target each"):
        prepared(TEXTS, config=config.updated({"too_long": "split"}))


def test_words_with_tags_by_document(tmp_path):
    for i in range(12):
        (tmp_path / f"d{i:02}.txt").write_text(f"word{i}_N goes_V\nthe_D end_N\n")
    reading = Reading(group="file")
    data = prepared(tmp_path, "tags", DataConfig(split="80/10/10"), reading, letters=6)
    documents = {part: set(section.rows // 2) for part, section in data.sections.items()}
    assert sum(map(len, documents.values())) == len(set.union(*documents.values())) == 12
    for part, section in data.sections.items():
        assert section.values(INPUT).shape[1] == 7
        assert (section.lengths(TARGET) == section.lengths(INPUT)).all()
        sentences = 2 if part == "train" else 1  # the other one is in training too
        assert len(documents[part]) * sentences == section.n_examples
    assert any("1 examples of the valid split were left out" in note for note in data.facts["notes"])
    new = list(open_labelled(tmp_path / "d00.txt", Reading(), "none"))
    assert new[0].answer is None


def test_other_examples_are_encoded_with_saved_codecs():
    data = prepared(TEXTS)
    new = list(open_labelled([{"text": "text number 9"}, {"text": "other"}], Reading(column="text"), "none"))
    section = encode_examples(new, data.codecs["inputs"], None)
    assert TARGET not in section.columns and section.rows.tolist() == [0, 1]
    with pytest.raises(DataError, match="row 1: found 2 numbers, expected 1"):
        series = prepared([{"x": [1.0 * i, 2], "y": float(i)} for i in range(40)], "numbers")
        encode_examples(
            list(open_labelled([{"x": [[1, 2]]}], Reading(column="x"), "none")), series.codecs["inputs"], None
        )
