"""Plain text: what is no text, what is not UTF-8, what is too little."""

from __future__ import annotations

import bz2
import gzip
import zlib
from typing import Any

from tests.faults.corpus.case import Content, bad, good

LINES = "The quick brown fox jumps over the lazy dog.\n" * 20
NAMES = "".join(f"name{i}\n" for i in range(40))


def of_text(name: str, data: Content, *says: str, words: str = "data a.txt") -> Any:
    return bad(name, words, {"a.txt": data}, "a.txt", *says)


def reads(name: str, data: Content, *says: str, words: str = "next-token a.txt", **facts: Any) -> Any:
    return good(name, words, {"a.txt": data}, *says, **facts)


GZIP_OF_ZEROS = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB = b"".join(GZIP_OF_ZEROS.compress(b"a" * 1_000_000) for _ in range(20)) + GZIP_OF_ZEROS.flush()

CASES = [
    of_text("empty text", b"", "empty"),
    of_text("text of a byte order mark alone", b"\xef\xbb\xbf", "empty"),
    of_text("text of blank lines alone", "\n" * 400, "blank"),
    of_text("text of spaces alone", " \t \n" * 100, "blank"),
    of_text("lines of blank lines alone", " \n\n\n", "empty", words="data a.txt --examples lines"),
    of_text("UTF-16 with a NUL", (LINES + "ab\0cd").encode("utf-16"), "line 21, column 3", "NUL"),
    of_text("UTF-16 with half a character", LINES.encode("utf-16") + b"x", "line 21, column 1", "cut off"),
    of_text("UTF-16 with half a surrogate pair", LINES.encode("utf-16-le") + b"\0\xd8a\0", "line 21", "UTF-16"),
    of_text("UTF-32", LINES.encode("utf-32"), "UTF-32", "--encoding utf-32"),
    of_text("Cyrillic of one byte", ("Привет, мир\n" * 9).encode("cp1251"), "line 1, column 1", "--encoding"),
    of_text("Polish of one byte", ("Zażółć gęślą jaźń, byłem\n" * 9).encode("cp1250"), "line 1", "--encoding"),
    of_text("Japanese", ("日本語の文章です。\n" * 9).encode("shift_jis"), "line 1, column 1", "--encoding"),
    of_text("old Mac", ("Mädchen, Straße, déjà vu\n" * 9).encode("mac_roman"), "line 1", "--encoding"),
    of_text("old DOS", ("Mädchen, Straße, déjà vu\n" * 9).encode("cp437"), "line 1", "--encoding"),
    of_text(
        "UTF-8 with a line of Latin-1",
        (LINES + "naïve café\n" * 9).encode() + b"caf\xe9 x\n",
        "line 30, column 4",
        "0xE9",
        "mixes",
    ),
    of_text(
        "text that is not in the encoding given",
        b"caf\xe9 x\n" * 40,
        "line 1, column 4",
        "0xE9",
        "utf-8",
        words="data a.txt --encoding utf8",
    ),
    of_text(
        "a mark of another encoding than that given",
        b"\xef\xbb\xbf" + LINES.encode(),
        "UTF-8",
        "cp1251",
        words="data a.txt --encoding cp1251",
    ),
    of_text("NUL in text", LINES + "ab\0cd", "line 21, column 3", "NUL"),
    of_text("NUL in Latin-1", (LINES + "café x\n").encode("latin-1") + b"ab\0", "line 22, column 3", "NUL"),
    of_text("PNG called text", b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
    of_text("binary called text", bytes(range(1, 32)) * 40, "binary"),
    of_text("text cut inside a character", LINES.encode() + "é".encode()[:1], "line 21, column 1", "cut off"),
    of_text("surrogates in UTF-8", LINES.encode() + b"ab\xed\xa0\x80", "line 21, column 3", "0xED"),
    of_text("overlong UTF-8", LINES.encode() + b"\xc0\xaf", "line 21, column 1", "0xC0"),
    of_text("text of one line", b"hello\n", "too small", "6 characters"),
    of_text("one example in lines", "a single line" * 10, "one example", words="data a.txt --examples lines"),
    of_text("gzip called text", gzip.compress(LINES.encode()), "gzip", ".gz"),
    of_text("zip called text", b"PK\x03\x04" + bytes(200), "zip", "office"),
    of_text("PDF called text", b"%PDF-1.7\n1 0 obj\n" + b"text " * 99, "PDF"),
    of_text("RTF called text", r"{\rtf1\ansi\deff0 {\fonttbl {\f0 Times;}} Hello \b bold\b0 }" * 9, "RTF"),
    of_text("old Word file called text", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "office"),
    of_text("pickle called text", b"\x80\x04\x95" + bytes(8) + b"\x8c\x05hello\x94." * 40, "pickle"),
    of_text("wav called text", b"RIFF\x24\x08\0\0WAVEfmt " + bytes(2000), "wav"),
    of_text("control characters", b"\x01\x02\x03\x04" * 100, "binary"),
    of_text(
        "too long a line",
        NAMES + "x" * 300,
        "line 41",
        "300",
        "max_length",
        words="data a.txt --examples lines --max-length 20",
    ),
    bad("cut gzip", "data a.txt.gz", {"a.txt.gz": gzip.compress(LINES.encode())[:-20]}, "a.txt.gz", "gzip", "damaged"),
    bad(
        "gzip with rubbish behind",
        "data a.txt.gz",
        {"a.txt.gz": gzip.compress(LINES.encode()) + b"rubbish" * 9},
        "a.txt.gz",
        "gzip",
        "damaged",
    ),
    bad("text called gzip", "data a.txt.gz", {"a.txt.gz": LINES}, "a.txt.gz", "gzip", "damaged"),
    bad("empty gzip", "data a.txt.gz", {"a.txt.gz": gzip.compress(b"")}, "a.txt.gz", "empty"),
    bad("flipped bzip2", "data a.txt.bz2", {"a.txt.bz2": bz2.compress(LINES.encode())[:-9]}, "a.txt.bz2", "damaged"),
    bad("empty folder", "data texts", {"texts": lambda path: path.mkdir()}, "texts", ".txt"),
    bad("folder of other files", "data texts", {f"texts/{c}.csv": f"{c},x\n" for c in "ab"}, "texts", "a.csv, b.csv"),
    bad("folder of empty texts", "next-token texts", {"texts/a.txt": "", "texts/b.txt": ""}, "texts", "empty"),
    bad("folder of empty classes", "data texts", {"texts/a.txt": "", "texts/b.txt": ""}, "texts", "no example"),
    bad("folder with one bad text", "data texts", {"texts/a.txt": LINES, "texts/b.txt": b"some a\0c"}, "b.txt, line 1"),
    reads("UTF-16", (LINES + "naïve café\n").encode("utf-16"), "UTF-16", "naïve, café", characters=911),
    reads("UTF-16 big endian", b"\xfe\xff" + LINES.encode("utf-16-be"), "UTF-16", "The, quick", characters=900),
    reads("UTF-16 without a mark", LINES.encode("utf-16-le"), "UTF-16", "every second byte", characters=900),
    reads("UTF-16 big endian without a mark", LINES.encode("utf-16-be"), "UTF-16", characters=900),
    reads("Latin-1", (LINES + "naïve café").encode("latin-1"), "Windows-1252", "naïve, café", characters=910),
    reads("Windows quotes", LINES.encode() + b"he said \x93yes\x94", "Windows-1252", characters=913),
    reads(
        "Cyrillic, and that",
        ("Привет, мир\n" * 40).encode("cp1251"),
        "cp1251",
        "Привет, мир",
        characters=480,
        words="next-token a.txt encoding=windows-1251",
    ),
    reads("UTF-32, and that", LINES.encode("utf-32"), characters=900, words="next-token a.txt encoding=utf-32"),
    reads("byte order mark", "\ufeff" + LINES, "byte order mark", characters=900),
    reads("Windows line ends", LINES.replace("\n", "\r\n"), "line ends", characters=900),
    reads("old Mac line ends", LINES.replace("\n", "\r"), "line ends", characters=900),
    reads("mixed line ends", "a\r\nb\rc\n" * 50, "line ends", characters=300),
    reads("no line end at the end", LINES + "end", characters=903),
    reads("emoji and combining marks", "naïve 👩‍👩‍👧 e\u0301 \u2028 \u0085 x\n" * 40, vocabulary=18),
    reads("one character only", "a" * 1000, vocabulary=5),
    reads("line of 2 MB", "word " * 400_000, words="data a.txt", characters=2_000_000),
    reads(
        "line separators are not line ends",
        "".join(f"a{i}\u2028b\x0bc\x0cd\u0085f\n" for i in range(40)) + "\x1c",
        rows=40,
        words="next-token a.txt examples=lines",
    ),
    reads(
        "blank lines between",
        "".join(f"one {i}\n\n\n" for i in range(40)),
        "80 blank lines",
        rows=40,
        words="next-token a.txt examples=lines",
    ),
    good("packed text", "next-token a.txt.GZ", {"a.txt.GZ": gzip.compress(LINES.encode())}, characters=900),
    good("20 MB in 20 kB", "data a.txt.gz", {"a.txt.gz": BOMB}, characters=20_000_000),
    good(
        "folder with other files",
        "next-token texts",
        {"texts/a.txt": LINES, "texts/b.csv": "x", "texts/.c": b"\0"},
        "1 file",
        characters=900,
    ),
]
