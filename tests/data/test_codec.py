"""Codecs: exact round trips, fixed specials, held-back bytes, files without pickle, damaged files refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.core.errors import DataError, UsageError
from unrolled.core.tokens import EMPTY, START, STOP, UNKNOWN
from unrolled.data.codecs import words as words_module
from unrolled.data.codecs.text import SPECIALS, ByteCodec, CharCodec, Codec, NumberCodec
from unrolled.data.config import DataConfig

TEXTS = [
    "The cat, the dog and Zoë's <start> of it.\n\tIndented   spaces — “quotes” 漢字 👩‍👩‍👧 don't\r\n",
    "the the the of of it",
    "<start> of it",
]
KINDS = ["char", "byte", "word", "bpe"]


def fitted(kind: str, texts=TEXTS, **more) -> Codec:
    return Codec.fit(texts, DataConfig(tokens=kind, vocabulary=400), **more)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=100, deadline=None)
def test_text_it_was_fitted_on_comes_back_exactly(kind, text):
    codec = fitted(kind, [text]) if kind != "bpe" else BPE
    ids = codec.encode(text)
    assert ids.dtype == np.int64
    assert codec.decode(ids) == text
    assert UNKNOWN not in ids
    assert codec.known(text)
    assert (ids >= len(codec.specials)).all()
    assert (ids < codec.size).all()


BPE = fitted("bpe")


@pytest.mark.parametrize("kind", ["byte", "bpe"])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=100, deadline=None)
def test_streaming_gives_the_same_text_and_never_half_a_character(kind, text):
    codec = BPE if kind == "bpe" else ByteCodec()
    stream = codec.stream()
    parts = [stream.push(int(token)) for token in codec.encode(text)]
    assert "".join(parts) + stream.close() == text
    assert all("\ufffd" not in part for part in parts) or "\ufffd" in text


def test_streaming_holds_back_incomplete_characters():
    codec, stream = ByteCodec(), ByteCodec().stream()
    assert [stream.push(int(token)) for token in codec.encode("a€b")] == ["a", "", "", "€", "b"]
    stream.push(int(codec.encode("€")[0]))
    assert stream.close() == "\ufffd"


@pytest.mark.parametrize("kind", KINDS)
def test_specials_have_fixed_ids_and_text_never_becomes_one(kind):
    codec = fitted(kind, extra=("<mask>", "<separator>"))
    assert [codec.name(token) for token in (EMPTY, UNKNOWN, START, STOP)] == list(SPECIALS)
    assert [codec.name(token) for token in (4, 5)] == ["<mask>", "<separator>"]
    ids = codec.encode("<start> of it")
    assert ids.min() > 5
    assert codec.decode([START, *ids, STOP, EMPTY, 4]) == "<start> of it"


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_is_the_same(kind, tmp_path):
    codec = fitted(kind, extra=("<mask>",))
    codec.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    again = Codec.load(tmp_path)
    assert type(again) is type(codec)
    assert again.specials == codec.specials
    assert again.size == codec.size
    for text in [*TEXTS, "<stop> never seen: ŵ"]:
        assert (again.encode(text) == codec.encode(text)).all()
    assert [again.name(token) for token in range(again.size)] == [codec.name(token) for token in range(codec.size)]


def test_bpe_file_is_the_libraries_own_with_the_same_ids(tmp_path):
    from tokenizers import Tokenizer

    BPE.save(tmp_path)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode("the cat of it").ids == BPE.encode("the cat of it").tolist()
    assert theirs.token_to_id("<stop>") == STOP


def test_bpe_learns_and_is_deterministic():
    assert fitted("bpe").to_json() == fitted("bpe").to_json()
    assert len(BPE.encode(" the the the")) == 3
    assert BPE.size <= 400


def test_bpe_of_one_endless_word_stays_quick():
    text = "abcde" * 40_000
    codec = fitted("bpe", [text])
    assert codec.decode(codec.encode(text)) == text


def test_unseen_characters_and_words_are_unknown_and_named():
    codec = fitted("char", ["abc"])
    assert codec.encode("axb€").tolist() == [4, UNKNOWN, 5, UNKNOWN]
    assert codec.unknown("axb€x") == ["x", "€"]
    assert not codec.known("x")
    words = fitted("word", ["the cat sat"])
    assert words.unknown("the dog sat") == [" dog"]
    assert words.encode("the dog sat")[1] == UNKNOWN


def test_words_carry_the_space_before_them():
    codec = fitted("word", ["The cat, too.  It's\n"])
    assert [codec.name(token) for token in codec.encode("The cat, too.  It's\n")] == [
        "The", "␣cat", ",", "␣too", ".", "␣", "␣It's", "\\n",
    ]  # fmt: skip


def test_the_word_vocabulary_is_the_most_frequent_words_up_to_the_limit():
    codec = Codec.fit([" b b b c c a a d e"], DataConfig(tokens="word", vocabulary=8))
    assert codec.size == 8
    assert codec.words == [" b", " a", " c", " d"]


def test_counting_words_forgets_rare_ones_rather_than_growing(monkeypatch):
    monkeypatch.setattr(words_module, "MOST_COUNTED", 50)
    texts = [" common" * 3 + "".join(f" w{i}" for i in range(j, j + 40)) for j in range(0, 4000, 40)]
    codec = Codec.fit(texts, DataConfig(tokens="word", vocabulary=1000))
    assert codec.words[0] == " common"
    assert len(codec.words) <= 50


@pytest.mark.parametrize("kind", KINDS)
def test_byte_lengths_add_up_to_the_text(kind):
    codec = fitted(kind)
    for text in [*TEXTS, "unseen ŵörds 👾"]:
        lengths = codec.byte_lengths(text)
        assert len(lengths) == len(codec.encode(text))
        assert lengths.sum() == len(text.encode())


def test_a_lone_surrogate_is_refused():
    with pytest.raises(DataError, match=r"character 3 is the lone surrogate U\+D800"):
        fitted("char").encode("ab\ud800")


def test_numbers_as_tokens():
    codec = NumberCodec.fit([np.array([5, -3]), np.array([5, 700])], DataConfig())
    assert codec.encode(np.array([700, -3, 6])).tolist() == [6, 4, UNKNOWN]
    assert codec.decode(codec.encode("5 700 -3")) == "5 700 -3"
    assert codec.name(4) == "-3␣"
    assert Codec.from_json(codec.to_json()).encode("5").tolist() == [5]
    with pytest.raises(DataError, match="not a list of integers"):
        codec.encode("5 x")


def _damage(values: dict, how: str) -> str:
    if how == "cut":
        return json.dumps(values)[:-20]
    if how == "specials":
        values["specials"] = ["<start>", *values["specials"][1:]]
    if how == "order":
        values["characters"] = "ba"
    if how == "kind":
        values["tokens"] = "pickle"
    if how == "missing":
        del values["characters"]
    if how == "list":
        return "[]"
    return json.dumps(values)


@pytest.mark.parametrize("how", ["cut", "specials", "order", "kind", "missing", "list"])
def test_a_damaged_file_is_one_sentence(how, tmp_path):
    (tmp_path / "tokenizer.json").write_text(_damage(json.loads(CharCodec("abc").to_json()), how))
    with pytest.raises(DataError, match=r"tokenizer\.json: damaged, or not a tokenizer that unrolled wrote"):
        Codec.load(tmp_path)


def test_a_damaged_bpe_file_is_one_sentence(tmp_path):
    values = json.loads(BPE.to_json())
    values["model"]["merges"] = [["x", "y y"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(DataError, match="damaged"):
        Codec.load(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        Codec.load(tmp_path / "nowhere")


def test_extra_specials_must_be_words_in_brackets():
    with pytest.raises(UsageError, match="angle brackets"):
        ByteCodec(extra=["mask"])
    with pytest.raises(UsageError, match="different words"):
        ByteCodec(extra=["<start>"])
    with pytest.raises(UsageError, match="too small for bpe"):
        Codec.fit(["a"], DataConfig(tokens="bpe", vocabulary=260), extra=("<mask>",))
