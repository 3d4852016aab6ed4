"""Which encoding the bytes of a text are in, where they show it: UTF-8, UTF-16, Windows-1252.

Bytes do not show which of the other single-byte encodings they are in, so that is asked for. What is taken for
Windows-1252 must look like a Western language in it:

    a symbol between two letters           by³em     Polish in Windows-1250
    a capital behind a small letter        MŠdchen   German of an old Mac
    three letters outside ASCII in a row   Ïðèâåò    Cyrillic, Greek, Chinese, Japanese
    letters of no single alphabet          pøítì     Czech in Windows-1250
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from unrolled.core.front import option

WESTERN = "cp1252"
NAMES = {"cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "utf-16": "UTF-16", "utf-8": "UTF-8"}
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
         codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
NOT_ASCII = re.compile(rb"[\x80-\xff]+")
LIKE_UTF8 = re.compile(rb"[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}")
ALPHABETS = (
    "äöüßéèà", "àâæçéèêëîïôœùûüÿ", "áéíñóúüïç", "ãáàâçéêíóôõúü", "àèéìíîòóùú", "æøåéèêóòôäöü", "åäöéàüšž",
    "áðéíóúýþæöø", "ëïéèöüçáíóúêâ", "àçèéíïòóúü", "äöõüšž", "áéíóúàèìòù", "âêîôûŵŷáéïö",
)  # fmt: skip
INSIDE = "’‘´·–—…\u00ad\u00a0"  # signs that do stand between letters
NO_LETTERS = "ªºƒˆ"
HIGH = re.compile(r"[^\x00-\x7f]+")
LOOKED_AT = 100_000  # runs of characters outside ASCII
MIXED = 0.1  # share of them that is UTF-8, above which encodings are mixed
ODD, STRANGE = 0.01, 0.1  # shares of them that may be odd, and of letters that may be of other alphabets
LONGEST, SHOWN = 20, 3  # letters of a word, and words, that a note shows


def marked(head: bytes) -> str | None:
    """The encoding that a mark at the start names; None: there is none."""
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), None)


def mark_size(head: bytes) -> int:
    """How many bytes a mark at the start has."""
    return next((len(mark) for mark in MARKS if head.startswith(mark)), 0)


def two_bytes_each(head: bytes) -> str | None:
    """UTF-16 without a mark: of most pairs of bytes the same half is zero."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) > max(2, 0.4 * len(head) / 2) and min(even, odd) < 0.1 * max(even, odd):
        return "utf-16-be" if even > odd else "utf-16-le"
    return None


def why_not_western(chunks: Iterable[bytes]) -> str | None:
    """Why bytes that are not UTF-8 are not read as Windows-1252, and what to do; None: they look like it."""
    asked = f"name the encoding with {option('encoding')}, such as cp1250, cp1251 or mac_roman (latin-1 takes any byte)"
    mixes = f"other bytes of the file are, so it mixes encodings; fix this place, or {asked}"
    high = odd = runs = like = 0
    letters: Counter[str] = Counter()
    before = b""
    for chunk in chunks:
        chunk, before = before + chunk, chunk[-3:]  # no character is cut
        like, runs = like + len(LIKE_UTF8.findall(chunk)), runs + len(NOT_ASCII.findall(chunk))
        try:
            text = chunk.decode(WESTERN)
        except UnicodeDecodeError as error:
            return mixes if like > MIXED * runs else f"Windows-1252 has no byte 0x{chunk[error.start]:02X}; {asked}"
        for found in HIGH.finditer(text):
            if high > LOOKED_AT:
                break
            high += len(found[0])
            odd += _odd(text, found.start(), found.end())
            letters.update(each for each in found[0].lower() if _is_letter(each))
    strange = letters.total() - max(sum(letters[each] for each in alphabet) for alphabet in ALPHABETS)
    if like > MIXED * runs:
        return mixes
    if odd > ODD * high or strange > max(2, STRANGE * letters.total()):
        return f"the file does not look like a Western language in Windows-1252; {asked}"
    return mixes if like else None


def _is_letter(sign: str) -> bool:
    return sign.isalpha() and sign not in NO_LETTERS


def _odd(text: str, start: int, end: int) -> int:
    """How many characters of a run are not where a Western language has them."""
    odd, row = 0, 0
    for at in range(start, end):
        before, sign, after = text[at - 1 : at], text[at], text[at + 1 : at + 2]
        row = row + 1 if _is_letter(sign) else 0
        if _is_letter(sign):
            odd += row > 2 or (sign.isupper() and before.islower())
        else:
            odd += before.isalpha() and after.isalpha() and sign not in INSIDE
    return odd


class Words:
    """The first words outside ASCII of a text that comes in pieces, otherwise its first words."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._plain: list[str] = []

    def __str__(self) -> str:
        return ", ".join(list(self._found) or self._plain) or "no words"

    def add(self, text: str) -> None:
        if not self._plain:
            self._plain = [word[:LONGEST] for word in re.findall(r"[^\W\d_]{2,100}", text[:10_000])[:SHOWN]]
        if len(self._found) < SHOWN:
            for word in _words(text):
                self._found[word] = None
                if len(self._found) == SHOWN:
                    return


def _words(text: str) -> Iterator[str]:
    end = 0
    for found in HIGH.finditer(text):
        for at in range(found.start(), found.end()):
            if at >= end and _is_letter(text[at]):
                start, end = at, at + 1
                while start > 0 and text[start - 1].isalpha() and end - start < LONGEST:
                    start -= 1
                while end < len(text) and text[end].isalpha() and end - start < LONGEST:
                    end += 1
                yield text[start:end]
