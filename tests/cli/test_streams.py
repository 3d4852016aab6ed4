"""The door between a command and a terminal, pipe or file: what data says steers no terminal, what fails is told."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sys
from collections.abc import Iterator

import pytest
from rich.table import Table

from tests.commands import run_unrolled
from unrolled.cli import main as program
from unrolled.cli.streams import Exact, Safe, guarded, json_words, write_exact
from unrolled.core import front
from unrolled.core.errors import DataError
from unrolled.pictures.letters import UNSAFE, clean
from unrolled.pictures.screen import Screen

HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\x90q\x9c\u202eback\u2066\r\x08\x00\x7f"
CODE = re.compile(r"\x1b\[[\d;]*m")
EVIL_NAME = "\x1b]0;owned\x07\u202e.txt"


@pytest.fixture(autouse=True)
def _reader() -> Iterator[None]:
    """Commands in this process are for the command line; other tests are not."""
    before = front.reader()
    yield
    front.speak_to(before)


def ended(monkeypatch: pytest.MonkeyPatch, stdout: io.TextIOBase | None, *words: str) -> tuple[int, str]:
    """The exit code and standard error of a command whose standard output is this."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["unrolled", *words])
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(sys, "stderr", said)
    with pytest.raises(SystemExit) as left:
        program.main()
    return int(left.value.code or 0), said.getvalue()


@pytest.mark.parametrize("words", [["models"], ["tasks", "--json"], ["--help"], ["--version"]])
def test_a_full_disk_under_standard_output_is_told(monkeypatch, words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        code, said = ended(monkeypatch, full, *words)
    assert code == 5, said
    assert said.startswith("unrolled: standard output cannot be written (No space left on device)")
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", [["models"], ["tasks", "--json"], ["--help"]])
def test_a_reader_that_has_gone_ends_us_quietly(monkeypatch, words):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as pipe:
        assert ended(monkeypatch, pipe, *words) == (0, "")


def test_a_closed_standard_output_loses_what_is_printed_and_no_more(monkeypatch):
    assert ended(monkeypatch, None, "models") == (0, "")


def test_messages_that_nobody_can_read_stop_nothing():
    with open("/dev/full", "w", encoding="utf-8") as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        with guarded():
            print("step 1", file=sys.stderr, flush=True)
            print("step 2", file=sys.stderr, flush=True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_holds_what_is_printed(monkeypatch, encoding):
    kept = io.BytesIO()
    code, said = ended(monkeypatch, io.TextIOWrapper(kept, encoding=encoding, errors="strict"), "models", "lstm")
    assert (code, said) == (0, "")


def test_json_is_whole_in_any_encoding_and_holds_no_control_letter(monkeypatch):
    value = {"text": HOSTILE, "name": "caf\udce9", "far": "\U0001f600\U0001ffff"}
    for encoding in ("utf-8", "ascii", "latin-1"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
            text = json_words(value)
        assert json.loads(text) == value
        assert not UNSAFE.search(text)
        text.encode(encoding)


def test_a_line_of_standard_input_that_is_no_text_is_told_by_its_number(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("café\r\nb\n".encode() + b"caf\xe9\n"), "utf-8"))
    with guarded():
        lines = iter(sys.stdin)
        assert [next(lines), next(lines)] == ["café\n", "b\n"]
        with pytest.raises(DataError, match=r"standard input, line 3, byte 4: not utf-8 text \(found 0xe9\)"):
            next(lines)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_is_exact_in_a_pipe_and_safe_in_a_terminal(monkeypatch):
    for kept, expected in ((io.StringIO(), HOSTILE), (Terminal(), clean(HOSTILE))):
        monkeypatch.setattr(sys, "stdout", Safe(Exact(kept, lambda error: None)))
        write_exact(HOSTILE)
        assert kept.getvalue() == expected
        print(HOSTILE, end="")
        assert kept.getvalue() == expected + clean(HOSTILE)
    assert not UNSAFE.search(clean(HOSTILE))


def test_what_rich_draws_has_only_its_own_codes(monkeypatch):
    def drawn(text: str) -> str:
        kept = Terminal()
        monkeypatch.setattr(sys, "stdout", Safe(Exact(kept, lambda error: None)))
        screen = Screen(file=sys.stdout, force_terminal=True, width=200, highlight=False)
        table = Table(title=text)
        table.add_column(text)
        table.add_row(text, style="dim")
        screen.print(table)
        screen.print(text, style="bold")
        return kept.getvalue()

    assert "\x1b[" in drawn("plain")
    own = set(CODE.findall(drawn("plain")))
    for text in (HOSTILE, "[/b] [red]:smile: \x1b[2J"):
        assert set(CODE.findall(drawn(text))) == own
        assert not UNSAFE.search(CODE.sub("", drawn(text)))
    assert "[/b] [red]:smile:" in drawn("[/b] [red]:smile: ")


@pytest.mark.parametrize("words", [["data", EVIL_NAME], ["evaluate", EVIL_NAME], ["predict", EVIL_NAME, "-"],
                                   ["train", EVIL_NAME], ["report", EVIL_NAME], ["runs", EVIL_NAME]])  # fmt: skip
def test_an_error_about_a_name_is_safe(tmp_path, words):
    code = 2 if words[0] == "runs" else 3
    said = run_unrolled(*words, cwd=tmp_path, code=code).stderr
    assert "␛]0;owned␇" in said
    assert not UNSAFE.search(said)


def test_a_mistyped_word_is_safe_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    process = os.fork()
    if process == 0:
        try:
            sys.stderr = open(os.dup(theirs), "w", encoding="utf-8")  # noqa: SIM115
            sys.argv = ["unrolled", "models", "lstm", "\x1b]0;owned\x07"]
            program.main()
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    said = os.read(ours, 1 << 16).decode()
    assert "owned" in said
    assert "\x1b]0" not in said and "\x07" not in said
