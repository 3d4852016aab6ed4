"""The letters A to Z as images of 16 x 16 pixels, 0 or 1, in the font DejaVu Sans that comes with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase

import numpy as np

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made

SIDE, POINTS = 16, 15


def read(_: Config) -> Iterator[Made]:
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", POINTS)
    for letter in ascii_uppercase:
        image = Image.new("L", (SIDE, SIDE), 0)
        ImageDraw.Draw(image).text((SIDE / 2, SIDE / 2), letter, fill=255, font=font, anchor="mm")
        yield Made((np.asarray(image) > 127).astype(np.float32), letter, f"letter {letter}")  # [16, 16]


BUILTIN = BuiltinSpec(
    summary="the letters A to Z as images of 16 x 16 bits, for recall",
    licence="DejaVu Fonts License (through matplotlib)",
    size="26 images",
    holds="labelled",
    answers="class",
    use="recall",
    read=read,
)
