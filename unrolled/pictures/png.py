"""The images of a picture: PNG in base64 as data URIs, which pages show as they are. Imports no torch."""

from __future__ import annotations

import base64
import io
import math
import struct
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL import Image

HEAD = "data:image/png;base64,"
PATTERN = rf"^({HEAD}[A-Za-z0-9+/]+={{0,2}})?$"  # nothing: no image there
MOST_PIXELS = 1 << 24  # of all images of a picture
DAMAGED = (OSError, SyntaxError, TypeError, LookupError, EOFError, OverflowError, struct.error, zlib.error)


def pixels_of(text: str) -> Any:
    """The bytes [H, W, 3] of a data URI; a ValueError where it holds none.

    >>> pixels_of(HEAD + "AAAA")
    Traceback (most recent call last):
    ValueError: not a PNG image
    """
    import numpy as np

    with _opened(text) as file:
        return np.asarray(file.convert("RGB"))  # [H, W, 3]


def checked(texts: list[str]) -> list[str]:
    """Images that can be drawn; their sizes are looked at before any is decoded."""
    found = [text for text in texts if text]
    total = 0
    for text in found:
        with _opened(text) as file:
            total += math.prod(file.size)
    if total > MOST_PIXELS:
        raise ValueError(f"images of {total:,} pixels, more than {MOST_PIXELS:,}")
    for text in found:
        pixels_of(text)
    return texts


@contextmanager
def _opened(text: str) -> Iterator[Image.Image]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(base64.b64decode(text[len(HEAD) :], validate=True)), formats=["PNG"]) as file:
            yield file
    except (*DAMAGED, ValueError, Image.DecompressionBombError):
        raise ValueError("not a PNG image") from None
