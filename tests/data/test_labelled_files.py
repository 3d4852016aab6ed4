"""Labelled examples in files and folders: texts, .ts, .npz, tagged words, sound, images; parts and bad files."""

from __future__ import annotations

import gzip

import numpy as np
import pandas
import pytest
import soundfile
import torch
from PIL import Image

from unrolled.core.errors import DataError, UsageError
from unrolled.data.given_splits import part_in
from unrolled.data.reading import ImageReading, Reading, SoundReading
from unrolled.data.sources.open_labelled import open_labelled


def read(source, answers="class", **settings):
    return list(open_labelled(source, Reading(**settings), answers))


def complaint(source, answers="class", kind=DataError, **settings) -> str:
    with pytest.raises(kind) as caught:
        read(source, answers, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def made(path, text: str | bytes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# ---- arrays in memory


def test_tensors_and_columns_are_targets_as_arrays_are():
    x = np.arange(12.0).reshape(2, 3, 2)
    expected = [each.answer for each in read((x, np.array([1, 0])))]
    assert expected == ["1", "0"]
    for y in (torch.tensor([1, 0]), pandas.Series([1, 0], index=[7, 9]), [1, 0], (1, 0)):
        found = read((torch.tensor(x, requires_grad=True), y))
        assert [each.answer for each in found] == expected
        np.testing.assert_array_equal(found[1].input, x[1])
    numbers = read((torch.tensor(x), torch.tensor([[0.5, 1.0], [2.0, 3.0]], requires_grad=True)), "numbers")
    assert [each.answer.tolist() for each in numbers] == [[0.5, 1.0], [2.0, 3.0]]
    several = read((torch.tensor(x), torch.tensor([[1, 0, 1], [0, 0, 0]])), "classes")
    assert [each.answer for each in several] == [("0", "2"), ()]


# ---- texts


def test_a_folder_per_class_and_parts_above(tmp_path):
    for part in ("train", "test"):
        for label in ("neg", "pos"):
            made(tmp_path / part / label / "0.txt", f"a {label} text of {part}\n")
    found = read(tmp_path)
    assert [(e.answer, e.part) for e in found] == [(a, p) for p in ("train", "test") for a in ("neg", "pos")]
    assert found[0].input == "a neg text of train\n"
    assert read(tmp_path / "train")[1].answer == "pos"


def test_a_file_per_class(tmp_path):
    made(tmp_path / "Greek.txt", "Adamou\n\nAlexiou\n")
    made(tmp_path / "Czech.txt", "Novák\n")
    made(tmp_path / "LICENSE", "words")
    source = open_labelled(tmp_path, Reading(), "class")
    assert [(e.input, e.answer) for e in source] == [("Novák", "Czech"), ("Adamou", "Greek"), ("Alexiou", "Greek")]
    assert {"1 blank lines were skipped", f"1 other files in {tmp_path} were skipped"} <= set(source.notes)
    (tmp_path / "Czech.txt").unlink()
    assert "so there is only one class" in complaint(tmp_path)


def test_fasttext_and_tabbed_lines(tmp_path):
    fast = made(tmp_path / "f.txt", "__label__a __label__b two words\n__label__a one\n")
    assert [(e.input, e.answer) for e in read(fast, "classes")] == [("two words", ("a", "b")), ("one", ("a",))]
    assert "line 1: found 2 labels (a, b), expected one __label__" in complaint(fast)
    tabbed = made(tmp_path / "t.txt", "some text\tx\nmore\ty\n")
    assert [(e.input, e.answer) for e in read(tabbed)] == [("some text", "x"), ("more", "y")]
    assert [e.answer for e in read(tabbed, "none")] == [None, None]
    assert "line 2: found no tab" in complaint(made(tmp_path / "u.txt", "a\tb\nno tab\n"))
    assert "line 1: the text is empty" in complaint(made(tmp_path / "v.txt", " \tb\n"))
    assert "there are no examples in it" in complaint(made(tmp_path / "w.txt", ""))
    assert "no such file" in complaint(tmp_path / "nothing.txt")


def test_folders_without_examples(tmp_path):
    assert "there is no file in this folder" in complaint(tmp_path)
    made(tmp_path / "a.doc", "x")
    assert "found only .doc; name one of these files" in complaint(tmp_path)


def test_parts_in_names():
    assert [part_in(name) for name in ("X_TRAIN.ts", "val", "test-images", "latest.csv")] == [
        "train", "valid", "test", None,
    ]  # fmt: skip


# ---- .ts

TS = "#note\n@problemName P\n@timeStamps false\n@classLabel true a b\n@univariate false\n@data\n"


def test_ts_files_and_pairs(tmp_path):
    made(tmp_path / "P_TRAIN.ts", TS + "1,2,3:4,5,6:a\n7,8:9,1E1:b\n")
    made(tmp_path / "P_TEST.ts", TS + "1,?,3:4,5,6:b\n")
    one = read(tmp_path / "P_TRAIN.ts")
    assert [(e.answer, e.input.tolist()) for e in one] == [("a", [[1, 4], [2, 5], [3, 6]]), ("b", [[7, 9], [8, 10]])]
    both = read(tmp_path / "P", missing="previous")
    assert [(e.part, len(e.input)) for e in both] == [("train", 3), ("train", 2), ("test", 3)]
    assert both[2].input[1].tolist() == [1, 5]
    assert read(tmp_path, missing="zero")[2].input[1].tolist() == [0, 5]
    message = complaint(tmp_path / "P")
    assert "P_TEST.ts, line 7, channel 1, step 2: found '?', a missing value; set missing=... to zero" in message
    made(tmp_path / "Q_TRAIN.ts", TS)
    assert "several files are for the same split; name one set" in complaint(tmp_path, kind=UsageError)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1,2:1,2,3:a", "line 7: the channels of one series have different lengths (2, 3)"),
        ("1,x:1,2:a", "line 7, channel 1, step 2: found 'x', expected a number"),
        ("1,2:1,inf:a", "line 7, channel 2, step 2: found 'inf', expected a finite number"),
        ("1,2:1,2:c", "line 7: the label 'c' is not in the header, which has a, b"),
        ("", "there are no examples in it"),
    ],
)
def test_bad_ts_lines(tmp_path, line, expected):
    assert expected in complaint(made(tmp_path / "p.ts", TS + line + "\n"))


def test_bad_ts_headers(tmp_path):
    assert "no line @data" in complaint(made(tmp_path / "p.ts", "@classLabel true a\n"))
    assert "found data before the line @data" in complaint(made(tmp_path / "q.ts", "1,2:a\n"))
    stamped = made(tmp_path / "r.ts", TS.replace("Stamps false", "Stamps true"))
    assert "time stamps (@timeStamps true) are not supported" in complaint(stamped)
    assert "the header does not say @targetLabel true" in complaint(made(tmp_path / "s.ts", TS), "numbers")
    regression = made(tmp_path / "t.ts", "@targetLabel true\n@data\n1,2:0.5\n")
    assert read(regression, "numbers")[0].answer.tolist() == [0.5]


# ---- arrays


def test_npz_of_every_shape(tmp_path):
    x = np.arange(24.0).reshape(2, 4, 3)
    np.savez(tmp_path / "a.npz", x=x, y=[3, 4])
    assert [(e.input.shape, e.answer) for e in read(tmp_path / "a.npz")] == [((4, 3), "3"), ((4, 3), "4")]
    np.savez(tmp_path / "b.npz", x_train=x, y_train=[0.5, 1], x_test=x[:1], y_test=[2.0])
    assert [(e.part, e.answer.tolist()) for e in read(tmp_path / "b.npz", "numbers")] == [
        ("train", [0.5]), ("train", [1]), ("test", [2]),
    ]  # fmt: skip
    np.savez(tmp_path / "c.npz", x=np.arange(5.0), offsets=[0, 2, 5], y=["u", "v"])
    assert [(e.input.ravel().tolist(), e.answer) for e in read(tmp_path / "c.npz")] == [([0, 1], "u"), ([2, 3, 4], "v")]
    np.savez(tmp_path / "d.npz", x=x, y=x * 2)
    assert read(tmp_path / "d.npz", "series")[1].answer[0].tolist() == [24, 26, 28]
    np.savez(tmp_path / "e.npz", x=x, y=[[0, 1, 1], [0, 0, 0]])
    assert [e.answer for e in read(tmp_path / "e.npz", "classes")] == [("1", "2"), ()]
    assert [e.answer for e in read(([np.ones(3), np.ones((2, 1))], ["a", "b"]))] == ["a", "b"]
    assert [e.part for e in read({"train": (x, [0, 1]), "test": (x, [0, 1])})] == ["train"] * 2 + ["test"] * 2


def test_texts_and_word_lists_beside_their_answers():
    texts, words = ["a b", "c d"], [["a", "b"], ["c"]]
    assert [(e.input, e.answer) for e in read((texts, ["u", "v"]))] == [("a b", "u"), ("c d", "v")]
    for form in (words, [tuple(each) for each in words], [np.array(each) for each in words]):
        assert [(e.input, e.answer) for e in read((form, [1, 2]))] == [(["a", "b"], "1"), (["c"], "2")]
    assert [e.input for e in read((np.array([["a", "b"], ["c", "d"]]), [1, 2]))] == [["a", "b"], ["c", "d"]]
    assert [e.answer for e in read((words, [["X", "Y"], ["Z"]]), "tags")] == [["X", "Y"], ["Z"]]
    assert "example 1: found 2 tags for 1 words" in complaint((words, [["X", "Y"], ["Z", "Z"]]), "tags")
    assert "the text has no words" in complaint(([["a"], []], [1, 2]))


def test_bad_npz_files(tmp_path):
    ragged = np.empty(2, object)
    ragged[:] = [np.ones(2), np.ones(3)]
    np.savez(tmp_path / "o.npz", x=ragged, y=[0, 1])
    assert "holds Python objects, which are not opened; save series of unequal lengths" in complaint(tmp_path / "o.npz")
    x = np.ones((2, 4, 3))
    x[1, 2, 0] = np.nan
    np.savez(tmp_path / "n.npz", x=x, y=[0, 1])
    assert "array 'x', example 1, step 3, channel 1: found nan" in complaint(tmp_path / "n.npz")
    assert read(tmp_path / "n.npz", missing="zero")[1].input[2, 0] == 0
    np.savez(tmp_path / "l.npz", x=np.ones((2, 4)), y=[0, 1, 2])
    assert "found 2 inputs and 3 targets" in complaint(tmp_path / "l.npz")
    np.savez(tmp_path / "m.npz", a=np.ones(2))
    assert "name the array of the inputs with column=...; it has a" in complaint(tmp_path / "m.npz", kind=UsageError)
    assert "not an .npz file, or damaged" in complaint(made(tmp_path / "p.npz", b"PK\x03\x04 broken"))
    assert "the series has 1 channels, but the first" in complaint(([np.ones((3, 2)), np.ones(3)], [0, 1]))
    assert "expected numbers, or lists of numbers" in complaint(([[[1.0], [1.0, 2.0]]], [0]))


# ---- tagged words


def test_columns_with_documents(tmp_path):
    text = "-DOCSTART- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n\n-DOCSTART- O\n\nBonn NNP B-LOC\n"
    path = made(tmp_path / "a.conll", text)
    found = read(path, "tags", group="file")
    assert found[0][:2] == (["EU", "rejects"], ["B-ORG", "O"])
    assert [e.input for e in found] == [["EU", "rejects"], ["Peter"], ["Bonn"]]
    assert [e.group for e in found] == ["a.conll 1", "a.conll 1", "a.conll 2"]
    assert read(path, "tags", tag_column=1)[0].answer == ["NNP", "VBZ"]
    assert found[1].place.endswith("line 6")
    bad = made(tmp_path / "b.conll", "EU NNP\nrejects\n")
    assert "line 2: found 1 columns, but the first line has 2" in complaint(bad, "tags")
    universal = made(tmp_path / "c.conllu", "# text = du\n1-2\tdu\t_\t_\n1\tde\tde\tADP\n2\tle\tle\tDET\n")
    assert read(universal, "tags")[0][:2] == (["de", "le"], ["ADP", "DET"])


def test_words_with_a_mark(tmp_path):
    made(tmp_path / "spoken" / "a.txt", "The_DT dog_NN ._. \nU. S._NNP up_a_b_RP\n")
    made(tmp_path / "written" / "b.txt", "Go_VB on_RP\n")
    assert "line 2: the word 'U.' has no tag after a '_'" in complaint(tmp_path, "tags")
    found = read(tmp_path, "tags", untagged="join", group="file")
    assert found[1][:2] == (["U. S.", "up_a_b"], ["NNP", "RP"])
    assert [e.group for e in found] == ["spoken/a.txt 0", "spoken/a.txt 0", "written/b.txt 0"]
    skipped = open_labelled(tmp_path, Reading(untagged="skip"), "tags")
    assert [e.input[0] for e in skipped] == ["The", "S.", "Go"]
    assert "1 words without a tag were skipped" in skipped.notes
    assert read(made(tmp_path / "c.txt", "a/X b/Y\n"), "tags")[0][:2] == (["a", "b"], ["X", "Y"])


# ---- sound


def test_clips_by_folder_by_name_and_in_pairs(tmp_path):
    wave = np.sin(np.arange(800) / 5)
    for name in ("a/0_ann.wav", "b/1_bob.wav"):
        (tmp_path / name).parent.mkdir()
        soundfile.write(tmp_path / name, np.stack([wave, wave], 1) / 2, 8000)
    raw = SoundReading(features="samples")
    found = read(tmp_path, sound=raw)
    assert [(e.answer, e.input.shape) for e in found] == [("a", (800, 1)), ("b", (800, 1))]
    np.testing.assert_allclose(found[0].input[:, 0], wave / 2, atol=1e-4)
    named = read(tmp_path, pattern=r"(?P<answer>\d)_(?P<speaker>\w+)\.", group="speaker")
    assert [(e.answer, e.group, e.input.shape) for e in named] == [("0", "ann", (6, 40)), ("1", "bob", (6, 40))]
    assert read(tmp_path, "numbers", pattern=r"(?P<answer>\d)_")[1].answer.tolist() == [1]
    soundfile.write(tmp_path / "b" / "2.wav", wave, 16000)
    assert "2.wav: has 16000 samples a second, but the previous files have 8000" in complaint(tmp_path)
    made(tmp_path / "b" / "2.wav", b"RIFF nonsense")
    assert "2.wav: cannot be read as sound" in complaint(tmp_path)
    pairs = tmp_path / "pairs"
    for kind in ("noisy", "clean"):
        (pairs / kind).mkdir(parents=True)
        soundfile.write(pairs / kind / "x.wav", wave[:100], 8000)
    assert [len(e.answer) for e in read(pairs, "series", window=60)] == [60, 40]
    (pairs / "clean" / "x.wav").unlink()
    assert "'x.wav' is only in one of them" in complaint(pairs, "series")


# ---- images


def idx(array: np.ndarray) -> bytes:
    shape = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes())


def test_images_as_sequences(tmp_path):
    picture = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10
    for name in ("a/0.png", "b/1.png"):
        (tmp_path / name).parent.mkdir()
        Image.fromarray(picture).save(tmp_path / name)
    np.testing.assert_allclose(read(tmp_path)[0].input, picture / 255, atol=1e-6)
    pixels = read(tmp_path, images=ImageReading(order="pixels"))[1].input
    np.testing.assert_allclose(pixels, picture.reshape(24, 1) / 255, atol=1e-6)
    patches = read(tmp_path, images=ImageReading(order="patches", patch=2))[0].input
    assert patches.shape == (6, 4)
    np.testing.assert_allclose(patches[1], picture[:2, 2:4].ravel() / 255, atol=1e-6)
    order = [read(tmp_path, images=ImageReading(order="pixels", permutation=s))[0].input.ravel() for s in (1, 1, 2)]
    assert np.array_equal(order[0], order[1]) and not np.array_equal(order[0], order[2])
    assert sorted(order[0]) == sorted(pixels.ravel())
    assert read(tmp_path, images=ImageReading(grey=False))[0].input.shape == (4, 18)
    assert "an image of 6 x 4 cannot be divided into patches of 4 pixels" in complaint(
        tmp_path, images=ImageReading(order="patches")
    )
    Image.fromarray(picture[:3]).save(tmp_path / "b" / "2.png")
    assert "2.png: is 6 x 3 pixels, but the previous files are 6 x 4" in complaint(tmp_path)
    made(tmp_path / "b" / "2.png", b"\x89PNG\r\n\x1a\n broken")
    assert "2.png: cannot be read as an image" in complaint(tmp_path)
    made(tmp_path / "3.png", b"")
    assert "the class of this file is not known" in complaint(tmp_path)


def test_idx_files(tmp_path):
    images = np.arange(3 * 2 * 2).reshape(3, 2, 2)
    for part in ("train", "t10k"):
        made(tmp_path / f"{part}-images-idx3-ubyte.gz", idx(images))
        made(tmp_path / f"{part}-labels-idx1-ubyte.gz", idx(np.array([7, 8, 9])))
    found = read(tmp_path)
    assert [(e.answer, e.part) for e in found] == [(a, p) for p in ("train", "test") for a in "789"]
    np.testing.assert_allclose(found[1].input, images[1] / 255, atol=1e-6)
    made(tmp_path / "t10k-images-idx3-ubyte.gz", gzip.compress(b"\0\0\x08\x03" + bytes(11)))
    assert "this is not an idx file of bytes" in complaint(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    assert "expected files such as train-images-idx3-ubyte" in complaint(tmp_path)
