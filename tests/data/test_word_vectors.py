"""Word vectors: cosines, files in the formats of others, and bad ones of them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from unrolled.core.errors import DataError, UsageError
from unrolled.data.files import vector_files
from unrolled.data.word_vectors import WordVectors

BOOK = WordVectors(["king", "queen", "mean"], [[0.41, 1.2, 3.4, -1.3], [0.39, 1.1, 3.5, 1.6], [-0.2, -3.2, 1.3, 0.8]])


def test_the_cosines_of_the_book() -> None:
    """Mathematical Engineering of Deep Learning, section 7.1: about 0.729, -0.04 and 0.156."""
    assert BOOK.similarity("king", "queen") == pytest.approx(0.729, abs=5e-4)
    assert BOOK.similarity("king", "mean") == pytest.approx(-0.04, abs=5e-3)
    assert BOOK.similarity("queen", "mean") == pytest.approx(0.156, abs=5e-4)
    assert [each["word"] for each in BOOK.neighbours("king")] == ["queen", "mean"]


def test_an_analogy_is_a_difference() -> None:
    names = ["man", "king", "woman", "queen", "tree"]
    found = WordVectors(names, [[1, 0, 0], [1, 1, 0], [-1, 0, 0], [-1, 1, 0.1], [0, 0, 1]])
    assert found.analogy("man", "king", "woman", top=1)[0]["word"] == "queen"
    assert len(found.analogy("man", "king", "woman", top=9)) == 2  # not the words that were asked


def test_a_word_without_a_vector_is_refused_with_similar_spellings() -> None:
    with pytest.raises(UsageError, match="no vector of 'kign'; similar spellings: 'king'"):
        BOOK.neighbours("kign")
    with pytest.raises(UsageError, match="'queen'"):
        BOOK.similarity("king", "QUEEN")
    with pytest.raises(UsageError, match="none of the 3 known words"):
        BOOK.row("xyzzyxyzzy")


@pytest.mark.parametrize(("name", "form"), [("v.txt", None), ("v.bin", None), ("v.txt", "glove")])
def test_a_file_is_read_as_it_was_written(tmp_path: Path, name: str, form: str | None) -> None:
    values = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32) * 1e-3
    WordVectors(["é", "b", "x.y"], values).save(tmp_path / name, form)
    again = WordVectors.read(tmp_path / name)
    assert again.words == ["é", "b", "x.y"]
    assert (again.vectors == values).all()
    assert vector_files.width(tmp_path / name) == 5
    only = vector_files.read(tmp_path / name, wanted={"b"})
    assert only[0] == ["b"] and (only[1] == values[1:2]).all()


def test_the_formats_are_those_of_others(tmp_path: Path) -> None:
    WordVectors(["a", "b"], [[1, 0.5], [2, -3]]).save(tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_text() == "2 2\na 1.0 0.5\nb 2.0 -3.0\n"
    WordVectors(["a", "b"], [[1, 0.5], [2, -3]]).save(tmp_path / "g.txt", "glove")
    assert (tmp_path / "g.txt").read_text() == "a 1.0 0.5\nb 2.0 -3.0\n"
    WordVectors(["a"], [[1, 0.5]]).save(tmp_path / "v.bin")
    assert (tmp_path / "v.bin").read_bytes() == b"1 2\na " + struct.pack("<2f", 1, 0.5) + b"\n"
    (tmp_path / "without.bin").write_bytes(b"2 1\na " + struct.pack("<f", 1) + b"b " + struct.pack("<f", 2))
    assert WordVectors.read(tmp_path / "without.bin").vectors.tolist() == [[1], [2]]  # no line ends, as some write
    (tmp_path / "spaces.txt").write_text("a 1 2\n. . 3 4\n")
    assert WordVectors.read(tmp_path / "spaces.txt").words == ["a", ". ."]


BAD = {
    "": "there are no vectors",
    "a 1 2\nb 3\n": "line 2: found 1 numbers behind the word, expected 2",
    "a 1 2\nb 3 4 5\n": "line 2: found 3 numbers behind the word, expected 2",
    "2 2\na 1 2\nb 3\n": "line 3: found 1 numbers behind the word, expected 2",
    "a 1 2\nb x 2\n": "line 2, number 1: 'x' is not a finite number",
    "a 1 2\nb nan 2\n": "line 2, number 1: 'nan' is not a finite number",
    "a 1e39 2\n": "'1e39' is not a finite number",
    "3 2\na 1 2\nb 3 4\n": "promises 3 vectors, found 2",
    "word\n": "found 0 numbers behind the word",
}


@pytest.mark.parametrize("content", BAD, ids=[repr(each)[:20] for each in BAD])
def test_a_broken_text_file_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "v.txt").write_text(content)
    with pytest.raises(DataError, match=BAD[content]):
        WordVectors.read(tmp_path / "v.txt")


BAD_BINARY = {
    b"a 1 2\n": "its first line must be two integers",
    b"2 2\na " + struct.pack("<2f", 1, 2): "more than the file holds",
    b"2 2\na "
    + struct.pack("<2f", 1, 2)
    + b"bcdefghi "
    + struct.pack("<f", 1): "vector 2: the file ends in the middle",
    b"1 1\na " + struct.pack("<f", float("nan")): "vector 1: holds a number that is not finite",
    b"99999999999 99999999999\na b": "more than the file holds",
    b"1 1\n\xff\xfe " + struct.pack("<f", 1): "not UTF-8",
}


@pytest.mark.parametrize("content", BAD_BINARY)
def test_a_broken_binary_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.bin").write_bytes(content)
    with pytest.raises(DataError, match=BAD_BINARY[content]):
        WordVectors.read(tmp_path / "v.bin")
    (tmp_path / "b.txt").write_bytes(b"1 2\na \xff\xfe\x00\n")
    with pytest.raises(DataError, match=r"must be called \.bin"):
        WordVectors.read(tmp_path / "b.txt")


def test_a_format_and_a_name_must_match(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only these, must be called"):
        BOOK.save(tmp_path / "v.txt", "binary")
    with pytest.raises(UsageError, match="no format 'glov'"):
        BOOK.save(tmp_path / "v.txt", "glov")
