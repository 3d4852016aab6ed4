"""Handwritten digits of 8 x 8 pixels, rows from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.core.errors import DataError


def read(_: Config) -> Iterator[Made]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError("builtin:digits: needs scikit-learn; install it with: pip install scikit-learn") from None
    found = load_digits()
    for i, (image, label) in enumerate(zip(found.images, found.target)):
        yield Made((image / 16).astype(np.float32), str(label), f"image {i}")  # [8, 8]


BUILTIN = BuiltinSpec(
    summary="handwritten digits of 8 x 8 pixels as 8 steps of 8 numbers, for classify",
    licence="BSD (through scikit-learn)",
    size="1,797 series",
    holds="labelled",
    answers="class",
    use="classify",
    read=read,
)
