"""Pictures of shapes: what a caption says is what is drawn, and held-out pairs are never seen."""

from __future__ import annotations

import re

import numpy as np
import pytest

from unrolled.data.builtin.shapes import (
    COLOURS,
    SHAPES,
    SIDE,
    SIZES,
    Thing,
    draw,
    pairs_of,
    part_of,
    picture,
    pictures,
    shape_pictures,
    together_in,
)

FORM = re.compile(r"a (small|large) (\w+) (\w+) (left of|above) a (small|large) (\w+) (\w+)")
SOME = list(pictures(400, seed=3))


def test_a_picture_is_a_function_of_seed_and_number() -> None:
    again = picture(7, seed=3)
    assert np.array_equal(again.image, SOME[7].image)
    assert again.caption == SOME[7].caption
    assert not np.array_equal(picture(7, seed=4).image, SOME[7].image)
    found = shape_pictures(9, seed=3)
    assert found.images.dtype == np.uint8
    assert found.images.shape == (9, SIDE, SIDE, 3)
    assert [*zip(found.captions, found.parts)] == [(each.caption, each.part) for each in SOME[:9]]


def test_captions_have_one_form_and_say_what_was_drawn() -> None:
    for each in SOME:
        found = FORM.fullmatch(each.caption)
        assert found is not None, each.caption
        first, second = each.things
        assert found.groups() == (*first[:3], found[4], *second[:3])
        below, right = second.row - first.row, second.column - first.column
        along, across = (below, right) if found[4] == "above" else (right, below)
        assert along > 20
        assert abs(across) <= 6
        for thing in each.things:
            low, high = SIZES[thing.size]
            assert low <= thing.radius <= high


def test_every_word_is_used() -> None:
    said = {word for each in SOME for word in each.caption.split()}
    assert said == {"a", "left", "of", "above", *SIZES, *COLOURS, *SHAPES}


def test_training_never_shows_a_held_out_pair() -> None:
    owned = {part: set(pairs_of(part)) for part in ("train", "valid", "test")}
    assert [len(owned[part]) for part in owned] == [48, 8, 8]
    assert len(set.union(*owned.values())) == 64
    for part in ("valid", "test"):
        assert [len({pair[i] for pair in owned[part]}) for i in (0, 1)] == [8, 8]  # each colour and shape once
    shown: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    for each in pictures(600, seed=1, held_out="bound"):
        kinds = [(thing.colour, thing.shape) for thing in each.things]
        n_own = sum(kind in owned[each.part] for kind in kinds)
        assert all(kind in owned[each.part] | owned["train"] for kind in kinds)
        shown[each.part].append(n_own if n_own == 2 else 1 + [kind in owned[each.part] for kind in kinds].index(True))
    assert len(shown["test"]) == len(shown["valid"]) == 30
    assert set(shown["train"]) == {2}
    assert set(shown["test"]) == set(shown["valid"]) == {1, 2}  # in either place, or in both


def test_held_out_pictures_show_shapes_that_never_stand_together_in_training() -> None:
    owned = {part: {frozenset(pair) for pair in together_in(part)} for part in ("train", "valid", "test")}
    assert [len(owned[part]) for part in owned] == [24, 4, 8]
    assert len(set.union(*owned.values())) == 36
    for part in ("valid", "test"):
        assert set.union(*map(set, owned[part])) == set(SHAPES)
    for each in pictures(400, seed=1):
        assert frozenset(thing.shape for thing in each.things) in owned[each.part]
    seen = {(thing.colour, thing.shape) for each in pictures(2000) if each.part == "train" for thing in each.things}
    assert len(seen) == 64  # each alone is seen in every colour


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_covers_its_own_area_with_smooth_edges(shape: str) -> None:
    areas = {"circle": np.pi, "square": 1.76**2, "triangle": 1.8**2 / 2, "diamond": 2.0, "cross": 4 * 0.6 - 0.36,
             "ring": np.pi * (1 - 0.56**2)}  # fmt: skip
    canvas = np.zeros((40, 40, 3), np.float32)
    draw(canvas, Thing("large", "white", shape, 20.3, 19.6, 10.0), np.ones(3, np.float32))
    rows, columns = np.nonzero(canvas[:, :, 0])
    assert rows.min() >= 10 and rows.max() <= 30 and columns.min() >= 9 and columns.max() <= 29
    assert canvas.max() == 1
    assert ((canvas > 0.1) & (canvas < 0.9)).any()
    if shape in areas:
        assert canvas[:, :, 0].sum() / 100 == pytest.approx(areas[shape], rel=0.03)


def test_no_two_shapes_look_alike() -> None:
    drawn = []
    for shape in SHAPES:
        canvas = np.zeros((16, 16, 3), np.float32)
        draw(canvas, Thing("small", "white", shape, 8.0, 8.0, 4.5), np.ones(3, np.float32))
        drawn.append(canvas[:, :, 0])
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert np.abs(one - other).sum() > 8  # pixels of about 64


def test_the_colour_is_where_the_shape_is() -> None:
    for each in SOME[:60]:
        for thing in each.things:
            if thing.shape in ("circle", "square", "diamond", "cross", "star"):
                there = each.image[int(thing.row), int(thing.column)].astype(float)
                nearest = min(COLOURS, key=lambda name: float(np.abs(there - COLOURS[name]).sum()))
                assert nearest == thing.colour


def test_parts_come_round() -> None:
    assert [part_of(i) for i in range(38, 41)] == ["valid", "test", "train"]
