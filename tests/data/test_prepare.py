"""Preparation: splits that do not leak, counts that add up, a store that survives races and damage."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError
from unrolled.core.tokens import UNKNOWN
from unrolled.data import builtin_sets as builtin
from unrolled.data.codecs.text import CharCodec, Codec
from unrolled.data.config import DataConfig
from unrolled.data.prepare import prepare, prepare_all
from unrolled.data.split import row_key, split_rows
from unrolled.runs.describe import describe

TEXT = "".join(f"{i} green bottles standing on the wall\n" for i in range(300))
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}


def decoded(data, name: str) -> list[str]:
    section = data.sections[name]
    return [data.codecs["text"].decode(tokens) for tokens in section.fields[TARGET]]


@pytest.mark.parametrize("tokens", ["char", "byte", "word", "bpe"])
def test_a_stream_is_cut_by_position_at_the_same_place_for_every_kind_of_token(tokens, tmp_path):
    (tmp_path / "t.txt").write_text(TEXT)
    data = prepare(tmp_path / "t.txt", DataConfig(tokens=tokens, vocabulary=500))
    cuts = [0, int(0.9 * len(TEXT)), int(0.95 * len(TEXT)), len(TEXT)]
    assert data.facts["cuts"] == {"train": cuts[1], "valid": cuts[2], "test": cuts[3]}
    for name, start, stop in zip(data.sections, cuts, cuts[1:]):
        section, text = data.sections[name], TEXT[start:stop]
        assert section.is_stream
        assert section.lengths(TARGET).tolist() == [len(section.values(TARGET))]
        assert (section.counts["characters"], section.counts["bytes"]) == (len(text), len(text.encode()))
        assert section.counts["unknown"] == int((section.values(TARGET) == UNKNOWN).sum())
        if not section.counts["unknown"]:
            assert data.codecs["text"].decode(section.values(TARGET)) == text


def test_two_parts_make_no_test(tmp_path):
    assert list(prepare([*"abcdefghij"], DataConfig(split="80/20")).sections) == ["train", "valid"]


def test_the_vocabulary_is_fitted_on_the_training_part_only(tmp_path):
    (tmp_path / "t.txt").write_text("ab" * 450 + "xy" * 25 + "z" * 50)
    data = prepare(tmp_path / "t.txt", DataConfig())
    assert isinstance(data.codecs["text"], CharCodec)
    assert data.codecs["text"].characters == "ab"
    assert [data.sections[name].counts["unknown"] for name in ("train", "valid", "test")] == [0, 50, 50]
    assert data.facts["split"]["valid"]["unknown_share"] == 1.0
    rows = [chr(0x4E00 + i) for i in range(100)]  # every row its own character
    data = prepare(rows, DataConfig(split="50/25/25"))
    assert set(data.codecs["text"].characters) == set(decoded(data, "train"))
    assert (data.sections["valid"].values(TARGET) == UNKNOWN).all()


@given(
    sizes=st.lists(st.integers(1, 30), min_size=3, max_size=60),
    seed=st.integers(0, 5),
)
@settings(max_examples=100, deadline=None)
def test_duplicates_stay_on_one_side_and_parts_have_about_their_share(sizes, seed):
    rows = [f"row {i}" for i, n in enumerate(sizes) for _ in range(n)]
    keys = np.array([row_key(row, None, seed) for row in rows], np.uint64)
    side = split_rows(keys, SHARES, "rows")
    for row in set(rows):
        assert len({int(s) for s, other in zip(side, rows) if other == row}) == 1
    counts = np.bincount(side, minlength=3)
    assert (counts > 0).all()
    assert counts[1] <= max(2 * round(0.1 * len(rows)), max(sizes))


def test_the_split_of_many_rows_is_exact_and_follows_the_seed():
    rows = [f"row {i}" for i in range(1000)]
    sides = [
        split_rows(np.array([row_key(row, None, seed) for row in rows], np.uint64), SHARES, "") for seed in (0, 0, 1)
    ]
    assert np.bincount(sides[0]).tolist() == [800, 100, 100]
    assert (sides[0] == sides[1]).all()
    assert (sides[0] != sides[2]).any()


def test_duplicates_are_counted_with_where_they_went():
    rows = [f"row {i % 50}" for i in range(80)]
    data = prepare(rows, DataConfig(split="80/10/10"))
    parts = [set(decoded(data, name)) for name in data.sections]
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]
    repeats = data.facts["duplicates"]
    assert repeats["all"] == 30 == repeats["train"] + repeats["valid"] + repeats["test"]
    for name in data.sections:
        assert repeats[name] == len(decoded(data, name)) - len(set(decoded(data, name)))


def test_the_same_text_with_another_class_is_not_a_duplicate():
    rows = [{"text": f"row {i // 2}", "kind": "ab"[i % 2]} for i in range(40)]
    assert prepare(rows, DataConfig(condition="kind")).facts["duplicates"]["all"] == 0


def test_classes_rows_and_texts_stay_together():
    rows = [{"text": f"{kind} number {i}", "kind": kind} for i, kind in enumerate(["c", "a", "b"] * 20)]
    data = prepare(rows, DataConfig(condition="kind"))
    assert data.told["labels"] == ["a", "b", "c"]
    assert data.facts["classes"] == {"a": 20, "b": 20, "c": 20}
    seen = []
    for name, section in data.sections.items():
        for text, label, row in zip(decoded(data, name), section.columns[SOURCE], section.rows):
            if UNKNOWN not in section.values(TARGET):
                assert text == rows[row - 1]["text"]
            assert data.told["labels"][label] == rows[row - 1]["kind"]
            seen.append(int(row))
    assert sorted(seen) == list(range(1, 61))


def test_a_class_without_training_examples_is_noted():
    rows = [{"text": f"x{i}", "kind": "ab"[i % 2]} for i in range(40)]
    alone = [{"text": "lonely", "kind": "z"}]
    notes = [
        prepare(rows + alone, DataConfig(condition="kind", seed=seed, split="50/25/25")).facts["notes"]
        for seed in range(12)
    ]
    assert any("no training example of class z" in note for note in notes)
    assert not all(notes)


@pytest.mark.parametrize("tokens", ["char", "byte", "word", "bpe"])
def test_too_long_is_truncated_or_split_and_counted(tokens):
    rows = ["short", "né " * 20, "x", "unseen wörds " * 9, *[f"y{i}" for i in range(20)]]
    config = DataConfig(tokens=tokens, vocabulary=300, max_length=7, too_long="truncate")
    codec = Codec.fit(rows, config)
    whole = prepare_all(rows, DataConfig(tokens=tokens, vocabulary=300), codec)
    cut = prepare_all(rows, config, codec)
    pieces = prepare_all(rows, config.updated({"too_long": "split"}), codec)
    lengths = whole.lengths(TARGET)
    assert cut.lengths(TARGET).tolist() == np.minimum(lengths, 7).tolist()
    assert (cut.ends == (lengths <= 7)).all()
    for i in range(cut.n_examples):
        assert cut.at(TARGET, i).tolist() == whole.at(TARGET, i)[:7].tolist()
    kept = [codec.decode(cut.at(TARGET, i)) for i in range(cut.n_examples)]
    assert cut.counts["bytes"] == sum(int(codec.byte_lengths(row)[:7].sum()) for row in rows)
    if tokens in ("char", "word"):
        assert cut.counts["characters"] == sum(map(len, kept))
    assert pieces.values(TARGET).tolist() == whole.values(TARGET).tolist()
    assert pieces.counts == whole.counts
    assert pieces.lengths(TARGET).max() == 7
    assert pieces.ends.sum() == len(rows)
    assert pieces.rows.max() == len(rows)
    data = prepare(rows, config)
    assert data.facts["truncated"] == (lengths > 7).sum()
    assert any("were truncated to 7 tokens" in note for note in data.facts["notes"])


def test_another_file_in_the_tokens_and_classes_of_a_saved_run():
    rows = [{"text": f"row {i}", "kind": "ab"[i % 2]} for i in range(40)]
    config = DataConfig(condition="kind")
    data = prepare(rows, config)
    section = prepare_all([{"text": "wor €", "kind": "b"}], config, data.codecs["text"], data.told["labels"])
    assert section.columns[SOURCE].tolist() == [1]
    assert (section.n_examples, section.counts["unknown"]) == (1, 1)
    with pytest.raises(DataError, match=r"the list, row 1: the class 'c' is not one of the run's.*known: a, b"):
        prepare_all([{"text": "row", "kind": "c"}], config, data.codecs["text"], data.told["labels"])
    with pytest.raises(DataError, match="the data is numbers, but the saved codec is for text"):
        prepare_all([1, 2, 3], DataConfig(), data.codecs["text"])


def test_whole_numbers_are_tokens():
    stream = np.arange(1000) % 7 + 250
    data = prepare(stream, DataConfig(split="80/20"))
    assert data.codecs["text"].numbers.tolist() == list(range(250, 257))
    assert data.codecs["text"].decode(data.sections["valid"].values(TARGET)[:3]) == " ".join(map(str, stream[800:803]))
    assert data.sections["train"].counts["characters"] == 800
    data = prepare([[i, i + 1, 3] for i in range(40)], DataConfig())
    assert data.facts["lengths"] == {"min": 3, "mean": 3.0, "max": 3}


def test_the_store_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path))
    rows = [f"row {i}" for i in range(50)]
    first = prepare(rows, DataConfig())
    (place,) = (tmp_path / "tokens").iterdir()
    stamp = (place / "index.json").stat().st_mtime_ns
    again = prepare(rows, DataConfig(ahead=2))  # how far to look ahead is no matter of the store
    assert again.facts == first.facts
    assert (place / "index.json").stat().st_mtime_ns == stamp
    assert prepare(rows, DataConfig(seed=1)).fingerprint != first.fingerprint
    assert prepare(rows[1:], DataConfig()).fingerprint != first.fingerprint


def test_tokens_are_mapped_not_loaded_and_as_small_as_possible():
    data = prepare([f"row {i}" for i in range(50)], DataConfig())
    assert isinstance(data.sections["train"].values(TARGET), np.memmap)
    assert data.sections["train"].values(TARGET).dtype == np.uint16
    data = prepare(np.arange(70_000).repeat(2), DataConfig(split="90/10"))
    assert data.sections["train"].values(TARGET).dtype == np.uint16
    data = prepare(np.arange(80_000).repeat(2), DataConfig(split="90/10"))
    assert data.sections["train"].values(TARGET).dtype == np.int32
    assert data.sections["train"].values(TARGET).max() > 65_536


def test_two_processes_may_prepare_the_same_data_at_once(tmp_path):
    (tmp_path / "t.txt").write_text(TEXT * 20)
    program = (
        "import sys; from unrolled.data.prepare import prepare; from unrolled.data.config import DataConfig; "
        "d = prepare(sys.argv[1], DataConfig()); print(d.fingerprint, d.sections['train'].values('target').sum())"
    )
    environment = {**os.environ, "UNROLLED_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "t.txt")], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    answers = {process.communicate()[0] for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert len(answers) == 1
    assert len(list((tmp_path / "cache" / "tokens").iterdir())) == 1


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path))
    with pytest.raises(DataError):
        prepare(["short"] * 5 + ["a long one", "x", "y"], DataConfig(max_length=5))
    assert list((tmp_path / "tokens").iterdir()) == []


def test_a_description_is_plain_json():
    rows = [{"text": f"row {i}", "kind": "ab"[i % 2]} for i in range(40)]
    seen = describe(rows, condition="kind")
    assert json.loads(json.dumps(seen)) == seen
    assert seen["chosen"] == "rows, chosen because a table or list has one example per row"
    assert seen["first"][0] == {
        "text": "row 0", "class": "a", "place": "the list, row 1", "tokens": ["r", "o", "w", "␣", "0"],
    }  # fmt: skip
    assert (seen["rows"], seen["classes"], seen["lengths"]["max"]) == (40, {"a": 20, "b": 20}, 6)
    assert describe(np.arange(100))["first"][0]["text"].startswith("0 1 2")


def test_built_in_data():
    assert {"python-docs", "python-source", "unicode-names"} <= set(builtin.names())
    assert all(builtin.about(name)["licence"] for name in builtin.names())
    docs = prepare("builtin:python-docs", DataConfig())
    assert docs.facts["examples"] == "stream"
    assert docs.facts["characters"] > 300_000
    names = prepare("builtin:unicode-names", DataConfig(condition="script"))
    assert {"LATIN", "GREEK"} <= set(names.told["labels"])
    assert names.facts["rows"] > 5000
    assert all(path.suffix == ".py" for path in builtin.asked("builtin:python-source").read())


def test_missing_built_in_data_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(DataError, match="builtin:python-docs: this Python was installed without pydoc_data"):
        prepare("builtin:python-docs", DataConfig())
