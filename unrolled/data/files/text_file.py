"""Plain text files: checked bytes become pieces of text or lines, never the whole file at once.

What is accepted is UTF-8, with or without a byte order mark, plain or packed (.gz, .bz2, .xz), with any line ends,
which become "\\n"; UTF-16 and Windows-1252 where the bytes show it (see encodings), with a note that shows some words;
and any encoding that is given. Anything else is refused in one sentence with its place: a file that is quietly misread
trains a model on garbage.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import itertools
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from unrolled.core.errors import DataError, Misused
from unrolled.core.front import option
from unrolled.core.opening import open_regular
from unrolled.data.files.encodings import NAMES, WESTERN, Words, mark_size, marked, two_bytes_each, why_not_western
from unrolled.data.files.file_form import current_form
from unrolled.data.files.passes import Passes

PIECE = 1 << 20  # characters, about: large enough for fast encoding, small beside any model
LONGEST_LINE = 1 << 26  # characters, which are held at once
LARGEST_WHOLE = 1 << 28  # bytes of a file that cannot be read in pieces
FILES_NOTED = 5
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
        self.form = current_form()
        self._passes = Passes(self.name)
        self._digest: str | None = None

    def tell(self, note: str) -> None:
        """Note how the file is understood, where that is found out and not given."""
        self.notes[f"{self.name}: {note}"] = None
        if self.form.told is not None:
            self.form.told[f"{self.name}: {note}"] = None

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
        """Checked text with the line ends made one; raises at the first byte that is not text."""
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        for text in self._text():
            yield newlines.decode(text)
        if left := newlines.decode("", final=True):
            yield left
        if newlines.newlines not in (None, "\n"):
            self.notes[f"{self.name}: Windows or old Mac line ends were read as plain line ends"] = None

    def _text(self) -> Iterator[str]:
        """Decoded and checked; notes are complete when it ends."""
        encoding, why, done, words = "utf-8", "", 0, Words()
        decoder = codecs.getincrementaldecoder(encoding)()
        for chunk in itertools.chain(self._chunks(), (b"",)):
            if done == 0:
                encoding, why = self._begun(chunk[: 1 << 16])
                decoder = codecs.getincrementaldecoder(encoding)()
            waiting = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                at = done - waiting + error.start
                if why or encoding != "utf-8":
                    raise self._undecoded(at, encoding, error) from None
                encoding, why = self._not_utf8(at, error)  # all text so far is ASCII, which these share
                decoder = codecs.getincrementaldecoder(encoding)()
                text = decoder.decode(error.object, final=not chunk)
            if done == 0 and text.startswith("\ufeff"):
                text = text[1:]
            if (nul := text.find("\0")) >= 0:
                what = "a NUL byte, which is not text; remove it, or export the file again as UTF-8"
                before = len(f"x{text[:nul]}".encode(encoding)) - len("x".encode(encoding))  # without a mark
                before += mark_size(chunk) if done == 0 else 0
                raise DataError(f"{self._place(done - waiting + before, encoding)}: found {what}")
            done += len(chunk)
            if why:
                words.add(text)
            yield text
        if why:
            name = NAMES.get(encoding, encoding)
            other = f"; if they look wrong, name the encoding with {option('encoding')}" if "given" not in why else ""
            self.tell(f"read as {name} ({why}), with words such as {words}{other}")

    def _begun(self, head: bytes) -> tuple[str, str]:
        """The encoding by what is given or by the first bytes, and why where it is not UTF-8."""
        mark, given = marked(head), None if self.form.is_habit else self.form.encoding
        if given is not None and given != "utf-8":
            if mark is not None and not given.startswith(mark[:6]):
                start = f"{self.name}: starts with the byte order mark of {mark.upper()}"
                raise DataError(f"{start}, but {option('encoding', given)} is given; leave it out")
            return given, "the encoding given"
        if mark == "utf-32":
            raise DataError(f"{self.name}: this is UTF-32; read it with {option('encoding', 'utf-32')}")
        if mark == "utf-16":
            return mark, "by the byte order mark at the start"
        if mark == "utf-8":
            self.notes[f"{self.name}: the byte order mark at the start was removed"] = None
        refuse_other_kinds(head, self.name)
        if wide := two_bytes_each(head):
            return wide, "guessed, because every second byte is zero"
        refuse_controls(head, self.name)
        return "utf-8", ""

    def _not_utf8(self, offset: int, error: UnicodeDecodeError) -> tuple[str, str]:
        """The encoding of a text that turns out not to be UTF-8 here, and why it is that one."""
        habit = self.form.encoding if self.form.is_habit else None
        if "unexpected end" in error.reason or self.form.encoding == "utf-8":
            raise self._undecoded(offset, "utf-8", error)
        if habit not in (None, WESTERN):
            return habit, "as the training data was"
        if reason := why_not_western(self._chunks()):
            raise DataError(
                f"{self._place(offset)}: the byte 0x{error.object[error.start]:02X} is not UTF-8, and {reason}"
            )
        return WESTERN, "guessed, because it is not UTF-8 and looks like a Western language so"

    def _undecoded(self, offset: int, encoding: str, error: UnicodeDecodeError) -> DataError:
        place = self._place(offset, encoding)
        if "unexpected end" in error.reason or "truncated" in error.reason:
            ends = "the file ends in the middle of a character; it was cut off, so copy it again"
            return DataError(f"{place}: {ends}, or name its encoding with {option('encoding')}")
        found = f"the byte 0x{error.object[error.start]:02X} is not {NAMES.get(encoding, encoding)}"
        return DataError(f"{place}: {found}; fix it, or name the right encoding with {option('encoding')}")

    def _place(self, offset: int, encoding: str = "utf-8") -> str:
        """The line and column of a byte, counted by reading the file again."""
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        line, column, rest = 1, 1, offset
        for chunk in self._chunks():
            text = newlines.decode(decoder.decode(chunk[:rest], final=rest <= len(chunk)), final=rest <= len(chunk))
            if rest == offset:
                text = text.removeprefix("\ufeff")
            ends = text.count("\n")
            line, column = line + ends, len(text) - (text.rfind("\n") + 1) + (1 if ends else column)
            rest -= len(chunk)
            if rest <= 0:
                break
        return f"{self.name}, line {line}, column {column}"


def notes_of(files: Iterable[TextFile]) -> list[str]:
    """The notes of many files; of most of them only how many there are."""
    noted = [list(file.notes) for file in files if file.notes]
    more = len(noted) - FILES_NOTED
    return [note for notes in noted[:FILES_NOTED] for note in notes] + (
        [f"there are similar notes on {more} more files"] if more > 0 else []
    )


def refuse_other_kinds(head: bytes, name: str) -> None:
    """Refuse what the first bytes show to be a file of another kind."""
    for magic, (kind, advice) in _MAGIC.items():
        if head.startswith(magic):
            advice = advice or "check the suffix of its name, or give text in UTF-8"
            raise DataError(f"{name}: this is a {kind} file, not text; {advice}")


def refuse_controls(head: bytes, name: str) -> None:
    """Refuse what the first bytes show to be no text."""
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
