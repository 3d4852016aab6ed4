"""Drawings: every format gives the same moves, scales are those of training, and bad files are told in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled.core.errors import DataError, UnrolledError
from unrolled.data.builtin.hershey import FONTS, letter_of
from unrolled.data.config import DataConfig
from unrolled.data.drawings_prepare import prepare_drawings
from unrolled.data.files.ink import subpaths
from unrolled.data.sources.drawings import read_drawings
from unrolled.data.sources.pen_moves import as_moves, placed

THREE = [[0, 0, 0], [3, 4, 0], [1, 0, 1], [2, 2, 0], [0, -1, 1]]
MOVES = [[3, 4, 1, 0, 0], [1, 0, 0, 1, 0], [2, 2, 1, 0, 0], [0, -1, 0, 0, 1]]
PLACES = [[[5, 5], [8, 9], [9, 9]], [[11, 11], [11, 10]]]


def written(path: Path, content: Any) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


FIVE = [[0, 0, 1, 0, 0], [3, 4, 1, 0, 0], [1, 0, 0, 1, 0], [2, 2, 1, 0, 0], [0, -1, 0, 1, 0], [0, 0, 0, 0, 1]]
INK = """<ink xmlns="http://www.w3.org/2003/InkML"><annotation type="truth">hi</annotation>
<trace>5 5 0.1, 8 9 0.2, 9 9 0.3</trace><trace> 11 11, 11 10 </trace></ink>"""
SVG = """<svg xmlns="http://www.w3.org/2000/svg"><title>hi</title><path d="M5,5 l3 4 h1"/>
<polyline points="11,11 11,10"/></svg>"""
FILES: dict[str, tuple[Any, str | None]] = {
    "three.npz": ({"a": np.array(THREE, np.int16)}, None),
    "five.npz": ({"a": np.array(FIVE, np.float32)}, None),
    "padded.npz": ({"a": np.array([FIVE + [[0, 0, 0, 0, 1]] * 3], np.float32)}, None),
    "joined.npz": ({"points": np.array(THREE), "offsets": np.array([0, 5]), "texts": np.array(["hi"])}, "hi"),
    "three.json": ([THREE], None),
    "five.json": ([FIVE], None),
    "places.json": ([PLACES], None),
    "text.json": ([{"strokes": PLACES, "text": "hi"}], "hi"),
    "quick.jsonl": ({"drawing": [[[5, 8, 9], [5, 9, 9]], [[11, 11], [11, 10]]], "word": "hi"}, "hi"),
    "a.inkml": (INK, "hi"),
    "a.svg": (SVG, "hi"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_moves(name: str, tmp_path: Path) -> None:
    content, text = FILES[name]
    (found,) = read_drawings(written(tmp_path / name, content))
    assert found.moves.tolist() == MOVES
    assert found.text == text


def test_a_folder_of_files_is_one_source(tmp_path: Path) -> None:
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        written(tmp_path / part / "a.svg", SVG)
    written(tmp_path / "train" / "b.inkml", INK)
    assert [each.part for each in read_drawings(tmp_path)] == ["train", "train", "test"]


def test_moves_and_places_belong_together() -> None:
    moves = as_moves(PLACES, "here")
    assert [(stroke + 5).tolist() for stroke in placed(moves)] == PLACES


def test_a_dot_is_a_stroke() -> None:
    moves = as_moves([[0, 0, 1], [4, 0, 0], [1, 1, 1]], "here")
    assert moves.tolist() == [[0, 0, 0, 1, 0], [4, 0, 1, 0, 0], [1, 1, 0, 0, 1]]
    assert len(placed(moves)) == 2


def test_curves_become_lines() -> None:
    (cubic,) = subpaths("M0 0 C0 4 4 4 4 0", "here")
    t = np.arange(9)[:, None] / 8
    wanted = 3 * (1 - t) ** 2 * t * [0, 4] + 3 * (1 - t) * t**2 * [4, 4] + t**3 * [4, 0]
    assert np.allclose(cubic, wanted)
    (both,) = subpaths("M0 0 C0 4 4 4 4 0 S8-4 8 0", "here")
    (spelt,) = subpaths("M0 0 C0 4 4 4 4 0 C4-4 8-4 8 0", "here")
    assert np.allclose(both, spelt)


BAD: dict[str, tuple[str, Any, str]] = {
    "a NaN": ("a.npz", {"a": np.array([[0, 0, 0], [np.nan, 1, 1]])}, "point 1: found .*nan.* expected finite numbers"),
    "no lifts": ("a.npz", {"a": np.array([[0, 0, 0], [1, 1, 0]])}, "the pen is never lifted; expected 1"),
    "a lift of 2": ("a.npz", {"a": np.array([[0, 0, 0], [1, 1, 2]])}, "up 0 or 1"),
    "four columns": ("a.npz", {"a": np.zeros((5, 4))}, r"found shape \[5, 4\]"),
    "two states": ("a.npz", {"a": np.array([[0, 0, 1, 1, 0]])}, "found the pen states"),
    "offsets that fall": (
        "a.npz", {"points": np.array(THREE), "offsets": np.array([0, 4, 2, 5])}, "offsets do not rise",
    ),
    "fewer texts": ("a.npz", {"x": np.array([THREE, THREE]), "texts": np.array(["a"])}, "1 texts, but more drawings"),
    "no json": ("a.json", "[[", "not JSON"),
    "an object": ("a.json", [{"ink": 3}], "expected 'strokes'"),
    "a number": ("a.json", {"train": 3}, "expected a list of drawings"),
    "not xml": ("a.svg", "<svg>", "not XML"),
    "another xml": ("a.svg", "<html/>", "expected <ink>"),
    "no strokes": ("a.inkml", "<ink/>", "there are no strokes in it"),
    "a word for a place": ("a.inkml", "<ink><trace>1 2, a b</trace></ink>", "trace 0: expected points"),
    "an arc": ("a.svg", '<svg><path d="M0 0 A1 1 0 0 0 2 2"/></svg>', "the path command A is not read"),
    "a transform": ("a.svg", '<svg><g transform="scale(2)"><path d="M0 0 L1 1"/></g></svg>', "has a transform"),
    "a circle": ("a.svg", '<svg><circle r="3"/></svg>', "convert shapes to paths"),
    "half a point": ("a.svg", '<svg><path d="M0 0 L1"/></svg>', "the path command L has 1 numbers"),
    "a path without a start": ("a.svg", '<svg><path d="L1 1"/></svg>', "expected M"),
    "entities": ("a.svg", '<!DOCTYPE a [<!ENTITY b "c">]><svg/>', "entities"),
    "another ending": ("a.txt", "hello", "expected drawings in .npz"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_told(name: str, tmp_path: Path) -> None:
    file, content, says = BAD[name]
    with pytest.raises(UnrolledError, match=says):
        list(read_drawings(written(tmp_path / file, content)))


def test_a_folder_without_drawings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match="there are no drawings in it"):
        list(read_drawings(tmp_path))


def drawn(n: int, size: float = 1.0) -> list[Any]:
    return [[[0, 0, 0], [size * (i + 1), size, 0], [size, i, 1]] for i in range(n)]


def test_the_scale_is_that_of_training_alone() -> None:
    found = prepare_drawings({"train": drawn(8), "valid": drawn(4, 50.0), "test": drawn(4, 90.0)}, DataConfig(), False)
    train = found.sections["train"].values("target")[:, :2]
    assert np.sqrt(np.mean(train**2)) == pytest.approx(1.0, rel=1e-6)
    assert np.sqrt(np.mean(found.sections["test"].values("target")[:, :2] ** 2)) > 5


def test_equal_drawings_are_in_one_split() -> None:
    found = prepare_drawings(drawn(20) * 3, DataConfig(split="60/20/20"), False)
    sides = [{each.tobytes() for each in section.fields["target"]} for section in found.sections.values()]
    assert not (sides[0] & sides[1] or sides[0] & sides[2] or sides[1] & sides[2])


def test_a_pen_that_never_moves_and_drawings_without_text() -> None:
    with pytest.raises(DataError, match="the pen never moves"):
        still = [[[0, 0, 0], [0, 0, 1]]]
        prepare_drawings(dict.fromkeys(("train", "valid", "test"), still), DataConfig(), False)
    with pytest.raises(DataError, match="drawing 0: the drawing has no text"):
        prepare_drawings(drawn(9), DataConfig(), True)


def test_letters_that_training_does_not_have_are_noted() -> None:
    rows = [{"strokes": each, "text": "ab"} for each in drawn(9)]
    found = prepare_drawings({"train": rows[:5], "test": [{**rows[6], "text": "abz"}]}, DataConfig(), True)
    assert any("texts of test that are not in train: z" in note for note in found.facts["notes"])


def test_words_of_vector_fonts() -> None:
    made = list(read_drawings("builtin:hershey,examples=60,letters=4"))
    again = list(read_drawings("builtin:hershey,examples=60,letters=4"))
    assert all(np.array_equal(a.moves, b.moves) and a.text == b.text for a, b in zip(made, again, strict=True))
    assert {each.part for each in made} == {"train", "valid", "test"}
    held = {each.text for each in made if each.part == "test"}
    assert not held & {each.text for each in made if each.part == "train"}
    assert all(1 < len(each.text or "") <= 4 for each in made)
    cursive = next(iter(read_drawings("builtin:hershey,examples=20,font=cursive,jitter=0")))
    assert len(cursive.moves) > 10


def test_fonts_have_all_letters_between_their_edges() -> None:
    """Letters stand on the line y = 9; only those with a descender go below it."""
    for font in FONTS.values():
        assert "".join(font) == "abcdefghijklmnopqrstuvwxyz"
        for letter, glyph in font.items():
            strokes, width = letter_of(glyph)
            assert all(len(stroke) > 0 for stroke in strokes)
            places = np.concatenate(strokes)
            assert places[:, 1].min() >= -13
            below = "gjpqy" if font is FONTS["plain"] else "fgjpqyz"
            assert bool(places[:, 1].max() > 9) is (letter in below)
            if font is FONTS["plain"]:  # letters of the other run into each other
                assert places[:, 0].min() >= 0 and places[:, 0].max() <= width
