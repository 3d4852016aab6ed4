"""What kind of answers a source shows at its beginning."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unrolled.data.look import look
from unrolled.data.reading import Reading
from unrolled.data.sources.labelled_guess import guess_answers
from unrolled.data.sources.labelled_table import open_columns

FILES = {
    "a.csv": ("text,label\nx,a\ny,b\n", "class"),
    "b.csv": ("text,label\nx,0\ny,1\n", "class"),
    "c.csv": ("text,y\nx,0.5\ny,1\n", "numbers"),
    "d.csv": ("text,y\n" + "".join(f"t{i},{i}\n" for i in range(60)), "numbers"),
    "e.csv": ("text,other,third\nx,a,b\n", None),
    "f.jsonl": ('{"tokens": ["a"], "tags": ["X"]}\n', "tags"),
    "g.conll": ("a X\n", "tags"),
    "h.txt": ("__label__a some text\n__label__b more\n", "class"),
    "i.txt": ("__label__a __label__b some text\n", "classes"),
    "j.txt": ("just a text\nin lines\n", None),
    "k.ts": ("@targetLabel true\n@data\n1,2:0.5\n", "numbers"),
    "l.ts": ("@classLabel true 1 2\n@data\n1,2:1\n", "class"),
    "m.csv": ("", None),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path):
    text, expected = FILES[name]
    (tmp_path / name).write_text(text)
    assert guess_answers(look(tmp_path / name), Reading()) == expected


def test_other_sources(tmp_path):
    assert guess_answers(look("builtin:digits"), Reading()) == "class"
    assert guess_answers(look("builtin:adding,length=10"), Reading()) == "numbers"
    assert guess_answers(look("builtin:sinusoids"), Reading()) == "series"
    assert guess_answers(look("builtin:python-docs"), Reading()) is None
    assert guess_answers(look((np.ones((3, 4)), [0.5, 1.5, 2])), Reading()) == "numbers"
    assert guess_answers(look((np.ones((3, 4)), ["a", "b", "c"])), Reading()) == "class"
    assert guess_answers(look((np.ones((3, 4)), np.zeros((3, 4, 1)))), Reading()) == "series"
    assert guess_answers(look([{"text": "x", "labels": "a|b"}]), Reading(class_separator="|")) == "classes"
    assert guess_answers(look(tmp_path), Reading()) is None
    assert guess_answers(look(["just", "texts"]), Reading()) is None


def test_a_column_that_is_left_over_is_no_answer(tmp_path):
    rows = [{"text": f"line {i}", "n": i} for i in range(30)]
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert guess_answers(look(path), Reading()) is None
    assert guess_answers(look(path), Reading(target="n")) == "numbers"
    (tmp_path / "page.xml").write_text("<page>some text</page>\n" * 9, encoding="utf-8")
    assert guess_answers(look(tmp_path / "page.xml"), Reading()) is None


def table(*columns: str, n: int = 60) -> str:
    """Rows of these columns: `text`, words that come again (`word`), a 0 or 1 (`flag`)."""
    cells = {"text": lambda i: f"some words of line {i}", "word": lambda i: "abc"[i % 3], "flag": lambda i: str(i % 2)}
    rows = [",".join(f"column {k} {name}" for k, name in enumerate(columns))]
    rows += [",".join(cells[name](i // (k + 1)) for k, name in enumerate(columns)) for i in range(n)]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        (("text", "word"), 1),
        (("word", "text", "word"), 2),  # the last of two
        (("word", "text", "flag"), 2),
        (("word", "word", "text"), None),
        (("text", "flag", "flag"), None),  # which may be a class each
    ],
)
def test_of_several_columns_of_classes_the_last_of_the_table_is_taken(columns, target, tmp_path):
    (tmp_path / "a.csv").write_text(table(*columns))
    seen = look(tmp_path / "a.csv")
    assert guess_answers(seen, Reading()) == (None if target is None else "class")
    if target is not None:
        source = open_columns(look(tmp_path / "a.csv").table, Reading(), "class")
        assert source.reading.target == f"column {target} {columns[target]}"
        told = [note for note in source.notes if "chosen by its content" in note]
        assert len(told) == 1 and ("could be it too" in told[0]) == (len(columns) > 2)


def test_numbers_to_call_are_no_quantities(tmp_path):
    (tmp_path / "calls.csv").write_text("raw,clean\n" + "".join(f"(030) 1234-{i},+4930123{i:04}\n" for i in range(40)))
    assert guess_answers(look(tmp_path / "calls.csv"), Reading()) is None
    (tmp_path / "sums.csv").write_text("raw,clean\n" + "".join(f"a{i} b,+{i}.5\n" for i in range(40)))
    assert guess_answers(look(tmp_path / "sums.csv"), Reading()) == "numbers"


@pytest.mark.parametrize(("other", "expected"), [("wear", "numbers"), ("s9", None), ("s21", None)])
def test_a_number_beside_numbered_steps_is_the_target(other, expected, tmp_path):
    rows = [",".join([*(f"{(i * k) % 7 / 2}" for k in range(9)), f"{i * 1.5}"]) for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join([",".join([*(f"s{k}" for k in range(9)), other]), *rows]) + "\n")
    seen = look(tmp_path / "a.csv")
    assert guess_answers(seen, Reading()) == expected
    if expected is not None:
        source = open_columns(seen.table, Reading(), "numbers")
        assert (source.reading.target, source.reading.layout) == (other, "wide")
        assert len(next(iter(source)).input) == 9
