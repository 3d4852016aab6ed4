"""The adding problem: x_t = (u_t, m_t), u uniform in [0, 1), two marks m; y = the sum of the marked u.

Hochreiter & Schmidhuber 1997; as in Bai et al. 2018, with one mark in each half of the sequence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.data.builtin._series import Pair, Series, made, rounded


def read(settings: Series) -> Iterator[Made]:
    def make(random: np.random.Generator) -> Pair:
        x = np.zeros((settings.length, 2))  # [T, 2]
        x[:, 0] = rounded(random.random(settings.length))
        half = settings.length // 2
        marks = [int(random.integers(half)), int(random.integers(half, settings.length))]
        x[marks, 1] = 1
        return x.astype(np.float32), np.array([x[marks, 0].sum()])

    return made(settings, make)


BUILTIN = BuiltinSpec(
    summary="adding problem: the sum of the two marked numbers, for regress; builtin:adding,length=600",
    licence="generated",
    size="10,000 series",
    holds="labelled",
    answers="numbers",
    use="regress",
    settings=Series,
    read=read,
)
