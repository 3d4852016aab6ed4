"""Standard input, output and error of a command: the one door between the program and a terminal, pipe or file.

Whatever is printed passes `clean`, so that text from data cannot steer a terminal. Only what is asked for letter by
letter (generated texts, predicted lines) is written as it is, by `write_exact`, and only where no terminal shows it.
A full disk is a sentence and exit 5, a reader that has gone (`| head`) a quiet end.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NoReturn, TextIO, cast

from unrolled.core.errors import CannotWrite, DataError
from unrolled.core.opening import json_text
from unrolled.pictures.letters import UNSAFE, clean


class Exact:
    """A stream that takes text as it is; when it can be written to no longer, that is reported once."""

    def __init__(self, to: TextIO, report: Callable[[OSError], None]) -> None:
        self.to, self.report = to, report

    def _failed(self, error: OSError) -> None:
        with suppress(OSError, ValueError):  # what is left in the buffer goes nowhere, so that it does not fail again
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.to.fileno())
            os.close(nowhere)
        self.report(error)

    def write(self, text: str) -> int:
        try:
            return self.to.write(text)
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        try:
            self.to.flush()
        except OSError as error:
            self._failed(error)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # encoding, isatty, fileno, ...
        return getattr(self.to, name)


class Safe(Exact):
    """The same for people: control letters of any text become visible. What rich draws is cleaned by its console."""

    def __init__(self, exact: Exact) -> None:
        super().__init__(exact.to, exact.report)
        self.rich_proxied_file = exact

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # typer asks by this which kind of stream it has
            raise TypeError(f"a stream of text takes no {type(text).__name__}")
        super().write(clean(text))
        return len(text)


class Lines:
    """Standard input, line by line as it comes; a line that is not text is reported by its number."""

    def __init__(self, source: io.TextIOWrapper) -> None:
        self.source = source

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(cast(BinaryIO, self.source.buffer), 1):
            try:
                text = line.decode(self.source.encoding)
            except UnicodeDecodeError as error:
                place = f"standard input, line {number}, byte {error.start + 1}"
                raise DataError(f"{place}: not {self.source.encoding} text (found {line[error.start]:#04x})") from None
            yield text.replace("\r\n", "\n")

    def read(self) -> str:
        return "".join(self)

    def __getattr__(self, name: str) -> Any:  # encoding, isatty, fileno, readline, ...
        return getattr(self.source, name)


def write_exact(text: str) -> None:
    """Text as it is to a file or a pipe; to a terminal without what could steer it."""
    out = sys.stdout
    exact = out.rich_proxied_file if isinstance(out, Safe) and not out.isatty() else out
    exact.write(text)


def json_words(value: Any, indent: int | None = None, encoding: str | None = None) -> str:
    """JSON that every terminal can show and standard output (or an encoding) can hold: other letters are escaped."""
    text = json_text(value, indent, encoding or sys.stdout.encoding or "utf-8")
    return UNSAFE.sub(lambda found: "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1], text)


@contextmanager
def guarded() -> Iterator[None]:
    """The standard streams of a command, until it ends."""
    before = sys.stdin, sys.stdout, sys.stderr
    _open_closed()
    ascii_only = codecs.lookup(sys.stdin.encoding or "utf-8").name == "ascii"
    _reconfigure(sys.stdin, errors="strict", **({"encoding": "utf-8"} if ascii_only else {}))
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin = cast(TextIO, Lines(sys.stdin))
    _reconfigure(sys.stdout, errors="backslashreplace")
    _reconfigure(sys.stderr, errors="backslashreplace")
    sys.stdout = cast(TextIO, Safe(Exact(sys.stdout, _no_output)))
    sys.stderr = cast(TextIO, Safe(Exact(sys.stderr, _no_message)))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _open_closed() -> None:
    """Streams that the caller closed (`>&-`) lead nowhere; otherwise the next file that is opened would be one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _reconfigure(stream: TextIO, **settings: str) -> None:
    if isinstance(stream, io.TextIOWrapper):  # a test may have put another in its place
        stream.reconfigure(**settings)  # type: ignore[arg-type]


def _no_output(error: OSError) -> NoReturn:
    """The results could not be written: the reader has gone, which ends us quietly, or the disk is full."""
    if isinstance(error, BrokenPipeError):
        raise SystemExit(0)
    raise CannotWrite(f"standard output cannot be written ({error.strerror or error}): the output is incomplete")


def _no_message(_error: OSError) -> None:
    """Messages that nobody can read stop no work."""
