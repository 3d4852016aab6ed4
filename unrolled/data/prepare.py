"""From whatever a user has to sections of tokens: read, check, split, fit the codec on the training split, encode.

Every step is a pass over the source, so memory does not grow with the corpus; the result is kept in the token store
and found again by a fingerprint of the content and the settings.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError, UsageError, nearest, some
from unrolled.core.front import option
from unrolled.core.tokens import UNKNOWN
from unrolled.data.codecs.text import FILE, Codec, NumberCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples, lengths_of
from unrolled.data.files.cell_values import shown
from unrolled.data.files.joined_columns import number_columns
from unrolled.data.files.passes import changed
from unrolled.data.given_splits import ALL, PARTS, given_among, notes_on, own_shares
from unrolled.data.prepared import USE, Prepared, n_values, used
from unrolled.data.sources.split_text import lines_again, open_text
from unrolled.data.sources.text import TextSource, open_source
from unrolled.data.split import cut_pieces, row_key, split_rows, stream_cuts, together
from unrolled.data.storage import store
from unrolled.data.storage.cache import place_of
from unrolled.data.storage.store import Draft, Entry
from unrolled.data.storage.stored import TokenWriter, stored_examples

WHOLE = {"all": 1.0}
FORMAT = 1  # of fingerprints, which saved runs keep


def prepare(
    source: Any,
    config: DataConfig,
    codec: Codec | None = None,
    labels: list[str] | None = None,
    offered: Codec | None = None,
) -> Prepared:
    """Read and split a source; with a saved `codec` and `labels` these are used instead of fitted ones.

    A codec that is only `offered` is used where it cuts data of this kind into the tokens that are asked for.
    """
    opened = open_text(source, config)
    opened.leave_out_copies()
    wanted = NumberCodec.kind if opened.numbers else config.tokens
    if codec is None and offered is not None and offered.cuts_as(wanted):
        codec = offered
    found = _prepare(opened, config, config.shares(), codec, labels)
    sections = used(found.sections, config, n_values)
    for split, section in sections.items():
        if split != "train" and section is not found.sections[split]:
            sections[split] = _recounted(section, found.codecs["text"])
    return replace(found, sections=sections)


def _recounted(section: Examples, codec: Codec) -> Examples:
    """With its characters and bytes counted again, where it is a share of a split."""
    tokens = section.values(TARGET)
    text = "" if isinstance(codec, NumberCodec) else codec.decode(tokens)
    sizes = (len(tokens), len(tokens)) if isinstance(codec, NumberCodec) else (len(text), len(text.encode()))
    unknown = int(np.count_nonzero(tokens == UNKNOWN))
    return replace(section, counts={"characters": sizes[0], "bytes": sizes[1], "unknown": unknown})


def prepare_all(source: Any, config: DataConfig, codec: Codec, labels: list[str] | None = None) -> Examples:
    """The whole of another source as one section, in its own order, in the tokens and classes of a saved run."""
    return prepare_whole(source, config, codec, labels or []).sections["all"]


def prepare_whole(source: Any, config: DataConfig, codec: Codec, labels: list[str] | None) -> Prepared:
    """The same with what is known of it; without labels, its own."""
    return _prepare(open_source(source, config.updated({"part": None})), config, WHOLE, codec, labels)


def _prepare(
    source: TextSource, config: DataConfig, shares: Mapping[str, float], codec: Codec | None, labels: list[str] | None
) -> Prepared:
    if codec is not None and source.numbers != isinstance(codec, NumberCodec):
        wanted, given = ("numbers", "text") if isinstance(codec, NumberCodec) else ("text", "numbers")
        raise DataError(f"{source.name}: the data is {given}, but the saved codec is for {wanted}")
    digest = source.digest()
    by_text = config.condition is not None
    key = _fingerprint(digest, config, shares, by_text, {"name": source.name, "codec": codec, "labels": labels})

    def fill(draft: Draft) -> None:
        with _Builder(source, config, shares, draft) as builder:
            builder.build_stream(codec) if source.is_stream else builder.build_rows(codec, labels)
        if source.digest() != digest:
            raise changed(source.name)

    entry, read_by, notes = _stored(key, fill)
    facts = {**entry.index["facts"], "notes": [*entry.index["facts"]["notes"], *notes]}
    moved = bool(facts.get("texts_in_several_classes"))  # no longer split as by earlier versions
    same = _fingerprint(digest, config, shares, moved, {})  # of the data, wherever it is and whatever codec reads it
    told = {"labels": entry.index["labels"], "column": source.column}
    return Prepared(stored_examples(entry), {"text": read_by}, facts, same, told)


def _stored(key: str, fill: Callable[[Draft], None]) -> tuple[Entry, Codec, list[str]]:
    """The entry of the store and its codec; written where there is none or where it is damaged, which a note tells."""
    notes = []
    try:
        if (found := store.read(key)) is not None:
            return found, _codec_in(found), []
    except store.Damaged as error:
        notes.append(f"the prepared data in {place_of(key)} was damaged ({error}), so it was prepared again")
    written = store.write(key, fill)
    return written, _codec_in(written), notes


def _codec_in(entry: Entry) -> Codec:
    try:
        return Codec.from_json(bytes(entry.files[FILE]).decode())
    except (ValueError, KeyError, TypeError, AttributeError, UsageError) as error:  # of another version of a library
        raise store.Damaged(f"{FILE} cannot be read: {error}") from None


def _fingerprint(
    digest: str, config: DataConfig, shares: Mapping[str, float], by_text: bool, known: Mapping[str, Any]
) -> str:
    codec = known.get("codec")
    values = {
        "format": FORMAT,
        "name": known.get("name"),
        "content": digest,
        "config": config.model_dump(exclude={*USE, "split", *(() if config.part else ("part",))}),
        "shares": dict(shares),
        "codec": codec.to_json() if codec else None,
        "labels": known.get("labels"),
        **({"equal": "texts, whatever their class"} if by_text else {}),
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


class _Builder:
    """The passes that fill one store."""

    def __init__(self, source: TextSource, config: DataConfig, shares: Mapping[str, float], draft: Draft) -> None:
        self.source, self.config, self.shares, self.draft = source, config, shares, draft
        self.names = list(shares)  # of the sections; those of given splits are added
        self.given: list[str] = []
        self.leaks: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.too_long: Counter[str] = Counter()
        self.writers: list[TokenWriter] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.close()

    def build_stream(self, codec: Codec | None) -> None:
        sources = dict(self.source.by_split())
        own = self._own_shares([part for part in sources if part != ALL])
        main = sources.pop("train" if "train" in sources else ALL)
        total = sum(len(piece) for piece in main.pieces())
        cuts = stream_cuts(total, own)
        if min(np.diff([0, *cuts])) == 0:
            self._too_small(total, own)
        codec = codec or self._fit(_beginning(main, cuts))
        writers = dict(zip(self.names, self._open_writers(codec)))
        for section, piece in cut_pieces(main.pieces(), cuts):
            writers[list(own)[section]].add_text(codec.encode(piece), *_sizes(piece))
        if min(writers[part].n_tokens for part in own) <= self.config.ahead:
            self._too_small(total, own)
        for part, given in sources.items():
            for piece in given.pieces():
                writers[part].add_text(codec.encode(piece), *_sizes(piece))
            if writers[part].n_tokens <= self.config.ahead:
                raise DataError(
                    f"{given.name}: too small for the {part} split, there is nothing to predict in it; give more text"
                )
        self.leaks = lines_again(main, sources)
        self.facts = {"rows": 1, "duplicates": None, "lengths": None, "cuts": dict(zip(own, cuts))}
        self._finish(codec, [])

    def _own_shares(self, given: list[str]) -> dict[str, float]:
        """How the training data is cut, beside the splits that are given; settles which sections there are."""
        own = own_shares(self.shares, given)
        self.given = given
        self.names = [part for part in PARTS if part in own or part in given] if given else list(own)
        return own

    def _too_small(self, total: int, own: Mapping[str, float]) -> None:
        parts = "/".join(f"{100 * share:.3g}" for share in own.values())
        raise DataError(
            f"{self.source.name}: too small to split: of {total} characters split {parts}, one split has "
            f"nothing to predict; give more text or another {option('split')}"
        )

    def build_rows(self, codec: Codec | None, labels: list[str] | None) -> None:
        keys, texts, classes, parts = self._scan()
        labels = self._labels(classes, len(keys)) if labels is None else labels
        own = self._own_shares(given_among(Counter(parts), self.source.name))
        side = np.array([self.names.index(part) if part in self.names else 0 for part in parts], np.uint8)
        if len(own) > 1:
            rows = np.flatnonzero(side == 0)
            found = split_rows(together(keys[rows], texts[rows]), own, self.source.name)
            side[rows] = np.array([self.names.index(part) for part in own])[found]
        self.leaks = _again(texts, side, self.names)
        codec = codec or self._fit(text for text, *_, section in self._sided(side) if section == 0)
        writers = self._open_writers(codec)
        number_of = {label: i for i, label in enumerate(labels)}
        for text, label, number, section in self._sided(side):
            if label is not None and label not in number_of:
                place = self.source.place(number)
                raise DataError(f"{place}: the class {shown(label)} is not one of the run's; {nearest(label, labels)}")
            self._add(codec, writers[section], text, None if label is None else number_of[label], number)
        self.facts = {
            "rows": len(keys),
            "classes": dict(sorted(classes.items())) if classes and not number_columns(self.config.condition) else None,
            "duplicates": _duplicates(keys, side, self.names),
            "texts_in_several_classes": _n_in_several(keys, texts) if classes else None,
            "lengths": lengths_of([writer.lengths() for writer in writers]),
            "truncated": self.too_long["truncated"],
            "cut_in_pieces": self.too_long["split"],
        }
        self._finish(codec, labels)

    def _scan(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], Counter[str], list[str]]:
        """The first pass: every row checked, keyed with its class and without, its class counted, its split."""
        keys, texts, classes, parts = array("Q"), array("Q"), Counter[str](), []
        for text, label, _, part in self.source.examples():
            parts.append(part)
            keys.append(row_key(text, label, self.config.seed))
            texts.append(keys[-1] if label is None else row_key(text, None, self.config.seed))
            if label is not None:
                classes[label] += 1
        return np.frombuffer(keys, np.uint64), np.frombuffer(texts, np.uint64), classes, parts

    def _labels(self, classes: Counter[str], n_rows: int) -> list[str]:
        column = self.config.condition
        if number_columns(column):
            return sorted(classes)
        if len(classes) == 1:
            only = next(iter(classes))
            raise DataError(
                f"{self.source.name}, column '{column}': found a single class, '{only}'; a condition needs at least two"
            )
        if len(classes) > max(50, n_rows // 2):
            raise DataError(
                f"{self.source.name}, column '{column}': found {len(classes)} different values in {n_rows} "
                f"rows, so this is not a column of classes; choose another {option('data.condition')}"
            )
        return sorted(classes)

    def _sided(self, side: NDArray[np.uint8]) -> Iterator[tuple[Any, str | None, int, int]]:
        for example, section in zip(self.source.examples(), side.tolist(), strict=True):
            yield *example[:3], section

    def _add(self, codec: Codec, writer: TokenWriter, text: Any, label: int | None, number: int) -> None:
        ids = codec.encode(text)
        limit = self.config.max_length
        if limit is None or len(ids) <= limit:
            writer.add_text(ids, *_sizes(text))
            writer.end_example(label, number, ends=True)
            return
        if self.config.too_long == "error":
            raise DataError(
                f"{self.source.place(number)}: this example has {len(ids)} tokens, more than max_length = {limit}; "
                f"choose {option('too_long', 'truncate')} or {option('too_long', 'split')}, "
                f"or a larger {option('max_length')}"
            )
        self.too_long["truncated" if self.config.too_long == "truncate" else "split"] += 1
        ends = np.cumsum(codec.byte_lengths(text))  # where in the text each token ends, in bytes
        data = text.encode("utf-8") if isinstance(text, str) else bytes(len(text))
        for start in range(0, len(ids), limit):
            stop = min(start + limit, len(ids))
            part = data[ends[start - 1] if start else 0 : ends[stop - 1]]
            writer.add_text(ids[start:stop], _count_characters(part), len(part))
            writer.end_example(label, number, ends=stop == len(ids))
            if self.config.too_long == "truncate":
                return

    def _fit(self, texts: Iterator[Any]) -> Codec:
        return (NumberCodec if self.source.numbers else Codec).fit(texts, self.config)

    def _open_writers(self, codec: Codec) -> list[TokenWriter]:
        stream = self.source.is_stream
        self.writers = [TokenWriter(self.draft, name, TARGET, codec.size, stream) for name in self.names]
        return self.writers

    def _finish(self, codec: Codec, labels: list[str]) -> None:
        source, writers = self.source, self.writers
        splits = {name: writer.finish(SOURCE) for name, writer in zip(self.names, writers)}
        facts = {
            "source": source.name,
            "examples": source.examples_are,
            "chosen": source.chosen,
            "files": source.files[:20],
            "n_files": len(source.files),
            **self.facts,
            "tokens_are": codec.kind,
            "vocabulary": codec.size,
            "tokens": sum(writer.n_tokens for writer in writers),
            "characters": sum(writer.n_chars for writer in writers),
            "bytes": sum(writer.n_bytes for writer in writers),
            "split": {name: _section_facts(writer) for name, writer in zip(self.names, writers)},
            "notes": [*source.notes(), *self._notes(labels)],
        }
        self.draft.write(FILE, codec.to_json().encode())
        self.draft.finish({"splits": splits, "labels": labels, "facts": facts})

    def _notes(self, labels: list[str]) -> Iterator[str]:
        yield from self.leaks.values()
        yield from notes_on(self.shares, self.given)
        if source_is_builtin(self.source):
            yield f"the text is that of Python {sys.version_info.major}.{sys.version_info.minor}"
        if self.shares is not WHOLE and labels and not number_columns(self.config.condition):
            missing = sorted(set(range(len(labels))) - self.writers[0].classes_seen())
            if missing:
                yield f"no training example of class {some(labels[i] for i in missing)}"
        if self.too_long["truncated"]:
            yield f"{self.too_long['truncated']} examples were truncated to {self.config.max_length} tokens"
        if self.too_long["split"]:
            yield f"{self.too_long['split']} examples were split into parts of {self.config.max_length} tokens"


def _beginning(source: TextSource, cuts: list[int]) -> Iterator[Any]:
    """The pieces of a stream up to the first cut."""
    return (piece for _, piece in takewhile(lambda each: each[0] == 0, cut_pieces(source.pieces(), cuts)))


def source_is_builtin(source: TextSource) -> bool:
    return source.name.startswith("builtin:")


def _sizes(text: Any) -> tuple[int, int]:
    """Characters and bytes; a number counts as one of each."""
    return len(text), len(text.encode("utf-8")) if isinstance(text, str) else len(text)


def _count_characters(data: bytes) -> int:
    """Characters that begin in these bytes of UTF-8."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) & 0xC0 != 0x80))


def _section_facts(writer: TokenWriter) -> dict[str, Any]:
    return {
        "examples": writer.n_examples,
        "tokens": writer.n_tokens,
        "characters": writer.n_chars,
        "bytes": writer.n_bytes,
        "unknown": writer.n_unknown,
        "unknown_share": writer.n_unknown / writer.n_tokens if writer.n_tokens else 0.0,
    }


def _duplicates(keys: NDArray[np.uint64], side: NDArray[np.uint8], names: list[str]) -> dict[str, int]:
    """Rows that repeat an earlier one, in all and by the section they went to with it."""
    repeated = {name: int((side == i).sum() - len(np.unique(keys[side == i]))) for i, name in enumerate(names)}
    return {"all": sum(repeated.values()), **({} if names == ["all"] else repeated)}


def _again(texts: NDArray[np.uint64], side: NDArray[np.uint8], names: list[str]) -> dict[str, str]:
    """By split, a sentence on rows whose text is in training too, which is so only where splits are given."""
    leaks = {part: int(np.isin(texts[side == i], texts[side == 0]).sum()) for i, part in enumerate(names) if i}
    return {
        part: f"{n} texts of {part} are in train too, because the splits are given" for part, n in leaks.items() if n
    }


def _n_in_several(keys: NDArray[np.uint64], texts: NDArray[np.uint64]) -> int:
    """How many texts there are under several classes; each is in one section."""
    _, first = np.unique(keys, return_index=True)  # of each text, once for each of its classes
    return int((np.unique(texts[first], return_counts=True)[1] > 1).sum())
