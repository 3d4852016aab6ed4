"""From grey images to examples: levels of pixels in raster order, row by row from the top left.

c = round(v (L - 1)),    v = c / (L - 1)           v between 0 (black) and 1 (white), L levels
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError, listed
from unrolled.core.tokens import SPECIALS
from unrolled.data.config import DataConfig
from unrolled.data.examples import ENDS, Examples, ragged
from unrolled.data.given_splits import ALL, PARTS, given_among, how_split, notes_on, own_shares
from unrolled.data.prepared import Prepared
from unrolled.data.reading import ImageReading, Reading
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.split import row_key, split_rows

SMALLEST = 2  # pixels a side

Grid = NDArray[Any]


class Encoded(NamedTuple):
    """An image as ids [H W]."""

    ids: Grid
    part: str


def encode(image: Grid, levels: int) -> Grid:
    """Ids [H W] of brightness [H, W]."""
    return (np.rint(np.asarray(image, np.float64) * (levels - 1)) + len(SPECIALS)).astype(np.uint16).ravel()


def decode(ids: Grid, levels: int, width: int) -> NDArray[np.uint8]:
    """Bytes [H, W] of ids [H W]."""
    values = np.clip(np.asarray(ids, np.int64) - len(SPECIALS), 0, levels - 1)
    return np.rint(values * (255 / (levels - 1))).astype(np.uint8).reshape(-1, width)


def as_read(source: Any) -> Any:
    """Images in memory, bare or in a list, as the only array of some arrays; by split too."""
    if isinstance(source, Mapping):
        return {name: as_read(each) for name, each in source.items()}
    if isinstance(source, list) and source and all(isinstance(each, np.ndarray) for each in source):
        sizes = sorted({each.shape for each in source})
        if len(sizes) > 1:
            raise DataError(f"the images have sizes {listed(sizes[:3])}; resize all to the same size")
        source = np.stack(source)
    return (source,) if isinstance(source, np.ndarray) else source


def images_of(source: Any, levels: int, size: tuple[int, int] | None = None) -> tuple[list[Encoded], int, int, str]:
    """All images with their height and width, which must be those of a run if that says some, and a name."""
    reading = Reading(images=ImageReading(grey=True))
    opened, found = open_labelled(as_read(source), reading, "none"), []
    for each in opened:
        image = np.asarray(each.input)
        size = image.shape[:2] if size is None else size
        if image.ndim != 2 or image.shape != size or min(image.shape) < SMALLEST:
            raise DataError(
                f"{each.place}: found an image of {' x '.join(map(str, image.shape[::-1]))} pixels, expected "
                f"{size[1]} x {size[0]} grey ones of at least {SMALLEST} a side; resize it"
            )
        if not (np.isfinite(image).all() and image.min() >= 0 and image.max() <= 1):
            raise DataError(f"{each.place}: found values outside of 0 to 1, expected brightness; scale the image")
        found.append(Encoded(encode(image, levels), each.part))
    if size is None:
        raise DataError(f"{opened.name}: there are no images in it")
    return found, size[0], size[1], opened.name


def prepare_pixels(source: Any, config: DataConfig, levels: int) -> Prepared:
    """All images by split, equal ones in the same."""
    images, height, width, name = images_of(source, levels)
    sections, given = _split(images, config, name)
    shares = config.shares()
    examples = {part: examples_of([each.ids for each in some]) for part, some in sections.items()}
    facts = {
        "source": name, "images": len(images), "height": height, "width": width, "levels": levels,
        "split_is": how_split(shares, given, config.split), "notes": list(notes_on(shares, given)),
        "split": {part: {"examples": each.n_examples} for part, each in examples.items()},
    }  # fmt: skip
    digest = hashlib.sha256()
    for part, each in examples.items():
        digest.update(f"{part} {each.values(TARGET).shape}".encode())
        digest.update(np.ascontiguousarray(each.values(TARGET)).data)
    return Prepared(examples, {}, facts, digest.hexdigest()[:32], {"height": height, "width": width})


def examples_of(ids: Sequence[Grid]) -> Examples:
    return Examples({TARGET: ragged(list(ids))}, {ENDS: np.zeros(len(ids), bool)})


def _split(images: list[Encoded], config: DataConfig, name: str) -> tuple[dict[str, list[Encoded]], list[str]]:
    parts = [part for part in (*PARTS, ALL) if any(each.part == part for each in images)]
    given = list(given_among({part: sum(each.part == part for each in images) for part in parts}, name))
    sections = {part: [each for each in images if each.part == part] for part in PARTS}
    if not given:
        sections["train"] = images
    shares, pool = own_shares(config.shares(), given), sections["train"]
    if len(shares) > 1:
        keys = np.array([row_key(each.ids, None, config.seed) for each in pool], np.uint64)
        side = split_rows(keys, shares, name)
        sections |= {part: [e for e, s in zip(pool, side) if s == i] for i, part in enumerate(shares)}
    return {part: sections[part] for part in PARTS if sections.get(part)}, given
