"""Samples of sound as levels and back: mu-law to 8 bits, or 16 bits as they are.

    u = sign(x) ln(1 + mu |x|) / ln(1 + mu),   mu = 255           8 bits (ITU-T G.711; van den Oord et al. 2016, 2.2)
    u = x                                                        16 bits
    c = round((u + 1) / 2 (L - 1)),    u_c = 2 c / (L - 1) - 1,    L = 2^bits levels
    x = sign(u) ((1 + mu)^|u| - 1) / mu

Level c stands for all u between u_c - 1 / (L - 1) and u_c + 1 / (L - 1); the first and the last are open. In memory a
sample is the id of a token: c behind the special tokens, two bytes of it with 8 bits and four with 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.tokens import SPECIALS

MU = 255.0
BLOCK = 1 << 20  # samples that are turned at once, so that an hour of sound needs no second copy of numbers

Floats = NDArray[Any]


def compress(x: Floats) -> Floats:
    """u of x, both between -1 and 1.

    >>> compress(np.array([-1.0, 0.0, 1 / 255])).round(4).tolist()
    [-1.0, 0.0, 0.125]
    """
    return np.sign(x) * np.log1p(MU * np.abs(x)) / np.log1p(MU)


def expand(u: Floats) -> Floats:
    """x of u: the inverse of `compress`."""
    return np.sign(u) * np.expm1(np.abs(u) * np.log1p(MU)) / MU


@dataclass(frozen=True)
class Samples:
    """Levels of samples; with 8 bits by mu-law."""

    bits: int = 8

    @property
    def levels(self) -> int:
        return 1 << self.bits

    @property
    def size(self) -> int:
        """How many different tokens there are, special ones among them."""
        return self.levels + len(SPECIALS)

    def encode(self, x: Floats) -> NDArray[Any]:
        """Ids [T] of samples [T]; what is beyond -1 and 1 is cut off.

        >>> codec = Samples(8)
        >>> codec.encode(np.array([-1.0, 0.001, 2.0])).tolist()
        [4, 137, 259]
        """
        ids = np.empty(len(x), np.uint16 if self.bits == 8 else np.int32)
        for at in range(0, len(x), BLOCK):
            some = np.clip(np.asarray(x[at : at + BLOCK], np.float64), -1, 1)
            u = compress(some) if self.bits == 8 else some
            ids[at : at + BLOCK] = np.rint((u + 1) / 2 * (self.levels - 1)) + len(SPECIALS)
        return ids

    def places(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        """u_c of ids; 0 of special ones."""
        u = 2 * (np.asarray(ids, np.float64) - len(SPECIALS)) / (self.levels - 1) - 1
        return np.where(np.asarray(ids) < len(SPECIALS), 0, u).astype(np.float32)

    def heard(self, u: Floats) -> NDArray[np.float32]:
        """Samples between -1 and 1 of any u, also between levels."""
        u = np.clip(np.asarray(u, np.float64), -1, 1)
        return (expand(u) if self.bits == 8 else u).astype(np.float32)

    def decode(self, ids: NDArray[Any]) -> NDArray[np.float32]:
        """Samples of ids."""
        return self.heard(self.places(ids))
