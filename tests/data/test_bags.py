"""Bags: found in tables, lists and arrays, split whole, drawn from, padded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled.core.errors import DataError, MissingColumn, UsageError
from unrolled.data.codecs.text import CharCodec
from unrolled.data.collate import BESIDE, collate
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT, Examples, Ragged, ragged
from unrolled.data.labelled import Labelled
from unrolled.data.labelled_prepare import prepare_labelled
from unrolled.data.reading import Reading
from unrolled.data.sampler import INSTANCES, PooledBags, pooled_batches
from unrolled.data.sources.open_labelled import open_labelled

BAGS = {"a": ("yes", ["kl", "mno"]), "b": ("no", ["pq"]), "c": ("yes", ["r", "st", "uv"])}
ROWS = [{"who": who, "text": text, "label": label} for who, (label, texts) in BAGS.items() for text in texts]
LISTS = [{"who": texts, "label": label} for label, texts in BAGS.values()]


def opened(source: Any, **reading: Any) -> list[Labelled]:
    return list(open_labelled(source, Reading(**{"bag": "who", **reading}), "class"))


def shown(found: list[Labelled]) -> list[tuple[str, list[str]]]:
    return [(each.answer, list(each.input)) for each in found]


def csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return path


def test_rows_of_one_bag_are_one_example_wherever_they_stand(tmp_path: Path) -> None:
    wanted = [(label, texts) for label, texts in BAGS.values()]
    mixed = [ROWS[i] for i in (0, 2, 3, 1, 4, 5)]
    for source in (ROWS, mixed, csv(tmp_path / "in.csv", ROWS), csv(tmp_path / "mixed.csv", mixed), LISTS):
        assert shown(opened(source)) == wanted
    lines = tmp_path / "lists.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in LISTS))
    assert shown(opened(lines)) == wanted
    assert [each.id for each in opened(ROWS)] == ["a", "b", "c"]


def test_columns_of_numbers_are_vectors_and_names_are_left_out(tmp_path: Path) -> None:
    rows = [{"who": f"m{i // 2}", "name": f"n{i}x", "u": i, "v": -i, "class": i // 2 % 2} for i in range(8)]
    source = open_labelled(csv(tmp_path / "v.csv", rows), Reading(bag="who", target="class"), "class")
    found = list(source)
    assert [[x.tolist() for x in each.input] for each in found[:2]] == [[[[0, 0]], [[1, -1]]], [[[2, -2]], [[3, -3]]]]
    assert any("name" in note and "no numbers" in note for note in source.notes)
    wide = list(
        open_labelled(tmp_path / "v.csv", Reading(bag="who", target="class", column="u,v", layout="wide"), "class")
    )
    assert wide[0].input[1].tolist() == [[1], [-1]]


def test_arrays_hold_bags_by_names_by_offsets_or_as_lists() -> None:
    x, y = np.arange(12.0).reshape(6, 2), ["yes", "yes", "no", "yes", "yes", "yes"]
    of, by = np.array(["a", "a", "b", "c", "c", "c"]), ["yes", "no", "yes"]
    wanted = [[[0, 1], [2, 3]], [[4, 5]], [[6, 7], [8, 9], [10, 11]]]
    for source, bag in (
        ({"x": x, "y": y, "of": of}, "of"),
        ({"x": x, "y": by, "ends": np.array([0, 2, 3, 6])}, "ends"),
        (([x[:2], x[2:3], x[3:]], by), "x"),
    ):
        found = opened(source, bag=bag)
        assert [[row.tolist()[0] for row in each.input] for each in found] == wanted
        assert [each.answer for each in found] == by
    with pytest.raises(DataError, match="offsets from 0 to 6"):
        opened({"x": x, "y": by, "ends": np.array([0, 2, 7])}, bag="ends")


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([*ROWS, {"who": "a", "text": "x", "label": "no"}], DataError, "the target .no. here, but .yes. before"),
        (ROWS[:2], DataError, "all instances are in one bag, 'a'"),
        ([{"text": "x", "label": "no"}], MissingColumn, "who"),
        ([*LISTS, {"who": [], "label": "no"}], DataError, "the bag is empty"),
        ([*LISTS, {"who": "a text", "label": "no"}], DataError, "expected a list of instances"),
        ([*LISTS, {"who": ["x", " "], "label": "no"}], DataError, "instance 2.*expected text"),
    ],
)  # fmt: skip
def test_bad_bags_are_told(rows: list[dict[str, Any]], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        opened(rows)


def test_a_bag_is_in_one_split() -> None:
    rows = [{**row, "split": "train" if i else "test"} for i, row in enumerate(ROWS)]
    with pytest.raises(DataError, match="split 'train' here, but in 'test' before"):
        opened(rows, part="split")
    rows = [{"who": i // 5, "text": f"t{i:02}", "label": i // 5 % 2} for i in range(100)]
    made = prepare_labelled(open_labelled(rows, Reading(bag="who"), "class"), DataConfig(split="60/20/20"))
    assert made.facts["split"]["train"] == {"examples": 12, "instances": 60, "steps": 60 * 3}
    assert {len(section.fields[INPUT].lengths) for section in made.sections.values()} == {12, 4}
    assert all((section.fields[INPUT].lengths == 5).all() for section in made.sections.values())


def test_data_without_columns_has_no_bags(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a text\tyes\nanother\tno\n")
    with pytest.raises(UsageError, match="this data has none"):
        opened(tmp_path / "lines.txt")


def test_bags_are_encoded_alike_whatever_their_order() -> None:
    rows = [{"who": [f"{a}{i}", f"{i}b{i}"], "label": i % 2} for i, a in enumerate("abcdefghijkl")]
    made = prepare_labelled(open_labelled(rows, Reading(bag="who"), "class"), DataConfig(split="80/20"))
    codec, section = made.codecs["inputs"], made.sections["train"]
    assert isinstance(codec, CharCodec)
    texts = {tuple(codec.decode(x) for x in section.fields[INPUT].instances(i)) for i in range(section.n_examples)}
    assert texts <= {tuple(row["who"]) for row in rows}
    again = [*rows, {"who": rows[0]["who"][::-1], "label": 0}]
    made = prepare_labelled(open_labelled(again, Reading(bag="who"), "class"), DataConfig(split="80/20"))
    assert made.facts["duplicates"] == 1


def bags(sizes: list[int]) -> Ragged:
    inside = ragged([np.arange(1 + i % 4, dtype=np.int32) + 10 * i for i in range(sum(sizes))])
    return Ragged(inside.values, (np.cumsum([0, *sizes]), *inside.offsets))


def test_a_draw_is_a_function_of_seed_epoch_and_bag() -> None:
    examples = Examples({INPUT: bags([9, 2, 7, 9, 30, 3])}, {"target": np.arange(6), "rows": np.arange(6)})
    first, again = (PooledBags(examples, 2, BESIDE, 4, seed=1) for _ in range(2))
    read: dict[tuple[int, int], list[int]] = {}
    for step in range(2 * first.steps_per_epoch):
        batch, same = first.batch(step), again.batch(step)
        assert np.array_equal(batch.x, same.x)
        assert batch.rows is not None and batch.y.tolist() == batch.rows.tolist()
        for x, mask, row in zip(batch.x, batch.instances, batch.rows.tolist()):
            own = sorted((x[mask][:, 0] // 10).tolist())
            begin, end = examples.fields[INPUT].offsets[0][row : row + 2]
            assert len(own) == len(set(own)) == min(4, end - begin)
            assert all(begin <= i < end for i in own)
            read[first.epoch(step), row] = own
    assert len(read) == 12
    assert read[0, 4] != read[1, 4]
    assert read[0, 1] == read[1, 1] == [9, 10]


def test_padding_and_evaluation_read_every_instance() -> None:
    field = bags([3, 1, 4])
    batch = collate(Examples({INPUT: field}), np.array([2, 1]), BESIDE)
    assert batch.mask is not None
    assert [x[m].tolist() for x, m in zip(batch.x[0], batch.mask[0])] == [x.tolist() for x in field.instances(2)]
    assert batch.instances.tolist() == [[True] * 4, [True, False, False, False]]
    large = Examples({INPUT: bags([INSTANCES, 5, 6, INSTANCES - 1])})
    found = [batch.rows.tolist() for batch in pooled_batches(large, 64, BESIDE) if batch.rows is not None]
    assert found == [[1, 2], [3], [0]]
