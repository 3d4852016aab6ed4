"""Strokes and sounds with their texts, from every kind of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from unrolled.core.errors import DataError, UsageError
from unrolled.data.reading import RecognitionReading
from unrolled.data.sources.recognition import open_recognition
from unrolled.data.sources.strokes import as_strokes

RANDOM = np.random.default_rng(0)


def pairs(source: Any, **settings: Any) -> list[Any]:
    return list(open_recognition(source, RecognitionReading.parse(settings)))


WAYS = [[0, 0, 0], [0.5, 0, 1], [-0.5, 1, 0], [0, -0.5, 1]]
DRAWINGS = {
    "strokes of places": [[[10, 0], [15, 0]], [[10, 10], [10, 5]]],
    "x and y of each stroke": [[[10, 15, 15], [0, 0, 0]], [[10, 10], [10, 5]]],
    "ways and lifts": [[3, 3, 0], [5, 0, 1], [-5, 10, 0], [0, -5, 1]],
}


@pytest.mark.parametrize("kind", DRAWINGS)
def test_drawings_become_ways(kind: str) -> None:
    found = as_strokes(DRAWINGS[kind], "line 1")
    wanted = np.array(WAYS, np.float32)
    if kind == "x and y of each stroke":
        wanted = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0, 1], *WAYS[2:]], np.float32)
    if kind == "ways and lifts":
        wanted[0, :2] = 0.3  # the way to the first point is kept
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_single_stroke_and_a_dot() -> None:
    np.testing.assert_allclose(as_strokes(np.array([[0, 0], [0, 4]]), ""), [[0, 0, 0], [0, 1, 1]])
    np.testing.assert_allclose(as_strokes([[7, 7]], ""), [[0, 0, 1]])


@pytest.mark.parametrize(
    "drawing", [[], 3, "a", [1, 2], [[1, 2], [3]], [[1, 2, 3]], [[[1], [2, 3]]], [[1, float("nan")]], [[1, 2, 0, 4]]]
)
def test_what_is_no_drawing(drawing: Any) -> None:
    with pytest.raises(DataError, match=r"^line 4: (expected|found)"):
        as_strokes(drawing, "line 4")


def test_a_table_of_numbers_without_a_header(tmp_path: Path) -> None:
    file = tmp_path / "pen.csv"
    file.write_text("0,0,10,0,10,10,7\n0,0,0,10,5,5,10\n")
    found = pairs(file, spell=True)
    assert [pair.target for pair in found] == ["seven", "ten"]
    np.testing.assert_allclose(found[0].source, [[0, 0, 0], [1, 0, 0], [0, 1, 1]])
    assert [pair.target for pair in pairs(file)] == ["7", "10"]


def test_a_table_with_a_header_and_short_rows(tmp_path: Path) -> None:
    file = tmp_path / "pen.csv"
    file.write_text("x1,y1,x2,y2,label,split\n0,0,1,0,a,train\n5,5,,,b,test\n")
    found = pairs(file)
    assert [(len(pair.source), pair.target, pair.part) for pair in found] == [(2, "a", "train"), (1, "b", "test")]
    file.write_text("x1,y1,x2,y2,label\n0,0,1,0,a\n5,x,,,b\n")
    with pytest.raises(DataError, match=r"line 3: found 'x', expected a number.*skip_bad"):
        pairs(file)
    assert len(pairs(file, skip_bad=True)) == 1
    file.write_text("x1,y1,x2,label\n0,0,1,a\n")
    with pytest.raises(DataError, match="3 numbers per row are not points"):
        pairs(file)


def test_json_lines_of_strokes(tmp_path: Path) -> None:
    file = tmp_path / "drawings.ndjson"
    rows = [{"word": "cat", "drawing": DRAWINGS["x and y of each stroke"]}, {"word": "", "drawing": [[[1, 2], [3, 4]]]}]
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="line 2: the text is empty"):
        pairs(file)
    (found,) = pairs(file, skip_bad=True)
    assert found.target == "cat"
    assert found.source.shape == (5, 3)


def test_arrays_of_strokes_in_parts(tmp_path: Path) -> None:
    points = RANDOM.integers(-5, 6, (9, 3)).astype(np.int16)
    points[:, 2] = 1
    arrays = {}
    for part, texts in (("train", ["ab", "c"]), ("test", ["d", "e"])):
        arrays |= {f"{part}_points": points, f"{part}_offsets": np.array([0, 4, 9]), f"{part}_text": np.array(texts)}
    np.savez(tmp_path / "pen.npz", **arrays)
    found = pairs(tmp_path / "pen.npz")
    assert [(len(pair.source), pair.target, pair.part) for pair in found] == [
        (4, "ab", "train"), (5, "c", "train"), (4, "d", "test"), (5, "e", "test"),
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"name the array of texts with .*target_column"):
        pairs({"points": points, "offsets": np.array([0, 9])})


def clip(seconds: float, rate: int = 8000) -> Any:
    return (0.1 * RANDOM.standard_normal(round(seconds * rate))).astype(np.float32)


def test_a_folder_of_clips_with_transcripts(tmp_path: Path) -> None:
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"{name}.wav", clip(0.5), 8000)
    table = tmp_path / "transcripts.csv"
    table.write_text("file,text\na.wav,hello there\nb.wav,good bye\n")
    found = pairs(tmp_path)
    assert [pair.target for pair in found] == ["hello there", "good bye"]
    assert found[0].source.shape[1] == 40
    assert pairs(table, sound={"bands": 12})[0].source.shape[1] == 12
    table.write_text("file,text\na.wav,hello\nc.wav,good bye\nbad.wav,x\n")
    (tmp_path / "bad.wav").write_text("no sound")
    source = open_recognition(tmp_path, RecognitionReading(skip_bad=True))
    assert len(list(source)) == 1
    assert [sentence.split(": ", 1)[0].rsplit("/", 1)[-1] for sentence in source.skipped] == [
        "transcripts.csv, line 3, column 'file'", "transcripts.csv, line 4",
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"line 3, column 'file': there is no clip 'c.wav'"):
        pairs(tmp_path)


def test_clips_that_are_named_after_what_is_said(tmp_path: Path) -> None:
    for name in ("7_ann_0", "3_bob_0"):
        soundfile.write(tmp_path / f"{name}.wav", clip(0.3), 8000)
    found = pairs(tmp_path, pattern=r"(?P<answer>\d)_.*", spell=True)
    assert [pair.target for pair in found] == ["three", "seven"]


def test_clips_after_each_other_in_an_array(tmp_path: Path) -> None:
    audio = (1000 * clip(1.0)).astype(np.int16)
    np.savez(tmp_path / "all.npz", audio=audio, offsets=np.array([0, 3000, 8000]), digit=np.array([4, 2]), rate=8000)
    found = pairs(tmp_path / "all.npz", spell=True)
    assert [pair.target for pair in found] == ["four", "two"]
    assert found[0].source.shape[1] == 40
    assert len(found[1].source) > len(found[0].source)


def test_parts_by_name() -> None:
    rows = [{"strokes": [[[0, 0], [1, 1]]], "text": "a"}]
    found = pairs({"train": rows, "test": [{"strokes": [[[0, 0], [1, 0]]], "text": "b"}]})
    assert [(pair.target, pair.part) for pair in found] == [("a", "train"), ("b", "test")]
