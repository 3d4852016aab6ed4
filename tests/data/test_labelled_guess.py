"""What kind of answers a source shows at its beginning."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unrolled.data.look import look
from unrolled.data.reading import Reading
from unrolled.data.sources.labelled_guess import guess_answers

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
