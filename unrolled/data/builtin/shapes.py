"""Pictures of two coloured shapes with the caption that says what is in them, drawn from a seed.

    a small red circle left of a large blue square
    a large white star above a large green ring

The first of the two is the left or the upper one, so that every picture has one right caption. There are 8 colours,
8 shapes, 2 sizes and 2 relations: 32,768 captions. A right caption of a held-out picture was never seen; what is held
out is one of two things:

- `together`: which two shapes stand in a picture. Of the 36 pairs of shapes, 4 are kept for validation and 8 for test;
- `bound`: which colour a shape has. Of the 64 pairs of a colour and a shape, 8 are kept for validation and 8 for test,
  one of each colour and each shape: no training picture shows one of them, in either place, and every validation or
  test picture shows one or two of its own. This is much harder: nothing in training speaks against "red is no circle".

Picture i is a function of (seed, i) alone. Of every 20, 18 are for training, one for validation and one for test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made

Grid = NDArray[np.float32]

SIDE = 48  # pixels
FINE = 3  # samples along each side of a pixel, whose mean smooths the edges
COLOURS = {
    "red": (214, 40, 40), "green": (44, 160, 60), "blue": (40, 80, 220), "yellow": (240, 215, 40),
    "orange": (245, 135, 25), "purple": (140, 50, 170), "black": (18, 18, 18), "white": (246, 246, 246),
}  # fmt: skip
SIZES = {"small": (4.5, 6.0), "large": (8.5, 10.5)}  # radius in pixels, from and to
RELATIONS = ("left of", "above")


def _star(x: Grid, y: Grid) -> NDArray[np.bool_]:
    """Five points: the angle is folded into a tenth of the circle, where one straight edge bounds it."""
    outer, inner, tenth = 1.0, 0.42, np.pi / 5
    r, angle = np.hypot(x, y), np.arctan2(x, -y)
    folded = np.abs((angle + tenth) % (2 * tenth) - tenth)  # 0 at a point, pi / 5 between two
    u, v = r * np.cos(folded), r * np.sin(folded)
    a, b = inner * np.cos(tenth), inner * np.sin(tenth)
    return (outer - a) * v <= (outer - u) * b


SHAPES: dict[str, Callable[[Grid, Grid], NDArray[np.bool_]]] = {  # x to the right, y down, within -1 .. 1
    "circle": lambda x, y: np.hypot(x, y) <= 1,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) <= 0.88,
    "triangle": lambda x, y: (y <= 0.8) & (2 * np.abs(x) <= y + 1),
    "diamond": lambda x, y: np.abs(x) + np.abs(y) <= 1,
    "cross": lambda x, y: (np.minimum(np.abs(x), np.abs(y)) <= 0.3) & (np.maximum(np.abs(x), np.abs(y)) <= 1),
    "ring": lambda x, y: np.abs(np.hypot(x, y) - 0.78) <= 0.22,
    "star": _star,
    "moon": lambda x, y: (np.hypot(x, y) <= 1) & (np.hypot(x - 0.5, y) >= 0.8),
}


class Thing(NamedTuple):
    """One shape of a picture; places and radius in pixels."""

    size: str
    colour: str
    shape: str
    row: float
    column: float
    radius: float

    def __str__(self) -> str:
        return f"{self.size} {self.colour} {self.shape}"


class Picture(NamedTuple):
    image: NDArray[np.uint8]  # [H, W, 3]
    caption: str
    part: str
    things: tuple[Thing, Thing]


class ShapePictures(NamedTuple):
    images: NDArray[np.uint8]  # [n, H, W, 3]
    captions: list[str]
    parts: list[str]


def part_of(index: int) -> str:
    """
    >>> [part_of(i) for i in (0, 17, 18, 19, 20)]
    ['train', 'train', 'valid', 'test', 'train']
    """
    return {18: "valid", 19: "test"}.get(index % 20, "train")


@cache
def together_in(part: str) -> list[tuple[str, str]]:
    """The pairs of shapes, in either order, that stand together in pictures of a part: by how far apart they are in the
    circle of all shapes.

    >>> together_in("valid")[:2], [len({frozenset(pair) for pair in together_in(p)}) for p in ("train", "test")]
    ([('circle', 'cross'), ('square', 'ring')], [24, 8])
    """
    owner, shapes = {3: "test", 4: "valid"}, list(SHAPES)
    n = len(shapes)
    return [
        (shapes[i], shapes[j])
        for i in range(n)
        for j in range(n)
        if owner.get(min((j - i) % n, (i - j) % n), "train") == part
    ]


@cache
def pairs_of(part: str) -> list[tuple[str, str]]:
    """The pairs of a colour and a shape that a part owns: on two diagonals of the square of all pairs, or the rest.

    >>> pairs_of("test")[:3], len(pairs_of("train"))
    ([('red', 'circle'), ('green', 'square'), ('blue', 'triangle')], 48)
    """
    owner = {0: "test", 3: "valid"}
    colours, shapes = list(COLOURS), list(SHAPES)
    return [
        (colour, shape)
        for i, colour in enumerate(colours)
        for j, shape in enumerate(shapes)
        if owner.get((j - i) % len(shapes), "train") == part
    ]


def draw(image: Grid, thing: Thing, colour: Grid) -> None:
    """Paint a shape over an image [H, W, 3], its edges mixed with what is behind."""
    top, left = int(thing.row - thing.radius) - 1, int(thing.column - thing.radius) - 1
    n = 2 * int(thing.radius) + 4
    fine = ((np.arange(n * FINE) + 0.5) / FINE).astype(np.float32)  # [n FINE], the centres of the samples
    x = (fine + np.float32(left - thing.column))[None, :] / np.float32(thing.radius)
    y = (fine + np.float32(top - thing.row))[:, None] / np.float32(thing.radius)
    inside = SHAPES[thing.shape](x, y) & (np.abs(x) <= 1) & (np.abs(y) <= 1)  # [n FINE, n FINE]
    cover = inside.reshape(n, FINE, n, FINE).sum(axis=(1, 3), dtype=np.float32) / FINE**2  # [n, n]
    rows = slice(max(top, 0), min(top + n, len(image)))
    columns = slice(max(left, 0), min(left + n, image.shape[1]))
    cover = cover[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left, None]
    image[rows, columns] += cover * (colour - image[rows, columns])


def _bound(part: str, random: np.random.Generator) -> list[tuple[str, str]]:
    """Two pairs of a colour and a shape, one or both of which the part owns."""
    own = pairs_of(part)
    other = own if random.random() < 0.5 else pairs_of("train")
    kinds = [own[random.integers(len(own))], other[random.integers(len(other))]]
    return kinds[::-1] if random.random() < 0.5 else kinds


def _together(part: str, random: np.random.Generator) -> list[tuple[str, str]]:
    """Two pairs of a colour and a shape, whose shapes stand together in this part."""
    pairs, colours = together_in(part), list(COLOURS)
    return [(colours[random.integers(len(colours))], shape) for shape in pairs[random.integers(len(pairs))]]


HELD_OUT = {"together": _together, "bound": _bound}


def picture(index: int, seed: int = 0, held_out: str = "together") -> Picture:
    """Picture `index`: a grey ground with a little noise, and two shapes beside or above each other."""
    random = np.random.Generator(np.random.PCG64([seed, index]))
    part = part_of(index)
    kinds = HELD_OUT[held_out](part, random)
    relation = RELATIONS[random.integers(len(RELATIONS))]
    ahead = SIDE / 4 + random.uniform(-1, 1, 2)  # of the first from the edge, of the second from the opposite one
    beside = SIDE / 2 + random.uniform(-9, 9) + random.uniform(-3, 3, 2)
    things = []
    for i, (colour, shape) in enumerate(kinds):
        size = list(SIZES)[random.integers(len(SIZES))]
        along, across = (ahead[0] if i == 0 else SIDE - ahead[1]), beside[i]
        row, column = (across, along) if relation == "left of" else (along, across)
        things.append(Thing(size, colour, shape, row, column, random.uniform(*SIZES[size])))
    image = np.full((SIDE, SIDE, 3), random.uniform(105, 165), np.float32)  # [H, W, 3]
    for thing in things:
        draw(image, thing, (COLOURS[thing.colour] + random.uniform(-12, 12, 3)).astype(np.float32))
    image += 3 * random.standard_normal(image.shape, np.float32)
    first, second = things
    caption = f"a {first} {relation} a {second}"
    return Picture(image.round().clip(0, 255).astype(np.uint8), caption, part, (first, second))


def pictures(examples: int, seed: int = 0, held_out: str = "together") -> Iterator[Picture]:
    return (picture(index, seed, held_out) for index in range(examples))


def shape_pictures(examples: int = 12_000, seed: int = 0, held_out: str = "together") -> ShapePictures:
    """The first pictures of a seed.

    >>> found = shape_pictures(2)
    >>> found.images.shape, found.captions[0]
    ((2, 48, 48, 3), 'a large purple star left of a large orange moon')
    """
    images, captions, parts = np.zeros((examples, SIDE, SIDE, 3), np.uint8), [], []
    for i, each in enumerate(pictures(examples, seed, held_out)):
        images[i] = each.image
        captions.append(each.caption)
        parts.append(each.part)
    return ShapePictures(images, captions, parts)


class Settings(Config):
    """How much is drawn, and what is held out."""

    examples: int = Field(12_000, ge=20, le=200_000)
    """Number of pictures."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed."""
    held_out: Literal["together", "bound"] = "together"
    """What only the held-out splits contain: new pairs of shapes, or new combinations of colour and shape."""


@lru_cache(maxsize=1)
def _drawn(examples: int, seed: int, held_out: str) -> ShapePictures:
    return shape_pictures(examples, seed, held_out)


def read(settings: Settings) -> Iterator[Made]:
    made = _drawn(settings.examples, settings.seed, settings.held_out)
    for i, image in enumerate(made.images):
        yield Made(image, made.captions[i], f"picture {i}", made.parts[i])


BUILTIN = BuiltinSpec(
    summary="pictures of two coloured shapes with captions, for caption; pairs of shapes held out",
    licence="generated",
    size="12,000 pictures",
    holds="pictures",
    use="caption",
    settings=Settings,
    read=read,
)
