"""Labelled tables: cells, wide and long; what is chosen is said, what is wrong is one sentence with its place."""

from __future__ import annotations

import gzip
import json

import numpy as np
import polars
import pytest

from unrolled.core.errors import DataError, UsageError
from unrolled.data.reading import Reading
from unrolled.data.sources.open_labelled import open_labelled


def read(source, answers="class", **settings):
    return list(open_labelled(source, Reading(**settings), answers))


def complaint(source, answers="class", kind=DataError, **settings) -> str:
    with pytest.raises(kind) as caught:
        read(source, answers, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def made(tmp_path, name: str, text: str | bytes):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


REVIEWS = "text,label\ngood film,pos\nbad film,neg\n"


def test_text_and_class_in_every_form(tmp_path):
    rows = [{"text": "good film", "label": "pos"}, {"text": "bad film", "label": "neg"}]
    frame = polars.DataFrame(rows)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ndjson(tmp_path / "a.jsonl")
    sources = [
        made(tmp_path, "a.csv", REVIEWS), made(tmp_path, "a.tsv", REVIEWS.replace(",", "\t")), rows, frame,
        made(tmp_path, "b.csv.gz", gzip.compress(REVIEWS.encode())), tmp_path / "a.parquet", tmp_path / "a.jsonl",
    ]  # fmt: skip
    for source in sources:
        found = read(source)
        assert [(e.input, e.answer, e.group, e.part) for e in found] == [
            ("good film", "pos", None, "all"), ("bad film", "neg", None, "all"),
        ]  # fmt: skip
    assert read(sources[0])[1].place == f"{sources[0]}, line 3"


def test_what_was_chosen_is_said_and_kept(tmp_path):
    source = open_labelled(
        made(tmp_path, "a.csv", "Language,name\nfr,Anne\nde,Anna\n"), Reading(column="name"), "class"
    )
    assert [e.answer for e in source] == ["fr", "de"]
    assert any("the target is column Language, chosen by name" in note for note in source.notes)
    assert (source.reading.column, source.reading.target, source.reading.layout) == ("name", "Language", "cells")
    other = made(tmp_path, "b.csv", "name\nJean\n")
    assert [(e.input, e.answer) for e in open_labelled(other, source.reading, "none")] == [("Jean", None)]


def test_numbers_sets_words_and_series_in_cells(tmp_path):
    one = made(tmp_path, "n.csv", "text,a,b\nx y,1.5,2\nz,-3,4e2\n")
    assert [e.answer.tolist() for e in read(one, "numbers", target="a,b")] == [[1.5, 2], [-3, 400]]
    sets = made(tmp_path, "s.csv", 'text,labels\nx,"b|a"\ny,\nz,"[""c"", ""a""]"\n')
    assert [e.answer for e in read(sets, "classes", class_separator="|")] == [("a", "b"), (), ("a", "c")]
    tagged = made(tmp_path, "t.jsonl", '{"tokens": ["The", "dog"], "tags": ["D", "N"]}\n')
    assert read(tagged, "tags")[0][:2] == (["The", "dog"], ["D", "N"])
    listed = made(tmp_path, "x.jsonl", '{"x": [1, 2, 3], "y": 0}\n{"x": [[4], [5]], "y": 1}\n')
    found = read(listed)
    assert [e.input.shape for e in found] == [(3, 1), (2, 1)]
    assert [e.answer for e in found] == ["0", "1"]
    pair = made(tmp_path, "p.jsonl", '{"x": [1, 2], "y": [1.5, 2.5]}\n')
    assert read(pair, "series")[0].answer.tolist() == [[1.5], [2.5]]


def test_wide_series_with_and_without_a_header(tmp_path):
    text = "t1,t2,t3,label\n1,2,3,a\n4,5,6,b\n"
    found = read(made(tmp_path, "w.csv", text))
    assert [e.input.ravel().tolist() for e in found] == [[1, 2, 3], [4, 5, 6]]
    bare = made(tmp_path, "bare.tsv", "1\t0.5\t0.25\n2\t1.5\t1.25\n")
    source = open_labelled(bare, Reading(target="1"), "class")
    assert [(e.answer, e.input.ravel().tolist()) for e in source] == [("1", [0.5, 0.25]), ("2", [1.5, 1.25])]
    assert any("no header line" in note for note in source.notes)
    gap = made(tmp_path, "gap.csv", "t1,t2,t3,label\n1,,3,a\n4,5,6,b\n")
    assert read(gap, missing="line")[0].input.ravel().tolist() == [1, 2, 3]
    assert "line 2, column 't2': found an empty cell, expected a number" in complaint(gap)


LONG = "id,time,v,w,label\na,2,20,1,p\nb,1,5,1,q\na,1,10,0,p\nb,2,6,1,q\n"


def test_long_series_are_put_in_order(tmp_path):
    found = read(made(tmp_path, "l.csv", LONG), id="id", time="time")
    assert [(e.answer, e.input.tolist()) for e in found] == [("p", [[10, 0], [20, 1]]), ("q", [[5, 1], [6, 1]])]
    assert found[1].place.endswith("line 3, id 'b'")
    dated = made(tmp_path, "d.csv", "id,time,v,label\na,2024-02-01,2,p\na,2024-01-15 10:00,1,p\nb,2024-01-01,0,q\n")
    assert read(dated, id="id", time="time")[0].input.ravel().tolist() == [1, 2]
    noisy = made(tmp_path, "n.csv", "time,noisy,clean\n1,1,0\n2,2,1\n3,3,2\n")
    pieces = read(noisy, "series", time="time", window=2)
    assert [(e.input.ravel().tolist(), e.answer.ravel().tolist()) for e in pieces] == [([1, 2], [0, 1]), ([3], [2])]


def test_long_tables_are_known_by_their_columns(tmp_path):
    place = made(tmp_path, "l.csv", LONG)
    assert [e.input.tolist() for e in read(place)] == [e.input.tolist() for e in read(place, id="id", time="time")]
    notes = open_labelled(place, Reading(), "class").notes
    assert any("column id identifies the series" in note for note in notes)
    assert any("column time orders their steps" in note for note in notes)
    noisy = made(tmp_path, "n.csv", "id,t,noisy,clean\n1,2,2,1\n1,1,1,0\n2,3,3,2\n")
    found = [(e.input.ravel().tolist(), e.answer.ravel().tolist()) for e in read(noisy, "series")]
    assert found == [([1, 2], [0, 1]), ([3], [2])]
    told = read(noisy, "series", time="t")  # who names one column has looked at the others
    assert len(told) == 1 and told[0].input.shape == (3, 2)


def test_whole_series_in_cells_may_have_ids(tmp_path):
    lines = [{"id": 1, "t": 0, "x": [1, 2], "clean": [0, 1]}, {"id": 2, "t": 0, "x": [3], "clean": [2]}]
    cells = made(tmp_path, "c.jsonl", "\n".join(map(json.dumps, lines)))
    assert [e.input.ravel().tolist() for e in read(cells, "series")] == [[1, 2], [3]]
    assert [e.input.ravel().tolist() for e in read(cells, "series", column="x")] == [[1, 2], [3]]


def test_a_number_of_the_row_is_no_step_of_a_series(tmp_path):
    wide = made(tmp_path, "w.csv", "id,t,v,label\n7,1,2,a\n8,3,4,b\n")
    assert [e.input.ravel().tolist() for e in read(wide)] == [[1, 2], [3, 4]]
    texts = made(tmp_path, "t.csv", "id,time,text,label\n1,1,one,a\n1,2,two,b\n")
    assert [e.input for e in read(texts)] == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        (LONG.replace("a,1,10,0,p", "a,1,10,0,q"), {}, "line 4, column 'label': found 'q', but 'a' had another target"),
        (LONG.replace("a,1,10", "a,2,10"), {}, "line 4, column 'time': this time occurs twice in one series"),
        (LONG.replace("a,1,10", "a,soon,10"), {}, "line 4, column 'time': found 'soon', expected a number or a time"),
        (LONG.replace("b,1,5", "b,1,inf"), {}, "line 3, column 'v': found 'inf', expected a finite number"),
        (LONG.replace("b,1,5", "b,1,five"), {}, "line 3, column 'v': found 'five', expected a number"),
    ],
)
def test_bad_long_tables(tmp_path, text, settings, expected):
    assert expected in complaint(made(tmp_path, "l.csv", text), id="id", time="time", **settings)


@pytest.mark.parametrize(
    ("text", "answers", "settings", "expected"),
    [
        ("", "class", {}, "the file is empty"),
        ("text,label\n", "class", {}, "there is a header (text, label) but there are no rows below it"),
        ("text,label\n ,pos\n", "class", {}, "line 2, column 'text': found an empty cell, expected text"),
        ("text,label\nx,\n", "class", {}, "line 2, column 'label': found an empty cell, expected a class"),
        ("text,y\nx,1\ny,two\n", "numbers", {}, "line 3, column 'y': found 'two', expected a number"),
        ("text,y\nx,1\ny,nan\n", "numbers", {}, "line 3, column 'y': found 'nan', expected a number"),
        ("text,y\nx,1\ny,-inf\n", "numbers", {}, "line 3, column 'y': found '-inf', expected a finite number"),
        ('text,y\nx,1\ny,"1,234"\n', "numbers", {}, "',' may be the decimal sign or separate thousands"),
        ("text,label,set\nx,a,middle\n", "class", {"part": "set"}, "column 'set': found 'middle', expected a split"),
        ("text,tags\na b,N\n", "tags", {}, "line 2: found 1 tags for 2 words"),
    ],
)
def test_bad_rows(tmp_path, text, answers, settings, expected):
    assert expected in complaint(made(tmp_path, "bad.csv", text), answers, **settings)


def test_a_wrong_encoding_has_its_place(tmp_path):
    path = made(tmp_path, "l.csv", "text,label\nпривет,ru\n".encode("cp1251"))
    assert "line 2, column 1: the byte 0xEF is not UTF-8" in complaint(path)


@pytest.mark.parametrize(
    ("answers", "settings", "expected"),
    [
        (
            "class",
            {"target": "lable"},
            "there is no column 'lable' for target=...; did you mean 'label'?",
        ),
        ("class", {"column": "txt"}, "there is no column 'txt' for column=...; did you mean 'text'?"),
        ("class", {"group": "speaker"}, "there is no column 'speaker' for group=..."),
        (
            "class",
            {"column": "label", "target": "label"},
            "column 'label' cannot be the input and have another use too",
        ),
        ("class", {"target": "label,text"}, "class must be in one column"),
    ],
)
def test_columns_that_are_not_there(tmp_path, answers, settings, expected):
    assert expected in complaint(made(tmp_path, "a.csv", REVIEWS), answers, UsageError, **settings)


def test_a_choice_that_is_not_plain_is_asked_for(tmp_path):
    path = made(tmp_path, "a.csv", "one,two,three\na,b,c\n")
    assert "name the column of the target with target=...; it has one, two, three" in complaint(path, kind=UsageError)
    assert "name the column of the input with column=..." in complaint(path, kind=UsageError, target="two")
    assert "give a path, a list of dicts" in complaint(3, kind=UsageError)


def test_groups_and_parts_of_rows(tmp_path):
    path = made(tmp_path, "a.csv", "text,label,who,set\nx,a,ann,Training\ny,b,bob,dev\nz,b,bob,TEST\n")
    found = read(path, group="who", part="set")
    assert [(e.group, e.part) for e in found] == [("ann", "train"), ("bob", "valid"), ("bob", "test")]
    assert np.array_equal([e.input for e in found], ["x", "y", "z"])
