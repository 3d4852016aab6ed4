"""Examples with given targets, as closed forms and a quick look take them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from unrolled.core.batch import TARGET
from unrolled.core.outline import TokenLook
from unrolled.core.tokens import NO_ANSWER, SPECIALS
from unrolled.data.collate import BESIDE
from unrolled.data.examples import INPUT, Examples
from unrolled.data.sampler import pooled_batches
from unrolled.layers.counting.token_pairs import Texts, linear_error

EVALUATION_ROWS = 64
LOOKED_AT = 6_000  # examples by which tokens are chosen


def known(section: Examples, size: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """All examples of a section with their targets, as a closed form takes them: -1 is a class without an output."""
    found = ((batch.x, batch.mask, batch.y) for batch in pooled_batches(section, EVALUATION_ROWS, BESIDE))
    numbers = section.values(TARGET).dtype.kind == "f"
    return [(x, mask, y[..., :size] if numbers else y.masked_fill(y >= size, NO_ANSWER))
            for x, mask, y in found if mask is not None]  # fmt: skip


def token_look(sections: Mapping[str, Examples]) -> TokenLook:
    """What a linear model of tokens and their pairs makes of validation data."""
    found = linear_error(*(_texts(sections[split].spread(LOOKED_AT)) for split in ("train", "valid")))
    tokens = sections["train"].values(INPUT)
    often = int((np.bincount(tokens) > 1).sum())
    return TokenLook(*found, often + len(SPECIALS), len(tokens) / max(sections["train"].n_examples, 1))


def _texts(section: Examples) -> Texts:
    field = section.fields[INPUT]
    return Texts(field.values, field.offsets[0], section.values(TARGET))
