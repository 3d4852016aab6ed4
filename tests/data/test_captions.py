"""Images with captions: folders, arrays, and one sentence for everything that is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unrolled.core.errors import DataError, UsageError
from unrolled.data.config import DataConfig
from unrolled.data.pairs_prepare import prepare_pairs
from unrolled.data.reading import CaptionReading
from unrolled.data.sources.captions import open_captions

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (3, 6, 8, 3), np.uint8)  # [n, H, W, 3]


def write(folder: Path, text: str, name: str = "captions.csv", n: int = 3) -> Path:
    for i in range(n):
        Image.fromarray(PIXELS[i]).save(folder / f"{i}.png")
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def pairs(source: Any, **settings: Any) -> list[Any]:
    return list(open_captions(source, CaptionReading.parse(settings)))


CSV = "image,caption\n0.png,a dog\n1.png,a cat\n0.png,one dog\n"


def test_a_folder_with_several_captions_of_one_image(tmp_path: Path) -> None:
    found = pairs(write(tmp_path, CSV))
    assert [pair.target for pair in found] == ["a dog", "a cat", "one dog"]
    assert found[0].source.shape == (6, 24)
    np.testing.assert_allclose(found[1].source, PIXELS[1].reshape(6, 24) / 255, atol=1e-6)
    assert np.array_equal(found[0].source, found[2].source)  # equal sources are in one part
    assert found[2].place.endswith("captions.csv, line 4")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("captions.tsv", "file_name\tsentence\n0.png\ta dog\n1.png\ta cat\n0.png\tone dog\n"),
        ("captions.txt", CSV),
        ("notes.jsonl", '{"image": "0.png", "captions": ["a dog"]}\n{"image": "1.png", "captions": ["a cat"]}\n'
                        '{"image": "0.png", "captions": ["one dog"]}\n'),
        ("labels.json", json.dumps([{"image": f"{i}.png", "caption": t} for i, t in
                                    ((0, "a dog"), (1, "a cat"), (0, "one dog"))])),
    ],
)  # fmt: skip
def test_tables_of_every_kind(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, text, name)
    for source in (tmp_path, str(tmp_path / name)):
        assert [pair.target for pair in pairs(source)] == ["a dog", "a cat", "one dog"]


def test_a_list_of_captions_in_one_row(tmp_path: Path) -> None:
    write(tmp_path, '{"image": "2.png", "captions": ["a", "b"], "split": "val"}\n', "captions.jsonl")
    assert [(pair.target, pair.part) for pair in pairs(tmp_path)] == [("a", "valid"), ("b", "valid")]


def test_images_may_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    write(tmp_path / "images", CSV, "unused.md")
    (tmp_path / "captions.csv").write_text(CSV)
    assert len(pairs(tmp_path)) == 3


def test_one_size(tmp_path: Path) -> None:
    write(tmp_path, CSV)
    Image.fromarray(PIXELS[1, :, :4]).save(tmp_path / "1.png")  # 4 wide, 6 high
    with pytest.raises(DataError, match=r"line 3: has 12 numbers per step, but the first one has 24"):
        pairs(tmp_path)
    found = pairs(tmp_path, size=12)
    assert [pair.source.shape for pair in found] == [(12, 36)] * 3
    wide, high = (pair.source.reshape(12, 12, 3) for pair in found[:2])
    assert (wide[:1] == 1).all() and (wide[-1:] == 1).all() and not (wide[2] == 1).all()  # white above and below
    assert (high[:, :2] == 1).all() and (high[:, -2:] == 1).all() and not (high[0, 2:10] == 1).all()
    assert pairs(tmp_path, size=12, grey=True)[0].source.shape == (12, 12)


def test_what_is_transparent_is_seen_on_white(tmp_path: Path) -> None:
    write(tmp_path, CSV)
    Image.new("RGBA", (8, 6), (200, 0, 0, 0)).save(tmp_path / "0.png")
    assert (pairs(tmp_path)[0].source == 1).all()


BAD = {
    "a missing image": ("image,caption\n0.png,a\nnone.png,b\n", "line 3, column 'image': there is no image 'none.png'"),
    "an empty name": ('image,caption\n"",a\n0.png,b\n', "line 2, column 'image': there is no image ''"),
    "an empty caption": ("image,caption\n0.png,a\n1.png,  \n", "line 3: the text is empty"),
    "not an image": ("image,caption\nbad.png,a\n0.png,b\n", "line 2: .*bad.png: cannot be read as an image"),
    "cut off": ("image,caption\ncut.png,a\n0.png,b\n", "line 2: .*cut.png: cannot be read as an image"),
}


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD)
def test_bad_rows_are_refused_or_listed(tmp_path: Path, text: str, sentence: str) -> None:
    write(tmp_path, text)
    (tmp_path / "bad.png").write_text("no image")
    (tmp_path / "cut.png").write_bytes((tmp_path / "0.png").read_bytes()[:60])
    with pytest.raises(DataError, match=sentence + ".*skip_bad"):
        pairs(tmp_path)
    source = open_captions(tmp_path, CaptionReading(skip_bad=True))
    assert len(list(source)) == 1
    assert len(list(source)) == 1  # a second pass counts nothing twice
    assert len(source.skipped) == 1


def test_data_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no images in this folder"):
        pairs(tmp_path)
    Image.fromarray(PIXELS[0]).save(tmp_path / "0.png")
    (tmp_path / "readme.txt").write_text("what these are")
    with pytest.raises(DataError, match=r"there is no table of captions; add captions.csv"):
        pairs(tmp_path)
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "b.csv").write_text(CSV)
    with pytest.raises(UsageError, match=r"with .*target_file.*: a.csv, b.csv"):
        pairs(tmp_path)
    (tmp_path / "b.csv").write_text("image,words\n0.png,a\n")
    with pytest.raises(UsageError, match=r"name the column of captions with .*target_column.*; it has image, words"):
        pairs(tmp_path, target_file=str(tmp_path / "b.csv"))
    assert len(pairs(tmp_path, target_file=str(tmp_path / "b.csv"), target_column="words")) == 1
    with pytest.raises(UsageError, match=r"there is no column 'photo' for .*source_column"):
        pairs(tmp_path, target_file=str(tmp_path / "b.csv"), target_column="words", source_column="photo")
    (tmp_path / "b.csv").write_text("image,caption\nnone.png,a\n")
    with pytest.raises(DataError, match="there are no usable examples in it"):
        pairs(tmp_path, target_file=str(tmp_path / "b.csv"), skip_bad=True)


def test_arrays(tmp_path: Path) -> None:
    captions = ["a", "b", "c"]
    np.savez(tmp_path / "all.npz", images=PIXELS, captions=np.array(captions), parts=["train", "test", "train"])
    found = pairs(tmp_path / "all.npz")
    assert [(pair.target, pair.part) for pair in found] == [("a", "train"), ("b", "test"), ("c", "train")]
    grey = pairs((PIXELS[..., 0] / 255, [["a", "b"], "c", "d"]))
    assert [pair.target for pair in grey] == ["a", "b", "c", "d"]
    assert grey[0].source.shape == (6, 24)
    np.testing.assert_allclose(grey[0].source.reshape(6, 8, 3), PIXELS[0, :, :, :1].repeat(3, 2) / 255, atol=1e-6)
    for images, sentence in ((PIXELS.astype(np.int64), "expected bytes"), (PIXELS[:, :, :, :2], r"shape \[6, 8, 2\]")):
        with pytest.raises(DataError, match=sentence):
            pairs((images, captions))
    with pytest.raises(DataError, match="found 3 images and 2 captions"):
        pairs((PIXELS, captions[:2]))


def test_images_in_an_array_and_captions_in_a_table(tmp_path: Path) -> None:
    np.savez(tmp_path / "images32.npz", images=PIXELS)
    rows = [{"caption": text, "split": part} for text, part in (("a", "train"), ("b", "valid"), ("c", "test"))]
    (tmp_path / "captions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for source in (tmp_path, tmp_path / "images32.npz"):
        opened = open_captions(source, CaptionReading())
        assert [(pair.target, pair.part) for pair in opened] == [("a", "train"), ("b", "valid"), ("c", "test")]
        assert any("image i has the caption in row i" in note for note in opened.notes)
    (tmp_path / "captions.jsonl").write_text(json.dumps(rows[0]))
    with pytest.raises(DataError, match="found 3 images and 1 captions"):
        pairs(tmp_path)


def test_fingerprints_follow_images_and_captions(tmp_path: Path) -> None:
    def fingerprint() -> str:
        return prepare_pairs(open_captions(tmp_path, CaptionReading()), DataConfig(split="60/20/20")).fingerprint

    lines = [f"{i}.png,caption {i}\n" for i in range(6)]
    for i in range(6):
        Image.fromarray(np.full((4, 4, 3), i, np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "captions.csv").write_text("image,caption\n" + "".join(lines))
    before = fingerprint()
    assert fingerprint() == before
    Image.fromarray(np.full((4, 4, 3), 99, np.uint8)).save(tmp_path / "1.png")
    changed = fingerprint()
    assert changed != before
    (tmp_path / "captions.csv").write_text("image,caption\n" + "".join(reversed(lines)))
    assert fingerprint() not in (before, changed)


def test_shapes_come_with_their_parts() -> None:
    found = pairs("builtin:shapes,examples=40,seed=2")
    assert [pair.part for pair in found[17:20]] == ["train", "valid", "test"]
    assert found[0].source.shape == (48, 144)
    assert found[0].target.startswith("a ")
    with pytest.raises(UsageError, match="there is no setting 'exmples'; did you mean 'examples'"):
        pairs("builtin:shapes,exmples=40")
    with pytest.raises(UsageError, match="there is no built-in data 'cats'"):
        pairs("builtin:cats")
