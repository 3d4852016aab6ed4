"""Pairs of texts from every kind of data, and what is said of bad ones."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from unrolled.core.batch import SOURCE
from unrolled.core.errors import DataError, MissingColumn, UsageError
from unrolled.data.collate import n_targets
from unrolled.data.config import DataConfig
from unrolled.data.examples import GIVEN, REFERENCES
from unrolled.data.look import look
from unrolled.data.pairs_prepare import encode_pairs, prepare_pairs
from unrolled.data.prepared import used
from unrolled.data.reading import PairReading
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.data.sources.pairs_files import sources_in
from unrolled.data.sources.pairs_guess import guess_pairs
from unrolled.data.storage import growing

PAIRS = [("un", "one"), ("deux", "two"), ('"trois"', "three")]


def read(source, **settings):
    return [(pair.source, pair.target) for pair in open_pairs(source, PairReading(**settings))]


def lines(path, *rows):
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_tab_separated_lines_with_and_without_a_header(tmp_path):
    rows = [f"{source}\t{target}\tignored" for source, target in PAIRS]
    assert read(lines(tmp_path / "a.tsv", *rows)) == PAIRS
    assert read(lines(tmp_path / "b.txt", "", *rows)) == PAIRS
    assert read(lines(tmp_path / "c.tsv", "French\tEnglish\tnote", *rows)) == PAIRS
    turned = [(target, source) for source, target in PAIRS]
    assert read(tmp_path / "c.tsv", source_column="English", target_column="French") == turned
    assert read(tmp_path / "a.tsv", source_column="2", target_column="1") == turned


def test_tables_by_name_or_the_first_two(tmp_path):
    csv = lines(tmp_path / "a.csv", "id,target,source", "1,one,un", '2,"two, too",deux')
    assert read(csv) == [("un", "one"), ("deux", "two, too")]
    assert read(lines(tmp_path / "b.csv", "un,one", "deux,two")) == [("un", "one"), ("deux", "two")]
    jsonl = lines(tmp_path / "c.jsonl", *(json.dumps({"word": s, "meaning": t}) for s, t in PAIRS))
    opened = open_pairs(jsonl, PairReading())
    assert [tuple(pair[:2]) for pair in opened] == PAIRS
    assert any("'word'" in note and "'meaning'" in note for note in opened.notes)
    import polars

    assert read(polars.DataFrame({"src": ["a"], "tgt": ["b"]})) == [("a", "b")]
    assert read([{"source": "a", "target": "b"}]) == [("a", "b")]


def test_a_first_line_of_letters_above_other_signs_names_the_columns(tmp_path):
    calls = [(f"(030) 12-{i}", f"+493012{i}") for i in range(20)]
    assert read(lines(tmp_path / "a.csv", "raw,clean", *map(",".join, calls))) == calls
    assert read(lines(tmp_path / "b.csv", *map(",".join, calls))) == calls
    words = [("un", "one"), *(("deux", "two"),) * 20]  # nothing tells it from others
    assert read(lines(tmp_path / "c.csv", *map(",".join, words))) == words


def test_two_files_line_by_line(tmp_path):
    source = lines(tmp_path / "train.de", "ein", "", "zwei")
    target = lines(tmp_path / "train.en", "one", "", "two")
    opened = open_pairs(source, PairReading(target_file=str(target)))
    assert [tuple(pair[:2]) for pair in opened] == [("ein", "one"), ("zwei", "two")]
    assert "1 lines that are blank on both sides were skipped" in opened.notes
    lines(tmp_path / "test.de", "drei")
    with gzip.open(tmp_path / "test.en.gz", "wt") as file:
        file.write("three\n")
    assert [tuple(p[:2]) for p in open_pairs(tmp_path / "test.de", opened.reading)] == [("drei", "three")]
    lines(tmp_path / "other.de", "vier")
    with pytest.raises(DataError, match=r"other\.en is missing"):
        open_pairs(tmp_path / "other.de", opened.reading)


def test_a_folder_keeps_its_parts(tmp_path):
    for part, n in (("train", 30), ("val", 3), ("test_2016", 2), ("test_2017", 1)):
        for language in ("de", "en", "fr"):
            lines(tmp_path / f"{part}.{language}", *(f"{part} {language} {i}" for i in range(n)))
    lines(tmp_path / "README.md", "about")
    with pytest.raises(UsageError, match="its files end in de, en, fr"):
        open_pairs(tmp_path, PairReading(test_set="test_2016"))
    with pytest.raises(UsageError, match=r"test_2016, test_2017; choose one with .*test_set"):
        open_pairs(tmp_path, PairReading(source_column="de", target_column="en"))
    reading = PairReading(source_column="fr", target_column="de", test_set="test_2016")
    data = prepare_pairs(open_pairs(tmp_path, reading), DataConfig())
    assert {part: section.n_examples for part, section in data.sections.items()} == {"train": 30, "valid": 3, "test": 2}
    test = data.sections["test"].columns
    assert test[GIVEN] == ["test_2016 fr 0", "test_2016 fr 1"]
    assert test[REFERENCES] == ["test_2016 de 0", "test_2016 de 1"]


def test_sources_alone(tmp_path):
    reading = PairReading(source_column="de", target_column="en")
    assert list(sources_in(lines(tmp_path / "a.txt", "ein\tb", "", "zwei"), reading)) == [
        (1, "ein\tb"),
        (2, ""),
        (3, "zwei"),
    ]
    assert list(sources_in(lines(tmp_path / "a.tsv", "x\tde", "1\tein", "2"), reading)) == [(2, "ein"), (3, "")]
    assert list(sources_in(tmp_path / "a.tsv", PairReading(source_column="1"))) == [(1, "x"), (2, "1"), (3, "2")]
    assert list(sources_in(lines(tmp_path / "a.csv", "x,de", "1,ein"), reading)) == [(2, "ein")]
    assert list(sources_in(lines(tmp_path / "b.csv", "text", "ein"), reading)) == [(2, "ein")]
    assert list(sources_in(lines(tmp_path / "c.csv", "ein,one"), PairReading(source_column="1"))) == [(1, "ein")]
    with pytest.raises(MissingColumn, match="there is no column 'de'"):
        list(sources_in(lines(tmp_path / "d.csv", "x,y", "1,ein"), reading))


def test_parts_of_python_lists():
    found = open_pairs({"train": PAIRS * 5, "dev": [("x", "y")]}, PairReading())
    assert [pair.part for pair in found] == ["train"] * 15 + ["valid"]


BAD = {
    "no target": (("a\tb", "c"), "line 2: the target is missing"),
    "empty source": (("a\tb", " \tc"), "line 2: the source is empty"),
}


@pytest.mark.parametrize(("rows", "sentence"), BAD.values(), ids=BAD)
def test_a_missing_side_is_told_or_skipped(tmp_path, rows, sentence):
    path = lines(tmp_path / "pairs.tsv", *rows)
    with pytest.raises(DataError, match=sentence):
        read(path)
    opened = open_pairs(path, PairReading(skip_bad=True))
    assert [tuple(pair[:2]) for pair in opened] == [("a", "b")]
    assert len(opened.skipped) == 1
    assert sentence in next(iter(opened.skipped))


def test_skipped_pairs_are_counted_and_listed():
    rows = [(f"word {i}", f"wort {i}") for i in range(30)] + [("alone", None), ("long " * 40, "lang")]
    config = DataConfig(max_length=20)
    with pytest.raises(DataError, match="row 32: this pair has 200 and 4 tokens, more than max_length = 20"):
        prepare_pairs(open_pairs([*rows[:30], ("x", "y"), rows[-1]], PairReading()), config)
    data = prepare_pairs(open_pairs(rows, PairReading(skip_bad=True)), config)
    assert data.facts["skipped"]["count"] == 2
    assert "row 31: the target is missing" in data.facts["skipped"]["first"][0]
    assert any(note.startswith("2 pairs were skipped: the list, row 31") for note in data.facts["notes"])


def test_values_that_are_not_text():
    with pytest.raises(DataError, match="row 1: the target is '3', not a text"):
        read([{"source": "three", "target": 3}])
    with pytest.raises(UsageError, match="found single values"):
        read(["three"])
    with pytest.raises(DataError, match="row 2: of the source, character 1 is the lone surrogate"):
        read([("a", "b"), ("\ud800", "c")])


def test_unequal_files_and_wrong_encoding(tmp_path):
    source = lines(tmp_path / "a.de", "eins", "zwei", "drei")
    target = lines(tmp_path / "a.en", "one", "two")
    with pytest.raises(DataError, match=r"a\.de, line 3: .*a\.en ends before this line"):
        read(source, target_file=str(target), skip_bad=True)
    (tmp_path / "latin.tsv").write_bytes("un\tone\nпривет\thello\n".encode("cp1251"))
    with pytest.raises(DataError, match=r"latin\.tsv, line 2, column 1: the byte 0xEF is not UTF-8"):
        read(tmp_path / "latin.tsv")
    with pytest.raises(DataError, match="found no tab"):
        read(lines(tmp_path / "plain.txt", "no tab here"))
    with pytest.raises(UsageError, match=r"there is no column 'sorce' for .*source_column.*; did you mean 'source'"):
        read([{"source": "a", "target": "b"}], source_column="sorce")


def test_the_split_keeps_equal_sources_together_and_fits_on_training_only():
    rows = [(f"w{i % 40}", f"t{i}") for i in range(120)]
    data = prepare_pairs(open_pairs(rows, PairReading()), DataConfig(split="80/10/10", tokens="word", vocabulary=4000))
    texts = {part: {rows[i][0] for i in section.rows} for part, section in data.sections.items()}
    assert not texts["train"] & texts["valid"]
    assert not texts["train"] & texts["test"]
    assert not texts["valid"] & texts["test"]
    assert all(section.n_examples for section in data.sections.values())
    assert sorted(data.codecs["target"].words) == sorted(rows[i][1] for i in data.sections["train"].rows)


def test_vocabularies_and_small_letters():
    rows = [(f"Ab {i}", f"Cd {i}") for i in range(40)]
    separate = prepare_pairs(open_pairs(rows, PairReading(lower=True)), DataConfig())
    assert "A" not in separate.codecs["source"].characters
    assert "c" not in separate.codecs["source"].characters
    joint = prepare_pairs(open_pairs(rows, PairReading(vocabularies="joint")), DataConfig())
    assert joint.told["shared"]
    assert joint.codecs["source"] is joint.codecs["target"]
    assert {"A", "C"} <= set(joint.codecs["source"].characters)
    assert prepare_pairs(open_pairs(rows, PairReading()), DataConfig(tokens="bpe", vocabulary=300)).told["shared"]


def test_other_pairs_in_the_tokens_of_a_run():
    data = prepare_pairs(open_pairs([(f"a{i}", f"b{i}") for i in range(40)], PairReading()), DataConfig())
    opened = open_pairs([("a1", "b22"), ("a1z", "b3")], PairReading())
    section, longest = encode_pairs(opened, (data.codecs["source"], data.codecs["target"]), DataConfig())
    assert section.n_examples == 2
    assert section.at(SOURCE, 1)[-1] == 1  # z was never seen
    assert (longest.source, longest.source_place) == (3, "the list, row 2")
    assert (longest.target, longest.target_place) == (3, "the list, row 1")


def test_held_out_and_fraction_limit_what_is_used():
    rows = [(f"a{i}", f"b{i}") for i in range(200)]
    config = DataConfig(held_out=12, fraction=0.5, split="80/10/10")
    data = prepare_pairs(open_pairs(rows, PairReading()), config)
    sections = used(data.sections, config, n_targets)
    assert sections["train"].n_examples == 80
    assert n_targets(sections["valid"]) <= 16


def test_a_guess_tells_pairs_from_classes(tmp_path):
    pairs = [(f"satz nummer {i}", f"sentence number {i}") for i in range(60)]
    assert guess_pairs(look(pairs), {}) is not None
    assert guess_pairs(look(lines(tmp_path / "p.tsv", *("\t".join(p) for p in pairs))), {}).certainty > 0.8
    csv = lines(tmp_path / "p.csv", "source,target", *(",".join(p) for p in pairs))
    assert guess_pairs(look(csv), {}).certainty > 0.8
    few = lines(tmp_path / "c.csv", "source,target", *(f"text {i},class{i % 3}" for i in range(60)))
    assert guess_pairs(look(few), {}) is None
    assert guess_pairs(look(lines(tmp_path / "c.tsv", *(f"text {i}\tclass{i % 3}" for i in range(60)))), {}) is None
    assert (
        guess_pairs(look(lines(tmp_path / "n.csv", "source,target", *(f"text {i},{i}" for i in range(60)))), {}) is None
    )
    assert guess_pairs(look(lines(tmp_path / "u.csv", "title,body", *(",".join(p) for p in pairs))), {}) is None
    assert guess_pairs(look(csv), {"target": "target"}) is None
    assert guess_pairs(look("builtin:dates"), {}) is not None
    assert guess_pairs(look("builtin:digits"), {}) is None
    assert guess_pairs(look([f"text {i}" for i in range(9)]), {}) is None
    assert guess_pairs(look(np.zeros(3)), {}) is None
    for language in ("de", "en"):
        lines(tmp_path / f"train.{language}", *(p[language == "en"] for p in pairs))
    assert guess_pairs(look(tmp_path), {}).certainty > 0.8


def test_very_many_pairs_lie_on_the_disk(tmp_path, monkeypatch):
    """What is encoded is the same, and none of it is held."""
    rows = [(f"source {i % 30} and more", f"target {i}") for i in range(90)]
    held = prepare_pairs(open_pairs(rows, PairReading()), DataConfig())
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(growing, "SPILL", 16)
    spilt = prepare_pairs(open_pairs(rows, PairReading()), DataConfig())
    assert spilt.fingerprint == held.fingerprint
    assert spilt.facts == held.facts
    for part, section in held.sections.items():
        for name, field in section.fields.items():
            other = spilt.sections[part].fields[name]
            assert isinstance(other.values, np.memmap)
            assert other.values.tolist() == field.values.tolist()
            assert other.offsets[0].tolist() == field.offsets[0].tolist()
