"""Files of word vectors, in the formats that others read and write.

    word2vec, text      a line "n D", then for each word a line: the word and D numbers, separated by spaces
    word2vec, binary    the same first line, then for each word its letters, a space and D float32 (.bin)
    GloVe               as the text format, without the first line

Every line is checked. Sizes in a first line are compared with the size of the file before memory is taken for them.
"""

from __future__ import annotations

import codecs
import io
import math
import os
from collections.abc import Container, Iterator, Sequence
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError, nearest
from unrolled.core.opening import open_regular, shortened
from unrolled.core.outside import write_new

FORMS = ("word2vec", "binary", "glove")
LONGEST = 1 << 24  # bytes of a line
LONGEST_WORD = 10_000  # bytes
MOST = 3e38  # of a float32

Numbers = NDArray[np.float32]
Found = tuple[list[str], Numbers]


def read(path: str | Path, wanted: Container[str] | None = None) -> Found:
    """Words and their vectors [n, D], all or those that are wanted; the first of a word that comes twice."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        first = _line(path, stream, 1)
        head = _sizes(first)
        if str(path).endswith(".bin"):
            if head is None:
                raise DataError(f"{path}: not in the binary format of word2vec: its first line must be two integers")
            return _kept(_binary(path, stream, *head, size - len(first)), wanted, head[1])
        if head is None:
            stream.seek(0)
        return _text(path, stream, head, wanted)


def width(path: str | Path) -> int:
    """How many numbers a vector of a file has."""
    with open_regular(path) as stream:
        first = _line(path, stream, 1)
    head = _sizes(first)
    if head is None and (str(path).endswith(".bin") or len(first.split()) < 2):
        raise DataError(f"{path}: no file of word vectors: a line must be a word and its numbers")
    return len(first.split()) - 1 if head is None else head[1]


def _line(path: str | Path, stream: BufferedReader, number: int) -> bytes:
    """The next line with its end; b"" behind the last."""
    line = stream.readline(LONGEST)
    if len(line) == LONGEST:
        raise DataError(f"{path}, line {number}: longer than {LONGEST:,} bytes, so it is no line of word vectors")
    return line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _sizes(line: bytes) -> tuple[int, int] | None:
    """The two numbers of a first line; None: it is a vector already."""
    words = line.split()
    if len(words) != 2 or not all(word.isdigit() and len(word) < 12 for word in words):
        return None
    return int(words[0]), int(words[1])


def _kept(rows: Iterator[tuple[str, Numbers]], wanted: Container[str] | None, d: int) -> Found:
    found: dict[str, Numbers] = {}
    for word, vector in rows:
        if wanted is None or word in wanted:
            found.setdefault(word, vector)
    return [*found], np.stack([*found.values()]) if found else np.zeros((0, d), np.float32)


def _text(
    path: str | Path, stream: BufferedReader, head: tuple[int, int] | None, wanted: Container[str] | None
) -> Found:
    d, n, number = (head[1] if head else 0), 0, 1 if head else 0
    found: dict[str, Numbers] = {}
    while line := _line(path, stream, number := number + 1):
        if not line.strip():
            continue
        n += 1
        place = f"{path}, line {number}"
        try:
            cells = line.decode("utf-8").rstrip().split(" ")
        except UnicodeDecodeError:
            raise DataError(f"{place}: not UTF-8; a file in the binary format must be called .bin") from None
        d = d or len(cells) - 1
        if d < 1 or len(cells) <= d or (len(cells) > d + 1 and _is_number(cells[-d - 1])):
            raise DataError(f"{place}: found {len(cells) - 1} numbers behind the word, expected {max(d, 1)}")
        word = " ".join(cells[:-d])  # some files have words with spaces
        if (wanted is None or word in wanted) and word not in found:
            found[word] = _numbers(cells[-d:], place)
    if head is not None and n != head[0]:
        raise DataError(f"{path}: its first line promises {head[0]:,} vectors, found {n:,}: the file is not complete")
    if n == 0:
        raise DataError(f"{path}: there are no vectors in it")
    return [*found], np.stack([*found.values()]) if found else np.zeros((0, d), np.float32)


def _is_number(cell: str) -> bool:
    try:
        return "_" not in cell and math.isfinite(float(cell))
    except ValueError:
        return False


def _numbers(cells: Sequence[str], place: str) -> Numbers:
    values = []
    for number, cell in enumerate(cells, 1):
        if not _is_number(cell) or abs(float(cell)) > MOST:
            raise DataError(f"{place}, number {number}: '{shortened(cell, 40)}' is not a finite number")
        values.append(float(cell))
    return np.array(values, np.float32)


def _binary(path: str | Path, stream: BufferedReader, n: int, d: int, size: int) -> Iterator[tuple[str, Numbers]]:
    if d < 1 or n < 1 or n * (4 * d + 2) > size:
        raise DataError(f"{path}: its first line promises {n:,} vectors of {d:,} numbers, more than the file holds")
    for number in range(1, n + 1):
        place, letters = f"{path}, vector {number}", bytearray()
        while (letter := stream.read(1)) not in (b" ", b""):
            if letter != b"\n":
                letters += letter
            if len(letters) > LONGEST_WORD:
                raise DataError(f"{place}: a word of more than {LONGEST_WORD:,} bytes; the file is damaged")
        data = stream.read(4 * d)
        if len(data) < 4 * d:
            raise DataError(f"{place}: the file ends in the middle of it")
        vector = np.frombuffer(data, "<f4").astype(np.float32)
        if not np.isfinite(vector).all():
            raise DataError(f"{place}: holds a number that is not finite; the file is damaged")
        try:
            yield letters.decode("utf-8"), vector
        except UnicodeDecodeError:
            raise DataError(f"{place}: its word is not UTF-8; the file is damaged") from None
    if stream.read(LONGEST_WORD).strip(b"\n"):
        raise DataError(f"{path}: its first line promises {n:,} vectors, and more follows behind them")


def write(path: str | Path, words: Sequence[str], vectors: Numbers, form: str | None = None) -> None:
    """Write a file, by its name or in the format that is asked for."""
    form = form or ("binary" if str(path).endswith(".bin") else "word2vec")
    if form not in FORMS:
        raise UsageError(f"there is no format '{form}' of word vectors; {nearest(form, FORMS)}")
    if (form == "binary") != str(path).endswith(".bin"):
        raise UsageError(f"{path}: files in the binary format, and only these, must be called .bin")
    data, values = io.BytesIO(), np.asarray(vectors, "<f4")
    if form != "glove":
        data.write(f"{len(words)} {values.shape[1]}\n".encode())
    for word, row in zip(words, values):
        data.write(word.encode() + b" ")
        data.write(row.tobytes() if form == "binary" else " ".join(map(str, row)).encode())
        data.write(b"\n")
    write_new(Path(path), data.getvalue())
