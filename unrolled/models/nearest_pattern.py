"""Nearest pattern: the stored pattern with the least distance to the query. What every memory is measured against."""

from __future__ import annotations

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.memory.nearest import NearestPattern


class Config(config.Config):
    """It has no settings."""


def make(config: Config, sizes: Sizes) -> NearestPattern:
    return NearestPattern(sizes.d_in)


MODEL = ModelSpec(
    summary="the stored pattern that is nearest to the query",
    kind="memory",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Cover & Hart 1967",
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("pattern", "bit-pattern"),
    preset="quick",
)
