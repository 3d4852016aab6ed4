"""Plain text files: checked bytes become pieces of text or lines, never the whole file at once.

What is accepted is UTF-8, with or without a byte order mark, plain or packed (.gz, .bz2, .xz), with any line ends,
which become "\\n". Anything else is refused in one sentence with its place: a file that is quietly misread trains a
model on garbage.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from unrolled.core.errors import DataError, Misused
from unrolled.core.opening import open_regular
from unrolled.data.files.passes import Passes

PIECE = 1 << 20  # characters, about: large enough for fast encoding, small beside any model
LONGEST_LINE = 1 << 26  # characters, which are held at once
LARGEST_WHOLE = 1 << 28  # bytes of a file that cannot be read in pieces
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

OFFICE, PACKED_FILE, ALONE = "save it as .csv or as text in UTF-8", "unpack it, or rename it to end in {}", ""
_MAGIC = {
    b"\x1f\x8b": ("gzip", PACKED_FILE.format(".gz")), b"BZh": ("bzip2", PACKED_FILE.format(".bz2")),
    b"\xfd7zXZ": ("xz", PACKED_FILE.format(".xz")), b"\x28\xb5\x2f\xfd": ("zstd", "unpack it"),
    b"PK\x03\x04": ("zip or office", OFFICE), b"\xd0\xcf\x11\xe0": ("pre-2007 office", OFFICE),
    b"%PDF": ("PDF", OFFICE),
    b"{\\rtf": ("rich text (RTF)", OFFICE), b"PAR1": ("parquet", "rename it to end in .parquet"),
    b"\x93NUMPY": ("numpy", "save inputs and targets by name in one .npz file"), b"\x80\x02": ("pickle", ALONE),
    b"\x80\x03": ("pickle", ALONE), b"\x80\x04": ("pickle", ALONE), b"\x80\x05": ("pickle", ALONE),
    b"\x89PNG": ("PNG image", ALONE), b"\xff\xd8\xff": ("JPEG image", ALONE), b"GIF8": ("GIF image", ALONE),
    b"RIFF": ("wav, avi or webp", ALONE), b"OggS": ("ogg", ALONE), b"fLaC": ("flac", ALONE), b"MThd": ("MIDI", ALONE),
    b"\x89HDF": ("HDF5 or MATLAB 7.3", ALONE), b"MATLAB 5.0": ("MATLAB", ALONE), b"\x7fELF": ("program", ALONE),
    b"SQLite format": ("SQLite", ALONE), b"ARROW1": ("arrow", ALONE),
}  # fmt: skip
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}  # fmt: skip


PACKED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def named_path(source: str | os.PathLike[str]) -> Path:
    """The path that a user names; what cannot be one is refused."""
    text = os.fspath(source)
    if not text:
        raise Misused("the path is empty: name a file, a folder or builtin:NAME")
    if ADDRESS.match(text):
        raise Misused(f"{text}: URLs are not opened; download the file and give its path")
    try:
        os.stat(text)
    except (FileNotFoundError, NotADirectoryError):  # told by whoever opens it, who may look for other names
        pass
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{text}: cannot be opened ({reason}); check the path and its permissions") from None
    return Path(source)


def unpacked(name: str) -> str:
    """A file's name without the ending of its compression.

    >>> unpacked("poems.txt.bz2"), unpacked("poems.txt")
    ('poems.txt', 'poems.txt')
    """
    for ending in PACKED:
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


class TextFile:
    """One file of text; reading it fills `notes` with what was changed on the way (byte order mark, line ends).

    It may be read several times, and every pass must meet the same bytes: a file that changes meanwhile is refused.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = str(path)
        self.notes: dict[str, None] = {}  # ordered and without repeats: a file is read more than once
        self._passes = Passes(self.name)
        self._digest: str | None = None

    def require(self) -> None:
        """There is such a file, and it may be read."""
        open_regular(self.path).close()

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes of the file, unpacked."""
        unpack = PACKED.get(self.path.suffix.lower())
        with open_regular(self.path) as handle, unpack(handle, "rb") if unpack else nullcontext(handle) as stream:
            yield stream

    def whole(self, limit: int = LARGEST_WHOLE) -> bytes:
        """All bytes, at most so many."""
        held, size = [], 0
        for chunk in self._chunks():
            held.append(chunk)
            size += len(chunk)
            if size > limit:
                raise DataError(
                    f"{self.name}: has more than {limit:,} bytes, too many to load at once; split it into several files"
                )
        return b"".join(held)

    def text(self, limit: int = LARGEST_WHOLE) -> str:
        """All the text, at most so many characters."""
        held, size = [], 0
        for piece in self.pieces():
            held.append(piece)
            size += len(piece)
            if size > limit:
                raise DataError(
                    f"{self.name}: has more than {limit:,} characters, too many to load at once; split it into several "
                    "files"
                )
        return "".join(held)

    def state(self) -> tuple[int, ...]:
        """What changes when the file is written to or replaced, for a file that is not read here."""
        with self.open() as file:
            found = os.fstat(file.fileno())
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def digest(self) -> str:
        """A fingerprint of the bytes that were read, in whichever pass; without one so far, they are read now."""
        if self._digest is None:
            for _ in self._chunks():
                pass
        assert self._digest is not None
        return self._digest

    def pieces(self) -> Iterator[str]:
        """The text in pieces of about a megabyte that end where a line ends and text follows, if there is such a place.

        So cut, a word or a run of line ends is in one piece and is encoded as it would be in the whole text.
        """
        held = ""
        for text in self._decoded():
            held += text
            if len(held) >= PIECE:
                cut = _cut(held)
                yield held[:cut]
                held = held[cut:]
        if held:
            yield held

    def lines(self) -> Iterator[str]:
        """The lines without their ends; only "\\n", "\\r\\n" and "\\r" end a line."""
        held: list[str] = []  # parts of a line that goes on, joined once
        size, ended = 0, 0
        for text in self._decoded():
            first, *rest = text.split("\n")
            held.append(first)
            size += len(first)
            if rest:
                yield "".join(held)
                yield from rest[:-1]
                held, size, ended = [rest[-1]], len(rest[-1]), ended + len(rest)
            if size > LONGEST_LINE:
                raise DataError(
                    f"{self.name}, line {ended + 1}: has more than {LONGEST_LINE:,} characters; split it into lines"
                )
        last = "".join(held)
        if last:
            yield last

    def _chunks(self) -> Iterator[bytes]:
        digest, number = hashlib.sha256(), 0
        with self.open() as file:
            try:
                while chunk := file.read(PIECE):
                    digest.update(chunk)
                    self._passes.met(number, digest.digest())  # of all bytes up to here
                    number += 1
                    yield chunk
            except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
                raise self._damaged(error) from None
            except OSError as error:
                if error.errno is None:  # what bz2 says of data that is none
                    raise self._damaged(error) from None
                raise DataError(f"{self.name}: cannot be read ({error.strerror or error})") from None
        self._passes.ended(number)
        self._digest = digest.hexdigest()

    def _damaged(self, error: Exception) -> DataError:
        kind = {".gz": "gzip", ".bz2": "bzip2"}.get(self.path.suffix.lower(), "xz")
        return DataError(f"{self.name}: the {kind} data is damaged ({error}); compress the file again")

    def _decoded(self) -> Iterator[str]:
        """Checked text with the line ends made one; raises at the first byte that is not UTF-8 text."""
        utf8 = codecs.getincrementaldecoder("utf-8")()
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        done = 0
        for chunk in self._chunks():
            if done == 0:
                sniff(chunk[: 1 << 16], self.name)
                if chunk.startswith(codecs.BOM_UTF8):
                    self.notes[f"{self.name}: the byte order mark at the start was removed"] = None
            if (at := chunk.find(0)) >= 0:
                what = "a NUL byte, which is not text; remove it, or export the file again as UTF-8"
                raise DataError(f"{self._place(done + at)}: found {what}")
            waiting = len(utf8.getstate()[0])
            try:
                text = utf8.decode(chunk)
            except UnicodeDecodeError as error:
                raise self._not_utf8(done - waiting + error.start, error) from None
            text = text.removeprefix("\ufeff") if done == 0 else text
            done += len(chunk)
            yield newlines.decode(text)
        try:
            utf8.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise self._not_utf8(done - len(utf8.getstate()[0]), error) from None
        if left := newlines.decode("", final=True):
            yield left
        if newlines.newlines not in (None, "\n"):
            self.notes[f"{self.name}: Windows or old Mac line ends were read as plain line ends"] = None

    def _place(self, offset: int) -> str:
        """The line and column of a byte, counted by reading the file again."""
        before, line, rest = b"", 1, offset
        for chunk in self._chunks():
            part, rest = before + chunk[:rest], rest - len(chunk)
            whole_end = len(part) - (rest > 0)  # a "\r" at the very end may be half of a "\r\n"
            last = max(part.rfind(b"\n"), part.rfind(b"\r", 0, whole_end))
            whole = part[: last + 1]
            line += whole.count(b"\n") + whole.count(b"\r") - whole.count(b"\r\n")
            before = part[last + 1 :]
            if rest <= 0:
                break
        column = len(before.decode("utf-8", "replace").removeprefix("\ufeff")) + 1
        return f"{self.name}, line {line}, column {column}"

    def _not_utf8(self, offset: int, error: UnicodeDecodeError) -> DataError:
        place = self._place(offset)
        if "unexpected end" in error.reason:
            return DataError(f"{place}: the file ends in the middle of a character; it was cut off, so copy it again")
        return DataError(
            f"{place}: the byte 0x{error.object[error.start]:02X} is not UTF-8; the file is probably Latin-1 or "
            "Windows-1252; convert it, for instance with: iconv -f WINDOWS-1252 -t UTF-8"
        )


def sniff(head: bytes, name: str) -> None:
    """Refuse what the first bytes show to be something other than UTF-8 text."""
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            raise DataError(f"{name}: this is {encoding}, not UTF-8; convert it with: iconv -f {encoding} -t UTF-8")
    for magic, (kind, advice) in _MAGIC.items():
        if head.startswith(magic):
            advice = advice or "check the suffix of its name, or give text in UTF-8"
            raise DataError(f"{name}: this is a {kind} file, not text; {advice}")
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) > 0.4 * len(head) / 2 and min(even, odd) < 0.1 * max(even, odd):
        order = "UTF-16BE" if even > odd else "UTF-16LE"
        raise DataError(
            f"{name}: this looks like UTF-16 without a mark at the start; convert it with: iconv -f {order} -t UTF-8"
        )
    controls = sum(head.count(value) for value in range(32) if value not in b"\t\n\r\f\v\b\x1b")
    if controls > max(8, 0.05 * len(head)):
        raise DataError(f"{name}: this is binary data ({controls} control bytes at the start), not text")


def _cut(text: str) -> int:
    """Where to end a piece: after the last line end that text follows, else before the last space, else at the end."""
    cut = text.rfind("\n", 0, len(text) - 1)
    while cut > 0 and text[cut + 1].isspace():
        cut = text.rfind("\n", 0, cut)
    if cut > len(text) // 2:
        return cut + 1
    space = text.rfind(" ", 0, len(text) - 1)
    return space if space > len(text) // 2 else len(text)
