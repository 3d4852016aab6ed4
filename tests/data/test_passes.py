"""A source that changes while it is read, between two passes or within one, is noticed: what was prepared, and the
fingerprint of it, are of the very bytes that were read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT
from unrolled.data.files import text_file as plain
from unrolled.data.files.text_file import TextFile
from unrolled.data.labelled_prepare import prepare_labelled
from unrolled.data.pairs_prepare import prepare_pairs
from unrolled.data.prepare import prepare
from unrolled.data.readers.parquet import ParquetTable
from unrolled.data.reading import PairReading, Reading, RecognitionReading
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.data.sources.recognition import open_recognition

N = 60
Prepared = tuple[Any, str]


def words(version: int) -> list[str]:
    """Texts of equal sizes in every version."""
    return [f"text {(7 * i + version) % N:02d} {'ab'[(i + version) % 2]}" for i in range(N)]


def of_text(path: Path) -> Prepared:
    data = prepare(path, DataConfig())
    return {name: section.values(TARGET).tolist() for name, section in data.sections.items()}, data.fingerprint


def of_lines(path: Path) -> Prepared:
    data = prepare(path, DataConfig(examples="lines", tokens="bpe", vocabulary=300))
    return {name: section.values(TARGET).tolist() for name, section in data.sections.items()}, data.fingerprint


def of_classes(path: Path) -> Prepared:
    data = prepare_labelled(open_labelled(path, Reading(), "class"), DataConfig())
    return {
        name: [s.values(INPUT).tolist(), s.values(TARGET).tolist()] for name, s in data.sections.items()
    }, data.fingerprint


def of_pairs(path: Path) -> Prepared:
    data = prepare_pairs(open_pairs(path, PairReading()), DataConfig())
    found = {name: [s.values(SOURCE).tolist(), s.values(TARGET).tolist()] for name, s in data.sections.items()}
    return found, data.fingerprint


def as_plain(version: int) -> bytes:
    return "".join(f"{text}\n" for text in words(version)).encode()


def as_csv(version: int) -> bytes:
    return ("text,label\n" + "".join(f"{text},{text[-1]}\n" for text in words(version))).encode()


def as_jsonl(version: int) -> bytes:
    return "".join(json.dumps({"text": text, "label": text[-1]}) + "\n" for text in words(version)).encode()


def as_json(version: int) -> bytes:
    return json.dumps(words(version)).encode()


def as_tsv(version: int) -> bytes:
    return "".join(f"{text}\t{text[::-1]}\n" for text in words(version)).encode()


CASES: dict[str, tuple[str, Callable[[int], bytes], Callable[[Path], Prepared]]] = {
    "a stream": ("a.txt", as_plain, of_text),
    "lines": ("a.txt", as_plain, of_lines),
    "packed": ("a.txt.gz", lambda version: gzip.compress(as_plain(version), mtime=0), of_text),
    "json": ("a.json", as_json, of_text),
    "rows": ("a.jsonl", lambda version: as_jsonl(version).replace(b"label", b"other"), lambda path: of_text(path)),
    "classes in csv": ("a.csv", as_csv, of_classes),
    "classes in jsonl": ("a.jsonl", as_jsonl, of_classes),
    "classes in folders": ("classes", as_plain, of_classes),
    "pairs": ("a.tsv", as_tsv, of_pairs),
}


class Changing:
    """A file that changes, once, before it is opened for the n-th time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
        self.left, self.change, self.opened = -1, change, TextFile.open
        monkeypatch.setattr(TextFile, "open", lambda file: self.open(file))

    def open(self, file: TextFile) -> Any:
        self.left -= 1
        if self.left == 0:
            self.change()
        return self.opened(file)


@pytest.mark.parametrize("case", CASES)
def test_a_change_between_two_passes_is_noticed(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    name, content, prepared = CASES[case]
    path = tmp_path / name

    def write(version: int) -> None:
        if name == "classes":
            path.mkdir(exist_ok=True)
            for label in "ab":
                texts = [text for text in words(version) if text[-1] == label]
                (path / f"{label}.txt").write_text("".join(f"{text}\n" for text in texts))
        else:
            path.write_bytes(content(version))

    expected = []
    for version in (0, 1):
        monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / f"alone {version}"))
        write(version)
        expected.append(prepared(path))
    assert expected[0] != expected[1]
    changing = Changing(monkeypatch, lambda: write(1))
    refused: list[str] = []
    for number in range(1, 40):
        monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / f"changing {number}"))
        write(0)
        changing.left = number
        try:
            assert prepared(path) in expected, number  # all of one version
        except DataError as error:
            refused.append(str(error))
        if changing.left > 0:  # the file was not opened that often
            break
        changing.left = -1
        for version in (1, 0):  # nothing is kept under a wrong key
            write(version)
            assert prepared(path) == expected[version], (number, version)
    assert all("changed while it was being read" in sentence for sentence in refused)
    assert bool(refused) == (case != "json")  # which is read once
    assert changing.left > 0


def test_a_change_within_a_pass_and_growth_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "PIECE", 64)
    path = tmp_path / "a.txt"
    path.write_bytes(as_plain(0))
    whole = list(TextFile(path).pieces())
    for change in (lambda: path.write_bytes(as_plain(1)), lambda: path.write_bytes(as_plain(0)[:64 * 9]),
                   lambda: path.write_bytes(as_plain(0) + b"more")):  # fmt: skip
        path.write_bytes(as_plain(0))
        file = TextFile(path)
        assert list(file.pieces()) == whole
        pieces = file.pieces()
        next(pieces)
        change()
        with pytest.raises(DataError, match=r"a\.txt: the data changed while it was being read; wait until"):
            list(file.pieces())


def test_a_digest_is_of_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(as_plain(0))
    before, file = TextFile(path).digest(), TextFile(path)
    list(file.pieces())
    path.write_bytes(as_plain(1))
    assert file.digest() == before != TextFile(path).digest()


def test_growth_at_the_end_of_a_chunk_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "PIECE", 64)
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 128)
    file = TextFile(path)
    file.digest()
    path.write_bytes(b"x" * 192)
    with pytest.raises(DataError, match="changed while it was being read"):
        list(file.lines())


def test_a_parquet_file_that_changes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars

    path = tmp_path / "a.parquet"
    polars.DataFrame({"text": words(0)}).write_parquet(path)
    read, left = ParquetTable._slice, [2]

    def slow(self: ParquetTable, *given: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            polars.DataFrame({"text": words(1)}).write_parquet(path)
        return read(self, *given)

    monkeypatch.setattr(ParquetTable, "_slice", slow)
    with pytest.raises(DataError, match="changed while it was being read"):
        of_text(path)


def test_arrays_that_change_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from unrolled.data.sources.text import NumberSource

    values = np.arange(1000) % 7
    read = NumberSource.pieces

    def changing(self: NumberSource) -> Any:
        yield from read(self)
        values[0] = 6

    monkeypatch.setattr(NumberSource, "pieces", changing)
    with pytest.raises(DataError, match="changed while it was being read"):
        prepare(values, DataConfig())


def test_clips_that_change_between_passes_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unrolled.data.sources import recognition

    random = np.random.default_rng(0)
    clips = {f"{i}.wav": random.normal(size=800).astype(np.float32) for i in range(12)}
    (tmp_path / "clips.csv").write_text("file,text\n" + "".join(f"{name},a{i}\n" for i, name in enumerate(clips)))
    for name in clips:
        (tmp_path / name).write_bytes(b"RIFF")
    reads = []

    def read_clip(file: Path) -> tuple[Any, int]:
        reads.append(file.name)
        return clips[file.name] * (2.0 if len(reads) > 12 and file.name == "3.wav" else 1.0), 8000

    monkeypatch.setattr(recognition, "read_clip", read_clip)
    source = open_recognition(tmp_path, RecognitionReading())
    with pytest.raises(DataError, match="changed while it was being read"):
        prepare_pairs(source, DataConfig())
