"""One way to a file: regular, not too large, without waiting."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from unrolled.core import opening
from unrolled.core.errors import DataError
from unrolled.core.opening import open_regular, parse_json, read_bytes, read_json, read_text, shortened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.txt"
    path.write_text("grün\n", encoding="utf-8")
    return path


def test_a_file_is_read_as_it_is(file: Path) -> None:
    with open_regular(file) as handle:
        assert handle.read() == "grün\n".encode()
    assert read_bytes(str(file), 100) == "grün\n".encode()
    assert read_text(file, 100) == "grün\n"


def test_what_would_be_waited_for_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe: this is a pipe.*save its output to a file"):
        open_regular(tmp_path / "pipe")


def test_process_substitution_is_a_pipe() -> None:
    reader, writer = os.pipe()
    try:
        with pytest.raises(DataError, match="this is a pipe"):
            read_bytes(f"/dev/fd/{reader}", 100)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_devices_are_refused_also_behind_a_link(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(name)
    for path in (Path(name), tmp_path / "link"):
        with pytest.raises(DataError, match="this is a device"):
            open_regular(path)


def test_folders_sockets_and_nothing_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(DataError, match="this is a socket"):
            open_regular("socket")
    with pytest.raises(DataError, match="this is a folder, not a file"):
        open_regular(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        open_regular(tmp_path / "nothing")
    with pytest.raises(DataError, match="cannot be opened"):
        open_regular("a\0b")


def test_size_is_told_with_its_limit(file: Path) -> None:
    assert read_bytes(file, 6) == "grün\n".encode()
    with pytest.raises(DataError, match="has 6 bytes, more than the limit of 5 for such a file"):
        read_bytes(file, 5)
    with pytest.raises(DataError, match="more than the limit of 5"):
        open_regular(file, 5)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no files here that do not tell their size")
def test_a_file_that_does_not_tell_its_size_is_limited_too() -> None:
    assert os.stat("/proc/self/status").st_size == 0
    with pytest.raises(DataError, match="more than the limit of 10"):
        read_bytes("/proc/self/status", 10)


def test_links_are_followed_but_not_out_of_a_directory(tmp_path: Path, file: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "own.txt").write_text("own", encoding="utf-8")
    (run / "inner").symlink_to("own.txt")
    (run / "outer").symlink_to(file)
    assert read_text(run / "outer", 100) == "grün\n"
    assert read_text(run / "inner", 100, within=run) == "own"
    for way in ("outer", "../some.txt"):
        with pytest.raises(DataError, match="points outside"):
            read_text(run / way, 100, within=run)


def test_a_directory_may_itself_be_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.json").write_text("[1]", encoding="utf-8")
    (tmp_path / "link").symlink_to("run")
    assert read_json(tmp_path / "link" / "a.json", within=tmp_path / "link") == [1]


def test_messages_repeat_little_of_the_data(tmp_path: Path) -> None:
    assert shortened([1, 2]) == "[1, 2]"
    assert len(shortened("x" * 1_000_000)) < 300
    assert shortened(10**5000) == "a number with thousands of digits"
    with pytest.raises(DataError) as error:
        parse_json(b'{"a": ' + b"9" * 1_000_000 + b"}", "file")
    assert len(str(error.value)) < 500


def test_the_limit_of_json_is_one_that_memory_bears() -> None:
    assert 30 * opening.JSON < 2**29
