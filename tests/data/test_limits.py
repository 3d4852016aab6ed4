"""What is read has a limit, which is told: lines, whole files, arrays, compressed variables, sentences."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from unrolled.core.errors import LONGEST, DataError, UnrolledError, UsageError, nearest, some
from unrolled.data.builtin_sets import is_usual
from unrolled.data.files import matlab as mat
from unrolled.data.files import npz
from unrolled.data.files import text_file as plain
from unrolled.data.files.file_names import file_of_row
from unrolled.data.files.text_file import TextFile
from unrolled.data.readers.image import read_idx
from unrolled.data.reading import PairReading
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.runs import build
from unrolled.runs.trust import data_of
from unrolled.training.api import configure


@pytest.fixture
def file(tmp_path: Path) -> TextFile:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\n" + b"x" * 50 + b"\ntwo\n"))
    return TextFile(tmp_path / "a.txt.gz")


def test_a_line(file: TextFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "PIECE", 8)
    monkeypatch.setattr(plain, "LONGEST_LINE", 50)
    assert [len(line) for line in file.lines()] == [3, 50, 3]
    monkeypatch.setattr(plain, "LONGEST_LINE", 40)
    with pytest.raises(DataError, match="line 2: has more than 40 characters"):
        list(file.lines())
    assert "".join(file.pieces()).endswith("two\n")  # a stream may have lines of any length


def test_a_whole_file(file: TextFile) -> None:
    assert len(file.whole(59)) == len(file.text(59)) == 59
    with pytest.raises(DataError, match="more than 58 bytes"):
        file.whole(58)
    with pytest.raises(DataError, match="more than 58 characters"):
        file.text(58)


def test_an_idx_file_tells_more_than_integers_hold(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\0\0\x08\x04" + struct.pack(">IIII", 2**16, 2**16, 2**16, 2**16))  # 2^64 is 0 there
    with pytest.raises(DataError, match="has 0 values, expected 65536 x 65536 x 65536 x 65536"):
        read_idx(tmp_path / "a")


def test_arrays_of_more_than_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(1000))
    assert npz.load_npz(tmp_path / "a.npz")["x"].shape == (1000,)
    monkeypatch.setattr(npz, "memory", lambda: 8000)
    with pytest.raises(DataError, match="8,128 bytes when unpacked, more than the memory"):
        npz.load_npz(tmp_path / "a.npz")


def test_variables_of_a_matlab_file_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_data = struct.pack("<II", 99, 1000) + bytes(1000)  # an element of a kind that is passed over
    packed = zlib.compress(plain_data)
    element = struct.pack("<II", mat.COMPRESSED, len(packed)) + packed
    (tmp_path / "a.mat").write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + element * 3)
    assert mat.read_mat(tmp_path / "a.mat") == {}
    monkeypatch.setattr(mat, "LARGEST", 3000)
    with pytest.raises(DataError, match="more than 3,000 bytes"):
        mat.read_mat(tmp_path / "a.mat")


def test_files_that_a_table_names_are_inside_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "in").mkdir(parents=True)
    for path in (folder / "a.png", folder / "in" / "b.png", tmp_path / "c.png", tmp_path / "set2.png"):
        path.write_bytes(b"")
    assert file_of_row("a.png", [folder], "row 1") == folder / "a.png"
    assert file_of_row("in/../in/b.png", [folder], "row 1") is not None
    assert file_of_row(str(folder / "a.png"), [folder], "row 1") is not None
    for name in ("in", "", " ", "a\0.png", "x" * 5000, "gone.png"):
        assert file_of_row(name, [folder], "row 1") is None
    for name in ("../c.png", "../set2.png", str(tmp_path / "c.png")):
        with pytest.raises(DataError, match="points outside"):
            file_of_row(name, [folder], "row 1")


def test_sentences_quote_little() -> None:
    long = UnrolledError("begin " + "x" * 1_000_000 + " end")
    assert len(str(long)) <= LONGEST + 10
    assert str(long).startswith("begin")
    assert str(long).endswith("end")
    assert str(UnrolledError("short")) == "short"
    assert len(some("x" * 1000 for _ in range(1000))) < 1000
    assert len(nearest("y" * 100_000, ["x" * 100_000])) < 300


@pytest.mark.parametrize("source", [
    "builtin:shapes,examples=1000000000000", "builtin:shapes,seed=" + "9" * 5000, "builtin:reversal,length=1000000000",
    "builtin:reversal,examples=" + "9" * 5000, "builtin:adding,examples=1000000000000",
    "builtin:adding,length=" + "9" * 5000,
])  # fmt: skip
def test_built_in_data_is_made_in_bounds(source: str) -> None:
    task = {"shapes": "caption", "reversal": "translate", "adding": "regress"}[source[8:].split(",")[0]]
    with pytest.raises(UnrolledError) as caught:
        build.make_task(configure(task, None, source, {})).prepare(source)
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize(("source", "usual"), [
    ("builtin:adding", True), ("builtin:adding,length=50", True), ("builtin:adding,length=1000,examples=1000", True),
    ("builtin:adding,length=600,examples=20000", False), ("builtin:adding,length=2,examples=500000", False),
    ("builtin:adding,length=1000000000", False), ("builtin:adding,length=9,length=1_000_000_000", False),
    ("builtin:reversal,length=10000", False), ("builtin:shapes,examples=200000", False),
    ("builtin:dates,examples=999999", False), ("builtin:python-docs", True), ("builtin:no,examples=5", False),
    ("builtin:shapes,seed=99", True),
])  # fmt: skip
def test_a_directory_may_ask_for_built_in_data_of_usual_size_alone(source: str, usual: bool) -> None:
    assert is_usual(source) is usual
    if usual:
        assert data_of(Path("run"), source, {}, None, "again") == source
    else:
        with pytest.raises(DataError, match="opened only if you name it"):
            data_of(Path("run"), source, {}, None, "again")
    assert data_of(Path("run"), source, {}, source, "again") == source


def test_reversal_has_only_so_many_words() -> None:
    with pytest.raises(UsageError, match="only 26 words of up to 1 letters"):
        open_pairs("builtin:reversal,length=1,examples=27", PairReading())
    assert len(list(open_pairs("builtin:reversal,length=1,examples=20", PairReading()))) == 20
