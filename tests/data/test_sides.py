"""Nothing is on two sides of a split, in any task: no input, no group, no window of one series."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from unrolled.core.errors import DataError
from unrolled.data.config import DataConfig
from unrolled.data.labelled import LabelledSource
from unrolled.data.labelled_prepare import prepare_labelled
from unrolled.data.noise import with_noise
from unrolled.data.pairs_prepare import prepare_pairs
from unrolled.data.prepare import prepare
from unrolled.data.prepared import Prepared
from unrolled.data.reading import CaptionReading, Fold, Noise, PairReading, Reading, RecognitionReading
from unrolled.data.sources.captions import open_captions
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.data.sources.pianoroll import prepare_rolls
from unrolled.data.sources.recognition import open_recognition
from unrolled.data.split import row_key, split_rows, together

CONFIG = DataConfig(split="60/20/20")


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def sides_of(data: Prepared, of: list[Any]) -> dict[Any, set[str]]:
    """On which sides things are, where example i is of thing `of[i]`."""
    found = defaultdict(set)
    for part, section in data.sections.items():
        for row in section.rows.tolist():
            found[of[row]].add(part)
    assert {part for sides in found.values() for part in sides} == set(data.sections)
    return found


def apart(data: Prepared, of: list[Any]) -> bool:
    return all(len(sides) == 1 for sides in sides_of(data, of).values())


def content(example: Any) -> Any:
    value = example.input
    return value.tobytes() if isinstance(value, np.ndarray) else str(value)


def series(n: int, T: int = 40) -> np.ndarray:
    return random().normal(size=(n, T, 1))  # [n, T, 1]


# ---- equal inputs, whatever their target


@pytest.mark.parametrize("answers", ["class", "classes", "numbers", "tags"])
@pytest.mark.parametrize("fold", [Fold(), Fold(of=3, number=1)])
def test_equal_inputs_with_other_targets(answers: str, fold: Fold) -> None:
    texts = [f"word{i % 40} and word{i % 40 + 1}" for i in range(120)]
    targets: dict[str, Any] = {
        "class": lambda i: f"c{i % 7}", "classes": lambda i: [f"c{i % 7}"], "numbers": lambda i: i,
        "tags": lambda i: [f"t{i % 7}"] * 3,
    }  # fmt: skip
    rows = [{"text": text, "target": targets[answers](i)} for i, text in enumerate(texts)]
    source = open_labelled(rows, Reading(column="text", target="target"), answers)  # type: ignore[arg-type]
    assert apart(prepare_labelled(source, CONFIG, fold=fold), texts)


def test_equal_sources_with_other_texts(tmp_path: Path) -> None:
    words = [f"word{i % 40}" for i in range(120)]
    pairs = open_pairs([{"source": word, "target": f"{word} {i}"} for i, word in enumerate(words)], PairReading())
    assert apart(prepare_pairs(pairs, CONFIG), words)
    images = random().integers(0, 256, (40, 4, 4), np.uint8)
    source = open_captions((images[np.arange(120) % 40], [f"a {i}" for i in range(120)]), CaptionReading(grey=True))
    assert apart(prepare_pairs(source, CONFIG), words)
    sounds = random().uniform(-1, 1, (40, 30))[np.arange(120) % 40]
    clips = {"audio": sounds, "text": np.array([f"a {i}" for i in range(120)]), "rate": 8000}
    assert apart(prepare_pairs(open_recognition(clips, RecognitionReading()), CONFIG), words)


def test_equal_rolls() -> None:
    rolls = [(random(i % 40).random((5, 8)) < 0.5).astype(np.uint8) for i in range(120)]
    notes = prepare_rolls(rolls, CONFIG).facts["notes"]
    assert not any("are in train too" in note for note in notes)


def texts_by_section(rows: list[dict[str, str]]) -> dict[str, set[str]]:
    data = prepare(rows, DataConfig(split="60/20/20", condition="kind", column="text", tokens="char"))
    found: dict[str, set[str]] = defaultdict(set)
    for part, section in data.sections.items():
        for row in section.rows.tolist():
            found[rows[row - 1]["text"]].add(part)
    return found


def test_the_same_text_under_two_conditions() -> None:
    rows = [{"text": f"this is {i % 60}", "kind": "ab"[i // 60]} for i in range(120)]
    assert all(len(sides) == 1 for sides in texts_by_section(rows).values())


def test_texts_under_one_condition_are_split_as_ever() -> None:
    rows = [{"text": f"this is {i}", "kind": "ab"[i % 2]} for i in range(120)]
    keys = np.array([row_key(row["text"], row["kind"], 0) for row in rows], np.uint64)
    side = split_rows(keys, CONFIG.shares(), "the data")
    wanted = {row["text"]: {list(CONFIG.shares())[number]} for row, number in zip(rows, side)}
    assert texts_by_section(rows) == wanted


def test_what_is_alone_keeps_its_key() -> None:
    keys = np.array([7, 5, 9, 2], np.uint64)
    assert together(keys, np.array([3, 1, 0, 2])).tolist() == keys.tolist()
    assert together(keys, np.array([1, 0, 1, 0])).tolist() == [7, 2, 7, 2]


# ---- windows


def windowed(name: str, tmp_path: Path, group: str | None = None) -> tuple[LabelledSource, list[str]]:
    """15 series of 4 windows each, in one of the forms that data has, and the series of each window."""
    clean, noise = series(15), 0.1 * series(15)[::-1]
    reading = Reading(window=10, group=group)
    names = [f"{i}" for i in range(15) for _ in range(4)]
    if name == "noise":
        return with_noise(open_labelled((clean,), reading, "none"), Noise(noise="white"), 10), names
    if name == "arrays":
        return open_labelled((clean + noise, clean), reading, "series"), names
    if name == "table":
        rows = [
            {"id": i, "t": t, "x": float((clean + noise)[i, t, 0]), "clean": float(clean[i, t, 0]), "who": f"p{i % 5}"}
            for i in range(15)
            for t in range(40)
        ]
        return open_labelled(rows, reading.updated({"column": "x"}), "series"), names
    for kind, values in (("noisy", clean + noise), ("clean", clean)):
        (tmp_path / kind).mkdir()
        for i in range(15):
            soundfile.write(tmp_path / kind / f"{i:02}_p{i % 5}.wav", 0.1 * values[i], 8000)
    if group is not None:
        reading = reading.updated({"pattern": r"(?P<answer>\d+)_(?P<who>p\d)"})
    return open_labelled(tmp_path, reading, "series"), names


@pytest.mark.parametrize("name", ["noise", "arrays", "table", "clips"])
@pytest.mark.parametrize("fold", [Fold(), Fold(of=3, number=0)])
def test_the_windows_of_a_series_are_on_one_side(name: str, fold: Fold, tmp_path: Path) -> None:
    source, names = windowed(name, tmp_path)
    data = prepare_labelled(source, CONFIG, fold=fold)
    assert apart(data, names)
    assert sum(section.n_examples for section in data.sections.values()) == 60
    assert any("the windows of each of the 15 series are in one split" in note for note in data.facts["notes"])


@pytest.mark.parametrize("name", ["table", "clips"])
def test_the_windows_of_a_group_are_on_one_side(name: str, tmp_path: Path) -> None:
    source, names = windowed(name, tmp_path, group="who")
    data = prepare_labelled(source, CONFIG)
    assert apart(data, [f"p{int(each) % 5}" for each in names])
    assert any("each of the 5 groups is in one split" in note for note in data.facts["notes"])


def test_files_are_groups(tmp_path: Path) -> None:
    windowed("clips", tmp_path)
    source = open_labelled(tmp_path, Reading(window=10, group="file"), "series")
    assert source.reading.sound.features == "samples"  # as a saved run reads new clips
    assert {example.group for example in source} == {f"{i:02}_p{i % 5}.wav" for i in range(15)}


def test_a_column_may_tell_series_and_groups_apart(tmp_path: Path) -> None:
    source, names = windowed("table", tmp_path, group="id")
    assert source.reading.id == "id"
    assert apart(prepare_labelled(source, CONFIG), names)


def test_a_series_cannot_be_in_two_groups() -> None:
    rows = [{"t": t, "x": float(t), "clean": float(t), "who": f"p{t // 20}"} for t in range(40)]
    with pytest.raises(DataError, match=r"a series cannot be in two groups, so name the column .*id"):
        list(open_labelled(rows, Reading(column="x", group="who", window=10), "series"))


def test_equal_series_are_on_one_side_with_all_their_windows() -> None:
    clean = series(10)[np.arange(20) % 10]
    source = open_labelled((2 * clean, clean), Reading(window=10), "series")
    data = prepare_labelled(source, CONFIG)
    assert apart(data, [f"{i % 10}" for i in range(20) for _ in range(4)])
    assert sum(section.n_examples for section in data.sections.values()) == 80


def test_one_long_series_is_split_by_position() -> None:
    clean = series(1, 400)
    data = prepare_labelled(open_labelled((2 * clean, clean), Reading(window=10), "series"), CONFIG)
    rows = {part: section.rows.tolist() for part, section in data.sections.items()}
    assert rows == {"train": list(range(24)), "valid": list(range(24, 32)), "test": list(range(32, 40))}
    assert any("split by position" in note for note in data.facts["notes"])


def test_a_window_for_each_series_is_split_as_without() -> None:
    clean = series(30)
    whole = prepare_labelled(open_labelled((2 * clean, clean), Reading(), "series"), CONFIG)
    cut = prepare_labelled(open_labelled((2 * clean, clean), Reading(window=40), "series"), CONFIG)
    assert whole.fingerprint == cut.fingerprint


# ---- what groups and series share


def test_what_whole_groups_share_is_left_out_of_the_later_part() -> None:
    rows = [{"text": f"text {i}", "target": "ab"[i % 2], "who": f"p{i % 12}"} for i in range(120)]
    rows += [{"text": "the same", "target": "a", "who": f"p{i}"} for i in range(12)]
    source = open_labelled(rows, Reading(column="text", target="target", group="who"), "class")
    data = prepare_labelled(source, CONFIG)
    assert apart(data, [row["text"] for row in rows]) and apart(data, [row["who"] for row in rows])
    left = 132 - sum(section.n_examples for section in data.sections.values())
    assert left == sum(int(note.split()[0]) for note in data.facts["notes"] if "were left out" in note) > 0
    assert data.facts["in_train_too"] == {"valid": 0, "test": 0}


def test_nothing_that_could_be_measured_is_refused() -> None:
    rows = [{"text": f"text {i // 12}", "target": "ab"[i % 2], "who": f"p{i % 12}"} for i in range(120)]
    with pytest.raises(DataError, match="every input of the valid split is in another split too"):
        prepare_labelled(open_labelled(rows, Reading(column="text", target="target", group="who"), "class"), CONFIG)


def test_examples_with_and_without_a_group(tmp_path: Path) -> None:
    windowed("clips", tmp_path)
    (tmp_path / "noisy" / "00_p0.wav").rename(tmp_path / "noisy" / "x.wav")
    (tmp_path / "clean" / "00_p0.wav").rename(tmp_path / "clean" / "x.wav")
    reading = Reading(window=10, group="who", pattern=r"(?P<answer>\d+)_(?P<who>p\d)")
    with pytest.raises(DataError, match=r"x\.wav.*some examples have a group and others do not"):
        prepare_labelled(open_labelled(tmp_path, reading, "series"), CONFIG)


def test_parts_that_are_given_stay() -> None:
    rows = [{"text": f"text {i % 30}", "target": "ab"[i % 2], "split": ["train", "test"][i // 60]} for i in range(90)]
    data = prepare_labelled(open_labelled(rows, Reading(column="text", target="target", part="split"), "class"), CONFIG)
    assert data.sections["test"].n_examples == 30
    assert any("inputs of test are in train too, because the splits are given" in n for n in data.facts["notes"])
