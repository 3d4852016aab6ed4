"""Plain text as documents of sentences, cut into rows: what models are pre-trained on that read whole rows.

    document    what stands between blank lines, or a file; a row of a table, a line where lines are examples
    sentence    up to a full stop, question or exclamation mark before white space
    row         sentences of one document after each other, as many as fit; one that does not fit alone is cut

Documents, not rows, are split between training, validation and test, equal ones to one side.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.core.tokens import CLASS, MASK, SEPARATOR, UNKNOWN
from unrolled.data.codecs.text import Codec, Ids
from unrolled.data.config import DataConfig
from unrolled.data.examples import INPUT, ROWS, Examples, lengths_of
from unrolled.data.files.passes import Steady
from unrolled.data.given_splits import PARTS
from unrolled.data.labelled import Labelled
from unrolled.data.labelled_prepare import spaced
from unrolled.data.prepared import Prepared
from unrolled.data.sides import scan_examples, sides
from unrolled.data.sources.split_text import open_text
from unrolled.data.sources.text import TextSource
from unrolled.data.storage.growing import Growing

ASKED = (MASK, CLASS, SEPARATOR)  # special tokens that the codec is asked for
DOCUMENT = "document"  # a column: the number of the document that a row is of
CUTS = "cuts"  # a field: where in a row sentences begin, but for the first
BLANK = re.compile(r"\n[^\S\n]*\n\s*")
SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+")


# ---- reading


def documents_in(source: TextSource) -> Iterator[Labelled]:
    """The documents of a source with the split that each is given for."""
    for part, each in source.by_split().items():
        if each.is_stream:
            found = (text for pieces in each.apart() for text in _between_blanks(pieces))
            for number, text in enumerate(found, start=1):
                yield Labelled(text, None, f"{each.name}, document {number}", None, part)
        else:
            for example in each.examples():
                own = example.part if example.part != "all" else part
                yield Labelled(example.text, None, each.place(example.number), None, own)


def _between_blanks(pieces: Iterable[str]) -> Iterator[str]:
    """Texts between blank lines; no more than one is held.

    >>> list(_between_blanks(["a\\nb\\n", "\\n\\nc", "d"]))
    ['a\\nb', 'cd']
    """
    rest = ""
    for piece in pieces:
        *whole, rest = BLANK.split(rest + piece)
        yield from (text.strip() for text in whole if text.strip())
    if rest.strip():
        yield rest.strip()


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each with single spaces.

    >>> sentences_of('He said "no." Then\\nhe left.  Why?')
    ['He said "no."', 'Then he left.', 'Why?']
    """
    return [" ".join(each.split()) for each in SENTENCE.split(text) if each.strip()]


def open_documents(source: Any, config: DataConfig) -> TextSource:
    opened = open_text(source, config)
    if opened.numbers:
        raise DataError(f"{opened.name}: the data is numbers, expected text")
    opened.leave_out_copies()
    return opened


# ---- preparing


def prepare_documents(
    source: Any, config: DataConfig, room: int, codec: Codec | None = None, offered: Codec | None = None
) -> Prepared:
    """Read, split, fit the codec on the training split and encode in rows of at most `room` tokens.

    A codec of a saved run is used as it is; one that is `offered` where it cuts texts as asked and has <mask>.
    """
    opened = open_documents(source, config)
    documents = Steady(_Documents(opened), opened.name)
    scan = scan_examples(documents, config.seed, "none")
    if len(scan.keys) == 1:
        raise DataError(
            f"{opened.name}: found one document, expected several: separate documents with blank lines, or give a "
            "folder of files"
        )
    side, names, facts = sides(scan, np.ones(len(scan.keys), bool), config, opened.name)
    if codec is None and offered is not None and offered.cuts_as(config.tokens) and offered.special(MASK) is not None:
        codec = offered
    training = (each.input for each, number in zip(documents, side) if number == 0)
    kind = config.tokens if codec is None else codec.kind
    if codec is None:
        texts = (spaced(sentence, kind) for text in training for sentence in sentences_of(text))
        codec = Codec.fit(texts, config, ASKED)
    rows = [Rows(codec, room) for _ in names]
    for number, (each, part) in enumerate(zip(documents, side)):
        if part >= 0:
            rows[part].add(each.input, number)
    sections = {part: rows[names.index(part)].examples() for part in PARTS if part in names}
    facts = {
        "source": opened.name, "examples": "documents", "chosen": opened.chosen, "files": opened.files[:20],
        "n_files": len(opened.files), "documents": len(scan.keys), **facts, "tokens_are": codec.kind,
        "vocabulary": codec.size, "lengths": lengths_of([each.lengths(INPUT) for each in sections.values()]),
        "split": {part: counted(section) for part, section in sections.items()},
        "notes": [*opened.notes(), *facts["notes"]],
    }  # fmt: skip
    return Prepared(sections, {"text": codec}, facts, _fingerprint(scan.keys, side), {"column": opened.column})


class _Documents:
    """The documents of a source, read again by each pass."""

    def __init__(self, source: TextSource) -> None:
        self._source = source

    def __iter__(self) -> Iterator[Labelled]:
        return documents_in(self._source)


class Rows:
    """The rows of a split, as they are encoded."""

    def __init__(self, codec: Codec, room: int) -> None:
        self.codec, self.room = codec, room
        self.inputs, self.cuts = Growing(), Growing()
        self.documents: list[int] = []

    def add(self, text: str, document: int) -> None:
        """A document."""
        held: list[Ids] = []
        for sentence in sentences_of(text):
            ids = self.codec.encode(spaced(sentence, self.codec.kind))
            for start in range(0, len(ids), self.room):
                piece = ids[start : start + self.room]
                if sum(map(len, held)) + len(piece) > self.room:
                    self._end(held, document)
                    held = []
                held.append(piece)
        self._end(held, document)

    def _end(self, held: list[Ids], document: int) -> None:
        if held:
            self.inputs.add(np.concatenate(held).astype(np.int32))
            self.cuts.add(np.cumsum([len(each) for each in held[:-1]]).astype(np.int32))
            self.documents.append(document)

    def examples(self) -> Examples:
        columns = {DOCUMENT: np.array(self.documents, np.int64), ROWS: np.arange(len(self.documents))}
        return Examples({INPUT: self.inputs.ragged(), CUTS: self.cuts.ragged()}, columns)


def all_rows(texts: Iterable[str], codec: Codec, room: int) -> Examples:
    """Texts as documents of one section, in their order."""
    rows = Rows(codec, room)
    for number, text in enumerate(texts):
        rows.add(text, number)
    return rows.examples()


def require_others(section: Examples, part: str, name: str) -> None:
    """Which segment follows which can be asked where there is more than one document."""
    if len(np.unique(section.columns[DOCUMENT])) < 2:
        raise DataError(
            f"{name}: the {part} split has one document, so there is no other to take a wrong next sentence from; give "
            f"more documents, separated by blank lines, or leave this out with {option('next_sentence', 0)}"
        )


def counted(section: Examples) -> dict[str, Any]:
    ids = section.values(INPUT)
    unknown = int(np.count_nonzero(ids == UNKNOWN))
    return {
        "documents": len(np.unique(section.columns[DOCUMENT])), "examples": section.n_examples, "tokens": len(ids),
        "unknown": unknown, "unknown_share": unknown / max(len(ids), 1),
    }  # fmt: skip


def _fingerprint(keys: Any, side: Any) -> str:
    digest = hashlib.sha256()
    for each in (keys, side):
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.hexdigest()[:32]
