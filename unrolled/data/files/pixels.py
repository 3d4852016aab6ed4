"""The pixels of an image, from a file or an array, and their brightness between 0 and 1.

| an image of | brightness |
|---|---|
| bytes; 16-bit numbers without sign; truth values | v / 255; v / 65535; v |
| floating-point numbers | v, which must be between 0 and 1 |
| colours with more than 8 bits in a file | their first 8 bits |

A file is turned as its EXIF orientation says, and what is transparent is seen on white. Animations, several pages and
numbers without a known range (32-bit, signed, 12-bit) are refused.
"""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.opening import open_regular

if TYPE_CHECKING:
    from PIL import Image

Pixels = NDArray[Any]
"""[H, W] or [H, W, 3], of bytes, 16-bit numbers, or floating-point numbers between 0 and 1"""

GREY = ("1", "L", "LA", "La")
OPAQUE = ("1", "L", "RGB", "CMYK", "YCbCr", "HSV")
MOST_PIXELS = 1 << 26  # of an image: 8192 x 8192
PHOTOMETRIC, BITS = 262, 258  # tags of TIFF
WHITE_IS_ZERO = 0
DAMAGED = (OSError, ValueError, SyntaxError, TypeError, LookupError, EOFError, OverflowError, struct.error, zlib.error)


def white_of(image: NDArray[Any], place: str) -> int:
    """The number that is white in an image, of whatever shape; refused where it is not known.

    >>> white_of(np.zeros(2, np.uint16), "here"), white_of(np.array([0.0, 0.5]), "here")
    (65535, 1)
    """
    if image.dtype in (np.uint8, np.uint16):
        return int(np.iinfo(image.dtype).max)
    if image.dtype.kind not in "bf":
        raise DataError(
            f"{place}: found an image of {image.dtype}, expected bytes, uint16, or numbers between 0 and 1; convert it"
        )
    inside = (image >= 0) & (image <= 1)  # False of NaN too
    if not inside.all():
        raise DataError(
            f"{place}: found {image[~inside][0]} in an image of {image.dtype}, expected values between 0 and 1; "
            "scale it"
        )
    return 1


def read_image(path: Path, grey: bool) -> Pixels:
    """The pixels of a file, [H, W] or [H, W, 3]."""
    from PIL import Image, UnidentifiedImageError

    with open_regular(path) as handle:
        try:
            image = shown_in(handle, str(path))
        except (*DAMAGED, Image.DecompressionBombError) as error:
            reason = "it is not an image, or damaged" if isinstance(error, UnidentifiedImageError) else str(error)
            raise DataError(f"{path}: cannot be read as an image ({reason}); save it again as .png") from None
    return coloured(image, grey)


def shown_in(handle: BinaryIO, place: str, formats: list[str] | None = None) -> Pixels:
    """What a file shows, [H, W] or [H, W, 3].

    The library warns where the description of an image is damaged. In TIFF it says what the numbers mean, so such a
    file is refused; elsewhere it is a camera's, and pixels are what they are.
    """
    from PIL import Image

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore")  # that of many pixels too: `decoded` looks at the size itself
        warnings.simplefilter("always", UserWarning)
        with Image.open(handle, formats=formats) as file:
            image = decoded(file, place)
            if file.format == "TIFF" and found:
                raise ValueError(f"its description is damaged: {str(found[0].message).strip()}")
            return image


def decoded(file: Image.Image, place: str) -> Pixels:
    """What an opened file shows: [H, W] where it is grey, otherwise [H, W, 3]."""
    from PIL import Image, ImageOps

    if math.prod(file.size) > MOST_PIXELS:
        raise DataError(
            f"{place}: is {file.width} x {file.height} pixels, more than {MOST_PIXELS:,} in all; make it smaller"
        )
    if file.format != "MPO" and _has_second(file):  # the first of MPO is the photo, the others are made of it
        raise DataError(f"{place}: has several frames or pages, expected one image; save each as its own file")
    if file.mode == "LAB":
        raise DataError(f"{place}: CIELAB colours are not supported; save it in RGB")
    if file.mode.startswith(("I", "F")):
        return _deep(file, place)
    image = ImageOps.exif_transpose(file)
    mode = "L" if image.mode in GREY else "RGB"
    if image.mode in OPAQUE and "transparency" not in image.info:
        return np.asarray(image.convert(mode))
    white = Image.new("RGBA", image.size, "white")
    seen = Image.alpha_composite(white, image.convert("RGBA"))
    return np.asarray(seen.convert(mode))


def _has_second(file: Image.Image) -> bool:
    try:
        file.seek(1)
    except EOFError:
        return False
    finally:
        file.seek(0)
    return True


def _deep(file: Image.Image, place: str) -> Pixels:
    """Grey with more than 8 bits: 16-bit numbers, or floating-point numbers between 0 and 1."""
    from PIL import ImageOps, TiffImagePlugin

    tags = file.tag_v2 if isinstance(file, TiffImagePlugin.TiffImageFile) else {}
    bits = tags.get(BITS, (16,))
    if "transparency" in file.info:
        raise DataError(f"{place}: transparent colours with 16 bits are not supported; save it without")
    if file.mode.startswith("I;16") or (file.mode == "I" and file.format in ("PNG", "PPM")):
        if tuple(bits) != (16,):
            raise DataError(f"{place}: has {bits[0]} bits per pixel, expected 8 or 16; save it with one of these")
        image: Pixels = np.asarray(ImageOps.exif_transpose(file)).astype(np.uint16)
        return 65535 - image if tags.get(PHOTOMETRIC) == WHITE_IS_ZERO else image
    if file.mode != "F" or tags.get(PHOTOMETRIC) == WHITE_IS_ZERO:
        raise DataError(
            f"{place}: holds 32-bit or signed numbers, whose white point is not known; save it with 8 or 16 bits "
            "per pixel"
        )
    image = np.asarray(ImageOps.exif_transpose(file))
    white_of(image, place)
    return image


def coloured(image: Pixels, grey: bool) -> Pixels:
    """An image in grey [H, W] or in colours [H, W, 3]."""
    from PIL import Image

    if grey == (image.ndim == 2):
        return image
    if image.dtype == np.uint8:
        return np.asarray(Image.fromarray(image).convert("L" if grey else "RGB"))
    if not grey:
        return np.repeat(image[:, :, None], 3, axis=2)
    return _rounded(image @ np.array([0.299, 0.587, 0.114]), image.dtype)  # ITU-R BT.601


def fitted(image: Pixels, size: int | None) -> Pixels:
    """The image within a square of `size` pixels, its proportions kept, in the middle of white."""
    height, width = image.shape[:2]
    if size is None or (height, width) == (size, size):
        return image
    scale = size / max(height, width)
    across, down = max(1, round(width * scale)), max(1, round(height * scale))
    square = np.full((size, size, *image.shape[2:]), white_of(image, "the image"), image.dtype)
    top, left = (size - down) // 2, (size - across) // 2
    square[top : top + down, left : left + across] = _resized(image, across, down)
    return square


def _resized(image: Pixels, across: int, down: int) -> Pixels:
    from PIL import Image

    if image.dtype == np.uint8:
        return np.asarray(Image.fromarray(image).resize((across, down), Image.Resampling.LANCZOS))
    if image.ndim == 3:
        return np.stack([_resized(image[:, :, c], across, down) for c in range(image.shape[2])], axis=2)
    exact = Image.fromarray(image.astype(np.float32))
    return _rounded(np.asarray(exact.resize((across, down), Image.Resampling.LANCZOS)), image.dtype)


def _rounded(values: NDArray[Any], dtype: np.dtype[Any]) -> Pixels:
    """Values that were calculated, in the range of a type again."""
    if dtype.kind == "u":
        return values.round().clip(0, np.iinfo(dtype).max).astype(dtype)
    return values.clip(0, 1).astype(dtype)
