"""Images of every depth: a ramp that is written by hand is read as it was written, or refused in one sentence."""

from __future__ import annotations

import base64
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from tests.faults.corpus.images import png
from unrolled.core.errors import DataError
from unrolled.data.files.data_uri import HEAD, from_text
from unrolled.data.files.pixels import fitted, read_image, white_of
from unrolled.data.reading import CaptionReading, ImageReading, Reading
from unrolled.data.sources.captions import as_rows, open_captions
from unrolled.data.sources.open_labelled import open_labelled

RAMP = np.array([[0, 1, 255, 256], [32767, 32768, 65279, 65535]], np.uint16)  # [2, 4]
BYTES = np.array([[0, 1, 64, 127], [128, 192, 254, 255]], np.uint8)


def values(path: Path, grey: bool = True) -> np.ndarray:
    return as_rows(read_image(path, grey))


def as_file(image: Image.Image, form: str) -> bytes:
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_image(path, True)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_sixteen_bits_keep_every_value(tmp_path: Path, name: str) -> None:
    Image.fromarray(RAMP).save(tmp_path / name)
    np.testing.assert_allclose(values(tmp_path / name), RAMP / 65535, atol=1e-7)
    colours = values(tmp_path / name, grey=False)
    np.testing.assert_allclose(colours, np.repeat(RAMP, 3, axis=1) / 65535, atol=1e-7)


def test_sixteen_bits_in_a_folder_and_in_captions(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    Image.fromarray(RAMP).save(tmp_path / "a" / "1.png")
    (found,) = open_labelled(tmp_path, Reading(), "class")
    np.testing.assert_allclose(found.input, RAMP / 65535, atol=1e-7)
    (tmp_path / "captions.csv").write_text("image,caption\na/1.png,a ramp\n")
    (pair,) = open_captions(tmp_path, CaptionReading(grey=True))
    np.testing.assert_allclose(pair.source, RAMP / 65535, atol=1e-7)


def test_sixteen_bits_with_white_as_zero_and_the_other_byte_order(tmp_path: Path) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[262] = 0
    Image.fromarray(RAMP).save(tmp_path / "a.tif", tiffinfo=tags)
    np.testing.assert_allclose(values(tmp_path / "a.tif"), 1 - RAMP / 65535, atol=1e-7)
    Image.frombytes("I;16B", (4, 2), RAMP.astype(">u2").tobytes()).save(tmp_path / "b.tif")
    np.testing.assert_allclose(values(tmp_path / "b.tif"), RAMP / 65535, atol=1e-7)


def test_floating_point_images_are_between_zero_and_one(tmp_path: Path) -> None:
    wanted = (RAMP / 65535).astype(np.float32)
    Image.fromarray(wanted).save(tmp_path / "a.tif")
    np.testing.assert_array_equal(values(tmp_path / "a.tif"), wanted)
    Image.fromarray(255 * wanted).save(tmp_path / "a.tif")
    assert "expected values between 0 and 1" in refused(tmp_path / "a.tif")
    Image.fromarray(np.where(wanted > 0, wanted, np.nan)).save(tmp_path / "a.tif")
    assert "found nan in an image of float32" in refused(tmp_path / "a.tif")


def test_numbers_without_a_known_white_are_refused(tmp_path: Path) -> None:
    Image.fromarray(RAMP.astype(np.int32)).save(tmp_path / "a.tif")
    assert "32-bit or signed numbers, whose white point is not known" in refused(tmp_path / "a.tif")


def test_one_bit_grey_with_alpha_and_palettes(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(BYTES > 100).save(path)
    np.testing.assert_array_equal(values(path), BYTES > 100)
    Image.fromarray(BYTES).save(path)
    np.testing.assert_allclose(values(path), BYTES / 255, atol=1e-7)
    alpha = np.array([[255, 255, 255, 255], [255, 255, 255, 0]], np.uint8)
    Image.merge("LA", [Image.fromarray(BYTES), Image.fromarray(alpha)]).save(path)
    np.testing.assert_allclose(values(path), BYTES / 255, atol=1e-7)  # the transparent pixel is white
    Image.merge("LA", [Image.fromarray(0 * BYTES), Image.fromarray(alpha)]).save(path)
    np.testing.assert_array_equal(values(path), 1 - alpha / 255)
    palette = Image.fromarray(np.array([[0, 1], [2, 1]], np.uint8), mode=None).convert("P")
    palette.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    palette.save(path, transparency=1)
    found = read_image(path, grey=False)
    assert found.tolist() == [[[255, 0, 0], [255, 255, 255]], [[0, 0, 255], [255, 255, 255]]]
    half = np.zeros((1, 1, 4), np.uint8)
    half[..., 3] = 51  # a fifth of black on white
    Image.fromarray(half).save(path)
    assert values(path).tolist() == [[pytest.approx(0.8)]]


def test_cmyk(tmp_path: Path) -> None:
    inks = np.array([[[255, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 255]]], np.uint8)  # cyan, paper, black
    Image.frombytes("CMYK", (3, 1), inks.tobytes()).save(tmp_path / "a.tif")
    assert read_image(tmp_path / "a.tif", grey=False).tolist() == [[[0, 255, 255], [255, 255, 255], [0, 0, 0]]]


def test_colours_that_would_be_converted_wrongly_are_refused(tmp_path: Path) -> None:
    Image.new("LAB", (2, 2)).save(tmp_path / "a.tif")
    assert "CIELAB" in refused(tmp_path / "a.tif")


@pytest.mark.parametrize("deep", [False, True])
def test_the_orientation_of_a_photo_is_applied(tmp_path: Path, deep: bool) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    ramp: np.ndarray = RAMP if deep else BYTES
    Image.fromarray(ramp).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", True), np.rot90(ramp, -1))


@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.tif", "a.jpg"])
def test_the_orientation_is_applied_in_every_format(tmp_path: Path, name: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter to the right
    half = np.zeros((16, 32, 3), np.uint8)
    half[:, 16:] = 255  # the right half is white: after the turn the lower one
    Image.fromarray(half).save(tmp_path / name, exif=exif, **({"quality": 100} if name == "a.jpg" else {}))
    image = read_image(tmp_path / name, grey=True)
    assert image.shape == (32, 16)
    assert image[:12].max() < 20
    assert image[20:].min() > 235


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_few_bits_reach_from_black_to_white(tmp_path: Path, bits: int) -> None:
    levels = 2**bits
    packed = np.packbits(np.unpackbits(np.arange(levels, dtype=np.uint8)[:, None], axis=1)[:, 8 - bits :].ravel())
    (tmp_path / "a.png").write_bytes(png(levels, 1, b"\0" + packed.tobytes(), bits=bits))
    expected = np.arange(levels) * 255 // (levels - 1)
    assert read_image(tmp_path / "a.png", grey=True).tolist() == [expected.tolist()]


def test_twelve_bits_have_no_known_white(tmp_path: Path) -> None:
    tags = {256: 2, 257: 1, 258: 12, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: 3}  # of a row of two pixels
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    (tmp_path / "a.tif").write_bytes(b"II*\0" + struct.pack("<I", 12) + b"\xff\xf0\x00\0" + directory)
    with pytest.raises(DataError, match="has 12 bits per pixel, expected 8 or 16"):
        read_image(tmp_path / "a.tif", grey=True)


def test_a_damaged_description_is_refused_where_it_tells_what_numbers_mean(tmp_path: Path) -> None:
    data = bytearray(as_file(Image.fromarray(BYTES), "TIFF"))
    entry = data.index(struct.pack("<H", 262))  # how bright zero is
    data[entry + 4 : entry + 8] = struct.pack("<I", 1_000_000)  # as many values, which are not there
    (tmp_path / "a.tif").write_bytes(data)
    assert "description is damaged" in refused(tmp_path / "a.tif")
    data[data.index(struct.pack("<HH", 256, 4))] = 0xFF  # no longer the width
    (tmp_path / "a.tif").write_bytes(data)
    assert "cannot be read as an image" in refused(tmp_path / "a.tif")
    exif = b"Exif\0\0II*\0\x08\0\0\0\xff\xff"  # tells of 65,535 entries, and ends
    Image.fromarray(BYTES).save(tmp_path / "a.jpg", exif=exif, quality=100)
    assert read_image(tmp_path / "a.jpg", grey=True).shape == BYTES.shape


def test_many_pixels_are_refused_by_the_header(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(13_000, 13_000, b""))
    with pytest.raises(DataError, match="13000 x 13000 pixels, more than 67,108,864"):
        read_image(tmp_path / "a.png", grey=True)


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.tif", "a.webp"])
def test_animations_and_pages_are_refused(tmp_path: Path, name: str) -> None:
    frames = [Image.fromarray(BYTES), Image.fromarray(255 - BYTES)]
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:])
    assert "several frames or pages" in refused(tmp_path / name)
    frames[0].save(tmp_path / name, **({"lossless": True} if name == "a.webp" else {}))
    np.testing.assert_allclose(values(tmp_path / name), BYTES / 255, atol=1e-7)


def test_the_photo_of_a_phone_is_its_first_image(tmp_path: Path) -> None:
    first, preview = Image.new("RGB", (8, 8), "white"), Image.new("RGB", (8, 8), "black")
    first.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[preview])
    assert values(tmp_path / "a.jpg").min() == 1


def test_images_inside_text_are_read_like_files() -> None:
    def inside(image: Image.Image, **settings: Any) -> np.ndarray:
        buffer = io.BytesIO()
        image.save(buffer, format="PNG", **settings)
        return from_text(HEAD + base64.b64encode(buffer.getvalue()).decode(), "here")

    np.testing.assert_array_equal(inside(Image.fromarray(RAMP)), RAMP)
    assert inside(Image.new("RGBA", (1, 1), (0, 0, 0, 0))).tolist() == [[[255, 255, 255]]]
    with pytest.raises(DataError, match="here: has several frames"):
        inside(Image.fromarray(BYTES), save_all=True, append_images=[Image.fromarray(255 - BYTES)])


def test_deep_images_are_brought_to_a_size_in_their_own_depth() -> None:
    small = fitted(np.full((4, 8), 40000, np.uint16), 4)
    assert small.dtype == np.uint16
    assert small[1:3].tolist() == [[40000] * 4] * 2 and small[[0, 3]].min() == 65535
    colours = fitted(np.full((8, 8, 3), 0.25, np.float32), 4)
    np.testing.assert_allclose(colours, 0.25, atol=1e-6)


# ---- arrays


ROWS = ImageReading()


def series(x: np.ndarray, images: ImageReading = ROWS) -> np.ndarray:
    return next(iter(open_labelled((x,), Reading(images=images), "none"))).input


def test_arrays_of_images() -> None:
    pixels = ImageReading(order="pixels")
    np.testing.assert_allclose(series(RAMP[None], pixels), RAMP.reshape(8, 1) / 65535, atol=1e-7)
    np.testing.assert_array_equal(series(BYTES[None] > 100, pixels), (BYTES > 100).reshape(8, 1))
    np.testing.assert_allclose(series(BYTES[None] / 255, pixels), BYTES.reshape(8, 1) / 255, atol=1e-7)
    for ramp, white in ((RAMP, 65535), (BYTES, 255), (BYTES / 255, 1)):
        colours = np.repeat(ramp[None, :, :, None], 3, axis=3)  # [1, 2, 4, 3]
        np.testing.assert_allclose(series(colours), ramp / white, atol=1e-6)
    with pytest.raises(DataError, match="found an image of int64"):
        series(np.zeros((1, 2, 2, 3), np.int64))
    with pytest.raises(DataError, match=r"found 255.0 in an image of float64, expected values between 0 and 1"):
        series(np.full((1, 2, 2, 3), 255.0))


def test_arrays_of_images_with_captions() -> None:
    def row(image: np.ndarray) -> np.ndarray:
        return next(iter(open_captions((image[None], ["a ramp"]), CaptionReading(grey=True)))).source

    np.testing.assert_allclose(row(RAMP), RAMP / 65535, atol=1e-7)
    np.testing.assert_array_equal(row(BYTES > 100), BYTES > 100)
    np.testing.assert_allclose(row(BYTES / 255), BYTES / 255, atol=1e-7)
    for wrong in (BYTES.astype(np.int32), BYTES * 1.0, BYTES * 1j):
        with pytest.raises(DataError, match=str(wrong.dtype)):
            row(wrong)


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "timedelta64[s]"])
def test_arrays_that_are_no_real_numbers_are_refused(dtype: str) -> None:
    wrong = np.arange(6).reshape(1, 6).astype(dtype)
    with pytest.raises(DataError, match=dtype[:8]):
        series(wrong)
    with pytest.raises(DataError, match="expected"):
        list(open_labelled((np.zeros((6, 3)), wrong[0]), Reading(), "numbers"))
    with pytest.raises(DataError, match="expected a class"):
        list(open_labelled((np.zeros((6, 3)), wrong[0]), Reading(), "class"))


def test_truth_values_and_objects_are_numbers_where_they_are() -> None:
    assert series(np.array([[True, False, True]])).tolist() == [[1], [0], [1]]
    assert series(np.array([[1, 2.5, 3]], object)).tolist() == [[1], [2.5], [3]]
    with pytest.raises(DataError, match="expected numbers"):
        series(np.array([[1, 2j, 3]], object))


def test_noisy_and_clean_bytes_are_in_the_same_units() -> None:
    (found,) = open_labelled((BYTES[None], BYTES[None]), Reading(), "series")
    np.testing.assert_array_equal(found.input, found.answer)


def test_white_of_other_types_is_not_known() -> None:
    with pytest.raises(DataError, match="here: found an image of int16"):
        white_of(np.zeros(2, np.int16), "here")
