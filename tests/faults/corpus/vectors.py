"""Files of word vectors, and texts to learn them from."""

from __future__ import annotations

import dataclasses
import os
import struct
from typing import Any

from tests.faults.corpus.case import Content, asks, bad, good

LINES = "".join(f"w{i} {i}.5 {i} 1\n" for i in range(20))
TEXT = "the cat sat on the mat\n" * 30


def vector(word: bytes, *numbers: float) -> bytes:
    return word + b" " + struct.pack(f"<{len(numbers)}f", *numbers) + b"\n"


BINARY = b"2 3\n" + vector(b"ab", 1, 2, 3) + vector(b"cd", 4, 5, 6)


def refused(name: str, data: Content, *says: str, file: str = "a.txt") -> Any:
    return bad(f"vectors: {name}", f"vectors {file} -o b.txt", {file: data}, file, *says)


def read(name: str, data: Content, *says: str, file: str = "a.txt", word: str = "w1") -> Any:
    return good(f"vectors: {name}", f"neighbours {file} {word} --top 1", {file: data}, *says)


FILES = [
    refused("empty", "", "no vectors"),
    refused("its first line alone", "2 3\n", "promises 2", "found 0"),
    refused("fewer than promised", "99 3\n" + LINES, "promises 99", "found 20"),
    refused("a first line of 10^11", "99999999999 99999999999\n" + LINES, "line 2", "found 3 numbers"),
    refused("a number missing", LINES + "w 1 2\n", "line 21", "found 2 numbers", "expected 3"),
    refused("a number too many", LINES + "w 1 2 3 4\n", "line 21", "found 4 numbers"),
    refused("a word behind blank lines", "\n\n" + LINES + "\n\nw 1 x 3\n", "line 25", "number 2", "'x'"),
    refused("NaN", LINES + "w 1 2 nan\n", "line 21, number 3", "nan"),
    refused("infinity", LINES + "w inf 2 3\n", "line 21, number 1", "inf"),
    refused("a number beyond single precision", LINES + "w 1e39 2 3\n", "line 21, number 1", "1e39"),
    refused("a number with an underscore", LINES + "w 1_0 2 3\n", "line 21, number 1", "1_0"),
    refused("prose", "the cat sat\non the mat\n", "line 1", "'cat'"),
    refused("UTF-16", LINES.encode("utf-16"), "line 1", "UTF-8"),
    refused("Latin-1", LINES.encode() + b"caf\xe9 1 2 3\n", "line 21", "UTF-8"),
    refused("tabs", LINES.replace(" ", "\t"), "line 1", "0 numbers"),
    refused("a table", "word,x,y\na,1,2\n", "line 1", file="a.csv"),
    refused("the binary format called .txt", BINARY, "line 2", ".bin"),
    refused("a line of 18 MB", "w " + "1 " * 9_000_000, "line 1", "longer"),
    refused("a pipe", os.mkfifo, "pipe"),
    refused("a folder", os.mkdir, "folder"),
    refused("binary, cut", BINARY[:-6], "promises 2 vectors", "more than the file holds", file="a.bin"),
    refused("binary, lines of text", LINES, "first line", file="a.bin"),
    refused("binary, of 10^11 words", b"99999999999 300\n" + BINARY, "more than the file holds", file="a.bin"),
    refused("binary, of no word", b"0 3\n", "promises 0", file="a.bin"),
    refused("binary, NaN", b"1 1\n" + vector(b"ab", float("nan")), "vector 1", "not finite", file="a.bin"),
    refused("binary, a word without end", b"1 1\n" + b"a" * 20_000, "vector 1", "10,000", file="a.bin"),
    refused("binary, a word of other bytes", b"1 1\n" + vector(b"\xff\xfe", 1), "vector 1", "UTF-8", file="a.bin"),
    refused("binary, more than promised", BINARY + vector(b"ef", 7, 8, 9), "promises 2", "follows", file="a.bin"),
    read("a byte order mark", "\ufeff20 3\n" + LINES, "w2"),
    read("a byte order mark before a vector", "\ufeff" + LINES, "w2", word="w0"),
    read("line ends of Windows", LINES.replace("\n", "\r\n"), "w2"),
    read("a word that comes twice", LINES + "w1 9 9 9\n", "w2"),
    read("a word with a space", LINES + "new york 1 2 3\n", "w2"),
    read("an escape in a word", LINES + "w\x1b]0;own\x07 1.5 1 1.1\n"),
    asks("vectors: an unknown word", "neighbours a.txt w99", {"a.txt": LINES}, "w99", "w9"),
]
LEARNED = [
    bad("words in contexts: empty", "word-vectors a.txt", {"a.txt": ""}, "a.txt", "empty"),
]
SHORT = ("vectors: NaN", "vectors: a pipe", "vectors: an escape in a word", "vectors: binary, cut")
CASES = [*(dataclasses.replace(case, long=case.name not in SHORT) for case in FILES), *LEARNED]
