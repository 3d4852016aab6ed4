"""Images: to classify by folder, and with captions."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from tests.faults.corpus.arrays import npz
from tests.faults.corpus.case import Content, asks, bad, good, left_out

RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4


def drawn(shift: int = 0) -> Image.Image:
    return Image.fromarray(np.roll(RAMP, shift))


def saved(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def png(width: int, height: int, data: bytes = b"", colour: int = 0, bits: int = 8) -> bytes:
    """A .png file whose header tells anything."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def pictures(odd: Content | None, name: str = "odd.png") -> dict[str, Content]:
    files: dict[str, Content] = {f"shown/{'ab'[i % 2]}/{i}.png": saved(drawn(i)) for i in range(24)}
    return files if odd is None else {**files, f"shown/b/{name}": odd}


def classify(name: str, odd: Content, *says: str, file: str = "odd.png") -> Any:
    return bad(name, "classify shown", pictures(odd, file), file, *says)


def accepts(name: str, odd: Content, *says: str, file: str = "odd.png") -> Any:
    return good(name, "classify shown", pictures(odd, file), *says, examples=25)


def told(more: str = "", files: Mapping[str, Content] = {}, table: str = "captions.csv") -> dict[str, Content]:
    """A folder of images with their captions."""
    rows = "image,caption\n" + "".join(f"{i}.png,a picture of {i}\n" for i in range(24))
    found: dict[str, Content] = {f"shown/{i}.png": saved(drawn(i)) for i in range(24)}
    return {**found, **files, f"shown/{table}": rows + more}


FRAMES = [drawn(1), drawn(2)]
TURNED = Image.Exif()
TURNED[0x0112] = 6

IMAGES = [
    classify("empty png", b"", "image"),
    classify("text called png", "hello", "image"),
    classify("cut png", saved(drawn())[:-30], "image"),
    classify("png of its header alone", saved(drawn())[:40], "image"),
    classify("damaged png", (lambda data: data[:50] + b"\0\0\0\0" + data[54:])(saved(drawn())), "image"),
    classify("png without pixels", png(0, 0), "image"),
    classify("png of 13,000 x 13,000", png(13_000, 13_000, bytes(13_001 * 100)), "13000", "pixels"),
    classify("png of 2 billion pixels a side", png(2**31 - 1, 2**31 - 1), "pixels"),
    classify("png of another size", saved(Image.new("L", (9, 8))), "9 x 8", "8 x 8"),
    classify("png of one pixel", saved(Image.new("L", (1, 1))), "1 x 1", "8 x 8"),
    classify("animated png", saved(FRAMES[0], save_all=True, append_images=FRAMES[1:]), "frames"),
    classify(
        "animated gif", saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]), "frames", file="odd.gif"
    ),
    classify(
        "animated webp",
        saved(FRAMES[0].convert("RGB"), "WEBP", save_all=True, append_images=[FRAMES[1].convert("RGB")]),
        "frames",
        file="odd.webp",
    ),
    classify(
        "tiff of two pages", saved(FRAMES[0], "TIFF", save_all=True, append_images=FRAMES[1:]), "pages", file="odd.tif"
    ),
    classify("tiff of 32-bit numbers", saved(Image.fromarray(RAMP.astype(np.int32)), "TIFF"), "32-bit", file="odd.tif"),
    classify(
        "tiff of large floats",
        saved(Image.fromarray(RAMP.astype(np.float32)), "TIFF"),
        "between 0 and 1",
        file="odd.tif",
    ),
    classify("cut tiff", saved(drawn(), "TIFF")[:-40], "image", file="odd.tif"),
    classify("cut jpg", saved(drawn(), "JPEG")[:-300], "image", file="odd.jpg"),
    classify("cut gif", saved(drawn(), "GIF")[:-40], "image", file="odd.gif"),
    classify("svg called png", "<svg xmlns='http://www.w3.org/2000/svg'><rect/></svg>", "image"),
    classify("photo of a phone (HEIC) called jpg", b"\0\0\0\x24ftypheic" + bytes(300), "image", file="odd.jpg"),
    accepts("palette", saved(drawn().convert("P"))),
    accepts("16 bits", saved(Image.fromarray(RAMP.astype(np.uint16) * 257))),
    accepts("1 bit", saved(drawn().convert("1"))),
    accepts("alpha", saved(drawn().convert("RGBA"))),
    accepts("grey and alpha", saved(drawn().convert("LA"))),
    accepts("jpg in CMYK", saved(drawn().convert("CMYK"), "JPEG"), file="odd.jpg"),
    accepts("turned jpg", saved(drawn().convert("RGB"), "JPEG", exif=TURNED), file="odd.jpg"),
    accepts("webp", saved(drawn().convert("RGB"), "WEBP"), file="odd.webp"),
    accepts("gif of one frame", saved(drawn(), "GIF"), file="odd.gif"),
    accepts("bmp", saved(drawn(), "BMP"), file="odd.bmp"),
    accepts("jpg called png", saved(drawn(), "JPEG")),
    accepts("capital ending of an image", saved(drawn()), file="ODD.PNG"),
    good(
        "hidden and other files",
        "classify shown",
        pictures(None)
        | {
            "shown/a/.DS_Store": b"\0\1",
            "shown/a/._0.png": b"\0\5",
            "shown/Thumbs.db": b"\xd0\xcf",
            "shown/a/note.txt": "x",
        },
        "2 other files",
        examples=24,
    ),
    bad(
        "images without folders",
        "classify shown",
        {"shown/a.png": saved(drawn()), "shown/b.png": saved(drawn(1))},
        "a.png",
        "folder",
    ),
    bad("one folder of images", "classify shown", {f"shown/a/{i}.png": saved(drawn(i)) for i in range(24)}, "'a'"),
    bad(
        "colours in arrays beyond 1",
        "classify a.npz",
        {"a.npz": npz(x=np.full((9, 8, 8, 3), 7.0), y=np.arange(9) % 2)},
        "a.npz",
        "example 0",
        "7.0",
    ),
    bad(
        "idx files that are cut",
        "classify idx",
        {
            "idx/train-images-idx3-ubyte": b"\0\0\x08\x03" + struct.pack(">III", 9, 8, 8) + bytes(99),
            "idx/train-labels-idx1-ubyte": b"\0\0\x08\x01" + struct.pack(">I", 9) + bytes(9),
        },
        "cut off",
    ),
    bad(
        "idx file that tells of 10^28 images",
        "classify idx",
        {
            "idx/train-images-idx3-ubyte": b"\0\0\x08\x03" + b"\xff" * 12,
            "idx/train-labels-idx1-ubyte": b"\0\0\x08\x01" + struct.pack(">I", 9) + bytes(9),
        },
        "cut off",
    ),
    bad(
        "idx files of other labels",
        "classify idx",
        {
            "idx/train-images-idx3-ubyte": b"\0\0\x08\x03" + struct.pack(">III", 2, 8, 8) + bytes(128),
            "idx/train-labels-idx1-ubyte": b"\0\0\x08\x01" + struct.pack(">I", 9) + bytes(9),
        },
        "2",
        "9",
    ),
]

CAPTIONS = [
    bad(
        "captions without images", "caption shown", {"shown/captions.csv": "image,caption\na.png,b\n"}, "shown", "image"
    ),
    bad("images without captions", "caption shown", {"shown/a.png": saved(drawn())}, "shown", "captions.csv"),
    bad(
        "captions of a header alone",
        "caption shown",
        {"shown/a.png": saved(drawn()), "shown/captions.csv": "image,caption\n"},
        "captions.csv",
        "no row",
    ),
    bad(
        "no image of any caption",
        "caption shown",
        {"shown/a.png": saved(drawn()), "shown/captions.csv": "image,caption\n" + "b.png,x\n" * 9},
        "captions.csv",
        "b.png",
    ),
    bad(
        "caption of an image outside",
        "caption shown",
        told("../x.png,no\n", {"x.png": saved(drawn())}),
        "line 26",
        "../x.png",
    ),
    bad("caption of an absolute path", "caption shown", told("/dev/zero,no\n"), "line 26", "/dev/zero"),
    bad("ragged captions", "caption shown", told("1.png,a dog, and a cat\n"), "captions.csv, line 26", "3 cells"),
    bad(
        "captions in Cyrillic",
        "caption shown",
        told() | {"shown/captions.csv": "image,caption\n0.png,мир\n".encode("cp1251")},
        "captions.csv, line 2, column 7",
        "0xEC",
    ),
    bad(
        "more images than captions",
        "caption a.npz",
        {"a.npz": npz(images=np.zeros((9, 8, 8, 3), np.uint8), captions=np.array(["a"] * 8))},
        "a.npz",
        "9",
        "8",
    ),
    bad(
        "images of two channels",
        "caption a.npz",
        {"a.npz": npz(images=np.zeros((9, 8, 8, 2), np.uint8), captions=np.array(["a"] * 9))},
        "a.npz",
        "[8, 8, 2]",
    ),
    asks(
        "two tables of captions",
        "caption shown",
        told(files={"shown/captions_b.csv": "image,caption\n"}),
        "captions.csv",
    ),
    asks(
        "captions without a column",
        "caption shown",
        {"shown/a.png": saved(drawn()), "shown/captions.csv": "x,y\n1,2\n"},
        "captions.csv",
        "x, y",
    ),
    *left_out("an image that is not there", "caption shown", told("gone.png,no\n"), "gone.png", examples=24),
    *left_out(
        "a damaged image",
        "caption shown",
        told("cut.png,no\n", {"shown/cut.png": saved(drawn())[:-30]}),
        "cut.png",
        examples=24,
    ),
    *left_out(
        "an image of another size",
        "caption shown",
        told("9.png,no\nw.png,no\n", {"shown/w.png": saved(Image.new("L", (9, 8)))}),
        "line 27",
        examples=25,
    ),
    *left_out("a caption that is blank", "caption shown", told("1.png, \n"), "line 26", examples=24),
    good(
        "an image without a caption",
        "caption shown",
        told(files={"shown/x.png": saved(drawn(9))}),
        "25 image files",
        examples=24,
    ),
]

CASES = [*IMAGES, *CAPTIONS]
