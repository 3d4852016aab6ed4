"""Images inside text: PNG in base64 as a data URI, as pages and JSON lines hold them."""

from __future__ import annotations

import base64
import binascii
import io

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.data.files.pixels import Pixels, shown_in

HEAD = "data:image/png;base64,"
LARGEST = 16 * 2**20  # characters that are looked at


def bytes_of(pixels: NDArray[np.uint8]) -> bytes:
    """Bytes [H, W] or [H, W, 3] as a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def to_text(pixels: NDArray[np.uint8]) -> str:
    """Bytes [H, W] or [H, W, 3] as a data URI."""
    return HEAD + base64.b64encode(bytes_of(pixels)).decode("ascii")


def from_text(text: str, place: str) -> Pixels:
    """The pixels [H, W] or [H, W, 3] again."""
    from PIL import UnidentifiedImageError

    try:
        if not text.startswith(HEAD) or len(text) > LARGEST:
            raise ValueError("it does not start as one, or is too large")
        return shown_in(io.BytesIO(base64.b64decode(text[len(HEAD) :], validate=True)), place, ["PNG"])
    except (UnidentifiedImageError, binascii.Error, ValueError, OSError, SyntaxError) as error:
        raise DataError(f"{place}: not a PNG image as a data URI ({error})") from None
