"""Data that several use is prepared once: by the content of its files and the settings, checked, never mixed up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.small import QUICK
from unrolled.core import discover
from unrolled.core.errors import DataError, UnrolledError
from unrolled.data import prepared
from unrolled.data.examples import Examples, Ragged
from unrolled.data.prepared import Prepared, kept, shared
from unrolled.data.storage import stored
from unrolled.data.storage.store import Draft, write
from unrolled.runs import build
from unrolled.training.api import configure

ROWS = [{"text": f"{'good' if i % 3 else 'poor'} number {i}", "label": "yes" if i % 3 else "no"} for i in range(60)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tokens"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return table(tmp_path / "data" / "reviews.csv", ROWS)


def table(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("text,label\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A word for each time that something was prepared from its files."""
    counted: list[str] = []
    before = prepared._made

    def counting(recipe: str, name: str, *rest: Any) -> Prepared:
        counted.append(name)
        return before(recipe, name, *rest)

    monkeypatch.setattr(prepared, "_made", counting)
    return counted


def task_of(name: str, source: Any, **settings: Any) -> Any:
    task = build.make_task(configure(name, None, source, settings))
    task.prepare(source)
    return task


def held(found: Prepared) -> dict[str, Any]:
    """All that is used of prepared data, as plain values."""
    sections = {}
    for split, examples in found.sections.items():
        fields = {
            name: [str(field.values.dtype), field.values.tolist(), [each.tolist() for each in field.offsets]]
            for name, field in examples.fields.items()
        }
        sections[split] = [fields, {name: list(map(str, column)) for name, column in examples.columns.items()}]
    codecs = {name: codec.to_json() for name, codec in found.codecs.items()}
    return {"sections": sections, "codecs": codecs, "facts": found.facts, "fingerprint": found.fingerprint}


def entries(home: Path) -> list[Path]:
    """Those with examples, not those with the names of files."""
    found = [path for path in home.iterdir() if not path.name.endswith(".part")] if home.exists() else []
    return [path for path in found if "splits" in json.loads((path / "index.json").read_text())]


# ---- there and back


def test_any_examples_come_back_as_they_were() -> None:
    bags = Ragged(np.arange(14, dtype=np.float16).reshape(7, 2), (np.array([0, 2, 2, 3]), np.array([0, 3, 4, 7])))
    columns = {"rows": np.array([5, 1, 3]), "ends": np.array([True, False, True]), "given": ["a", "é\udce9", ""]}
    nothing = Ragged(np.empty((0, 4)), (np.zeros(4, np.int64),))
    examples = Examples({"input": bags, "none": nothing}, columns, False, {"bytes": 9})

    def fill(draft: Draft) -> None:
        draft.finish({"splits": {"train": stored.put_examples(draft, "train", examples)}})

    entry = write("0" * 32, fill)
    (found,) = stored.stored_examples(entry).values()
    assert found.counts == {"bytes": 9} and not found.is_stream
    for name, field in examples.fields.items():
        again = found.fields[name]
        assert again.values.dtype == field.values.dtype and np.array_equal(again.values, field.values)
        assert again.values.shape == field.values.shape
        assert [each.tolist() for each in again.offsets] == [each.tolist() for each in field.offsets]
    assert found.columns["given"] == columns["given"] and found.ends.tolist() == [True, False, True]
    found.values("input")[0] = 9  # of this process alone
    assert stored.stored_examples(write("0" * 32, fill))["train"].values("input")[0, 0] == 0


@pytest.mark.parametrize("name", ["classify", "regress", "tag", "denoise", "translate", "next-frame", "handwriting"])
def test_every_task_finds_what_it_prepared(name: str, tmp_path: Path, home: Path, made: list[str]) -> None:
    source = files(tmp_path, name)
    alone = task_of(name, source)
    assert not home.exists()  # small data of one run stays in memory
    with shared():
        first, again = task_of(name, source), task_of(name, source)
    assert made == [str(source)] and len(entries(home)) == 1
    with shared():
        third = task_of(name, source)  # as in another process
    assert len(made) == 1
    for task in (first, again, third):
        assert task.facts() == alone.facts()
        assert task.describe() == alone.describe()
        assert task.ports() == alone.ports()
        assert [task.size(split) for split in task.splits()] == [alone.size(split) for split in alone.splits()]
        config = configure(name, None, source, QUICK)
        batch, expected = (each.sampler(config.batching, False, 0).batch(1) for each in (task, alone))
        assert np.array_equal(batch.x, expected.x) and np.array_equal(batch.y, expected.y)


def files(folder: Path, name: str) -> Path:
    path = folder / "data"
    path.mkdir()
    series = [[round(float(np.sin(i + t)), 4) for t in range(12)] for i in range(40)]
    if name == "next-frame":
        np.savez(path / "rolls.npz", *[np.eye(5, dtype=np.uint8)[np.arange(i, i + 6) % 5] for i in range(30)])
        return path / "rolls.npz"
    if name == "handwriting":
        np.savez(path / "pen.npz", *[np.array([[0, 0, 0], [i, 2, 0], [1, -i, 1]]) for i in range(30)])
        return path / "pen.npz"
    if name == "tag":
        (path / "words.conll").write_text("".join(f"the DET\ncat{i} NOUN\nsleeps VERB\n\n" for i in range(40)))
        return path / "words.conll"
    rows: list[dict[str, Any]] = {
        "classify": [dict(row) for row in ROWS],
        "regress": [{"text": row["text"], "target": i * 0.5} for i, row in enumerate(ROWS)],
        "denoise": [{"input": each, "target": [v / 2 for v in each]} for each in series],
        "translate": [{"source": f"le chat {i}", "target": f"the cat {i}"} for i in range(50)],
    }[name]  # type: ignore[assignment]
    (path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path / "data.jsonl"


# ---- what is told apart


def test_other_content_is_other_data(csv: Path, made: list[str]) -> None:
    with shared():
        before = task_of("classify", csv)
        table(csv, [{**row, "text": row["text"].upper()} for row in ROWS])  # as long as before
        after = task_of("classify", csv)
        table(csv, ROWS)
        again = task_of("classify", csv)
    assert len(made) == 2  # the first is still known
    assert after.facts()["fingerprint"] != before.facts()["fingerprint"] == again.facts()["fingerprint"]


@pytest.mark.parametrize("settings", [
    {"data.split": "60/20/20"}, {"data.seed": 5}, {"tokens": "word"}, {"data.max_length": 5, "too_long": "truncate"},
    {"reading.fold.of": 3, "reading.fold.number": 0}, {"reading.target": "label", "reading.column": "text"},
])  # fmt: skip
def test_settings_that_matter_are_told_apart(csv: Path, made: list[str], settings: dict[str, Any]) -> None:
    with shared():
        usual = task_of("classify", csv)
        task_of("classify", csv, **settings)
        again = task_of("classify", csv, **settings)
        assert len(made) == 2
    alone = task_of("classify", csv, **settings)
    assert again.facts() == alone.facts()
    if "reading.target" not in settings:
        assert held(again.prepared) != held(usual.prepared)


def test_folds_never_share(csv: Path, made: list[str]) -> None:
    def rows(number: int | None) -> dict[str, list[int]]:
        given = {} if number is None else {"reading.fold.number": number}
        found = task_of("classify", csv, **{"reading.fold.of": 3, **given}).prepared.sections
        return {split: sorted(section.rows.tolist()) for split, section in found.items()}

    with shared():
        found = [rows(number) for number in (0, 1, 2, None, 0, 1, 2, None)]
    assert found[:4] == found[4:] and len(made) == 4
    assert found == [rows(number) for number in (0, 1, 2, None)] * 2  # as without the store
    valid = [set(each["valid"]) for each in found[:3]]
    assert not valid[0] & valid[1] and not valid[1] & valid[2] and "valid" not in found[3]


def test_splits_that_are_given_are_told_apart(csv: Path, made: list[str]) -> None:
    other = table(csv.with_name("others.csv"), [{**row, "text": f"other {row['text']}"} for row in ROWS[:30]])
    with shared():
        sizes = [
            {split: task.size(split) for split in task.splits()}
            for name in ("valid", "test", "valid")
            for task in [task_of("classify", {"train": csv, name: other})]
        ]
    assert len(made) == 2 and sizes[0] == sizes[2]
    assert (sizes[0]["valid"], sizes[1]["test"]) == (30, 30)


def test_how_much_is_used_is_not_part_of_what_is_prepared(csv: Path, made: list[str]) -> None:
    with shared():
        whole, half = task_of("classify", csv), task_of("classify", csv, fraction=0.5, held_out=2)
    assert len(made) == 1
    assert half.size("train") == round(whole.size("train") / 2) and half.size("valid") == 2


def test_saved_codecs_are_part_of_it(csv: Path, tmp_path: Path, made: list[str]) -> None:
    task = task_of("classify", csv)
    folder = tmp_path / "codec"
    folder.mkdir()
    task.save_codec(folder)
    other = table(csv, [*ROWS, *({"text": f"new zebra {i}", "label": "perhaps"} for i in range(30))])

    def again() -> Any:
        loaded = build.make_task(configure("classify", None, other, {}))
        loaded.load_codec(folder)
        loaded.recall({**task.describe()})
        loaded.prepare(other)
        return loaded

    alone = again()
    with shared():
        fresh, first, second = task_of("classify", other), again(), again()
    assert len(made) == 2
    assert fresh.answers.size == 3 and first.answers.size == second.answers.size == 2
    assert second.answers.all_names == alone.answers.all_names == ["no", "yes", "perhaps"]
    assert held(second.prepared)["sections"] == held(alone.prepared)["sections"]


def test_files_that_other_files_name_belong_to_the_content(tmp_path: Path, made: list[str]) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    random = np.random.default_rng(0)
    for i in range(12):
        Image.fromarray(random.integers(0, 255, (6, 6, 3), np.uint8)).save(folder / f"{i}.png")
    lines = "".join(f"pictures/{i}.png,a picture of {i % 3}\n" for i in range(12))
    (tmp_path / "captions.csv").write_text(f"image,caption\n{lines}", encoding="utf-8")
    with shared():
        first = task_of("caption", tmp_path / "captions.csv", split="60/20/20")
        task_of("caption", tmp_path / "captions.csv", split="60/20/20")
        assert len(made) == 1
        Image.fromarray(random.integers(0, 255, (6, 6, 3), np.uint8)).save(folder / "3.png")
        other = task_of("caption", tmp_path / "captions.csv", split="60/20/20")
    assert len(made) == 2 and first.facts()["fingerprint"] != other.facts()["fingerprint"]


def test_a_file_that_comes_into_a_folder_is_noticed(tmp_path: Path, made: list[str]) -> None:
    for i in range(20):
        place = tmp_path / "texts" / ("good" if i % 2 else "poor")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i}.txt").write_text(f"text number {i}", encoding="utf-8")
    with shared():
        first = task_of("classify", tmp_path / "texts")
        task_of("classify", tmp_path / "texts")
        assert len(made) == 1
        (tmp_path / "texts" / "good" / "99.txt").write_text("one more", encoding="utf-8")
        assert task_of("classify", tmp_path / "texts").facts()["examples"] == first.facts()["examples"] + 1


def test_a_file_of_ones_own_is_part_of_it(
    csv: Path, tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "mine.py"
    own.write_text("x = 1")
    with shared():
        task_of("classify", csv)
        monkeypatch.setitem(discover.tasks._files, "classify", own)  # as if that task were the user's
        task_of("classify", csv)
        task_of("classify", csv)
        assert len(made) == 2
        own.write_text("x = 2")
        task_of("classify", csv)
    assert len(made) == 3


@pytest.mark.parametrize("name", ["no such file.csv", "x" * 5000, "a\0b", "-"])
def test_a_name_that_is_no_file_is_told_as_before(name: str) -> None:
    with pytest.raises(UnrolledError) as alone:
        task_of("classify", name)
    with shared(), pytest.raises(UnrolledError) as together:
        task_of("classify", name)
    assert str(alone.value) == str(together.value)


# ---- what can go wrong


def test_a_damaged_entry_is_prepared_again_with_a_note(csv: Path, home: Path, made: list[str]) -> None:
    with shared():
        before = task_of("classify", csv)
        expected = held(before.prepared)["sections"]
        (entry,) = entries(home)
        values = bytearray((entry / "train.input").read_bytes())
        values[3] ^= 1
        (entry / "train.input").write_bytes(values)
        after, third = task_of("classify", csv), task_of("classify", csv)
    assert len(made) == 2 and len(entries(home)) == 1
    assert held(after.prepared)["sections"] == expected
    (note,) = [note for note in after.facts()["notes"] if note not in before.facts()["notes"]]
    assert "was damaged (train.input has changed since it was written), so it was prepared again" in note
    assert third.facts() == before.facts()


def test_a_file_that_changes_meanwhile_is_noticed(csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unrolled.tasks import _labelled

    before = _labelled.prepare_labelled

    def slow(*arguments: Any, **more: Any) -> Prepared:
        found = before(*arguments, **more)
        table(csv, ROWS[:40])
        return found

    monkeypatch.setattr(_labelled, "prepare_labelled", slow)
    with shared(), pytest.raises(DataError, match="the data changed while it was being read"):
        task_of("classify", csv)


def test_without_a_store_every_run_prepares(csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "file"))
    alone = task_of("classify", csv)
    with shared():
        task = task_of("classify", csv)
    assert held(task.prepared)["sections"] == held(alone.prepared)["sections"]
    assert any("the prepared data could not be cached" in note for note in task.facts()["notes"])


def test_large_data_of_one_run_is_kept(csv: Path, home: Path, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "LARGE", 100)
    task_of("classify", csv)
    task = task_of("classify", csv)
    assert len(made) == 1 and len(entries(home)) == 1
    assert isinstance(task.prepared.sections["train"].values("input"), np.memmap)


def test_data_in_memory_is_prepared_once_in_a_comparison(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def make() -> Prepared:
        counted.append(1)
        return Prepared({}, {}, {}, "", {})

    first, second = list(ROWS), list(ROWS)
    kept(first, {"a": 1}, make)
    kept(first, {"a": 1}, make)
    assert len(counted) == 2
    with shared():
        for source, asked in ((first, 1), (first, 1), (first, 2), (second, 1), (first, 1)):
            with shared():
                kept(source, {"a": asked}, make)
    assert len(counted) == 5 and not home.exists()
