"""Pairs as models that count them take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.tokens import UNKNOWN
from unrolled.data.codecs.text import Codec
from unrolled.data.examples import Examples


@dataclass(frozen=True)
class Counted:
    """All sources and targets after each other, with their offsets."""

    examples: Examples
    codecs: tuple[Any, Codec]

    @property
    def source(self) -> NDArray[Any]:
        return self.examples.values(SOURCE)

    @property
    def source_offsets(self) -> NDArray[np.int64]:
        return self.examples.fields[SOURCE].offsets[0]

    @property
    def target(self) -> NDArray[np.int32]:
        return self.examples.values(TARGET)

    @property
    def target_offsets(self) -> NDArray[np.int64]:
        return self.examples.fields[TARGET].offsets[0]

    @cached_property
    def same(self) -> NDArray[np.int64]:
        """[V_s]: the target token that is written like each source token, <unknown> where there is none."""
        source, target = self.codecs
        if source.to_json() == target.to_json():
            return np.arange(source.size)
        number_of = {target.decode([token]): token for token in range(len(target.specials), target.size)}
        first = len(source.specials)
        own = [number_of.get(source.decode([token]), UNKNOWN) for token in range(first, source.size)]
        return np.array([*range(first), *own], np.int64)
