"""From pairs to sections: read, check, split, fit the codecs on the training split, encode.

The data is read once for the split, once or twice for the codecs and once to encode, so that only ids are held; of
validation and test the texts too, for what is written is compared with them. Pairs with equal sources are in one part.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.tokens import UNKNOWN
from unrolled.data.codecs.text import Codec
from unrolled.data.config import DataConfig
from unrolled.data.examples import ENDS, GIVEN, KINDS, REFERENCES, ROWS, Examples, count_of, lengths_of, ragged
from unrolled.data.files.passes import Steady
from unrolled.data.given_splits import PARTS
from unrolled.data.pairs import Pair, PairSource
from unrolled.data.prepared import Prepared
from unrolled.data.reading import PairReading
from unrolled.data.sides import NAMED, Scan, sides
from unrolled.data.split import row_key
from unrolled.data.storage.growing import Growing
from unrolled.data.target_words import target_words

LISTED = 20  # skipped pairs that are told one by one


class Longest(NamedTuple):
    """The longest source and target of a part, in tokens, and where they are."""

    source: int
    source_place: str
    target: int
    target_place: str


def is_joint(config: DataConfig, reading: PairReading) -> bool:
    return reading.vocabularies == "joint" or (reading.vocabularies == "auto" and config.tokens == "bpe")


def prepare_pairs(
    source: PairSource, config: DataConfig, codecs: tuple[Any, Codec | None] = (None, None)
) -> Prepared:  # fmt: skip
    """Read pairs, keep their own parts or split them, and encode them; saved `codecs` (source, target) are used instead
    of fitted ones."""
    if config.too_long == "split" and config.max_length is not None:
        raise UsageError(
            "invalid value too_long = split for pairs, which are translated as a whole: expected truncate or error"
        )
    pairs = Steady(source, source.name)
    scan, kinds = _scan(pairs, config.seed)
    side, names, facts = sides(scan, np.ones(len(scan.keys), bool), config, source.name)

    def training() -> Iterator[Pair]:
        return (pair for pair, number in zip(pairs, side) if number == 0)

    joint = is_joint(config, source.reading)
    first, second = _fit(source, training, config, joint, *codecs)
    encoder = _Encoder(source, first, second, config)
    sections, longest = encoder.parts(zip(pairs, side, kinds), names)
    facts = {
        "source": source.name,
        **facts,
        "skipped": {"count": len(source.skipped), "first": list(source.skipped)[:LISTED]} if source.skipped else None,
        "tokens_are": second.kind + (" (small letters)" if source.reading.lower else ""),
        "vocabulary": {"both": first.size} if joint else {"source": first.size, "target": second.size},
        "lengths": {
            side: lengths_of([section.lengths(side) for section in sections.values()]) for side in (SOURCE, TARGET)
        },
        "target_words": target_words(sections["train"], second)._asdict(),
        "truncated": encoder.truncated,
        "split": {part: _part_facts(section) for part, section in sections.items()},
        "notes": [*source.notes, *facts["notes"], *_more_notes(source, encoder.truncated, config)],
    }
    told = {"shared": joint, "longest": longest, "reading": source.reading.model_dump(mode="json")}
    both = {"source": first, "target": second}
    return Prepared(sections, both, facts, _fingerprint(sections, first, second), told)


def encode_pairs(source: PairSource, codecs: tuple[Any, Codec], config: DataConfig) -> tuple[Examples, Longest]:
    """The whole of another source, in its own order, in the tokens of a saved run."""
    encoder = _Encoder(source, *codecs, config)
    triples = ((pair, 0, pair.kind) for pair in source)
    sections, longest = encoder.parts(triples, ["all"])
    return sections["all"], longest["all"]


def _scan(pairs: Iterable[Pair], seed: int) -> tuple[Scan, list[str]]:
    """The first pass: every pair checked and keyed by its source, so that equal sources stay together."""
    keys, parts, kinds, counts = array("Q"), bytearray(), [], Counter[str]()  # of very many pairs too
    for pair in pairs:
        keys.append(row_key(pair.source, None, seed))
        parts.append(NAMED.index(pair.part))
        counts[pair.part] += 1
        kinds.append(pair.kind)
    numbers = np.frombuffer(keys, np.uint64)
    named = np.frombuffer(parts, np.uint8)
    return Scan(numbers, numbers, np.zeros(len(keys), np.int64), named, None, counts), kinds


def _fit(
    source: PairSource, training: Any, config: DataConfig, joint: bool, first: Any, second: Codec | None
) -> tuple[Any, Codec]:
    """The codecs of both sides, where there are none yet."""
    if joint and second is None:
        both = Codec.fit(chain.from_iterable((pair.source, pair.target) for pair in training()), config)
        return both, both
    return (
        source.fit_source((pair.source for pair in training()), config) if first is None else first,
        Codec.fit((pair.target for pair in training()), config) if second is None else second,
    )


class _Encoder:
    """The last pass: texts to ids, part by part; vectors stay vectors, and only their targets can be too long."""

    def __init__(self, source: PairSource, first: Any, second: Codec, config: DataConfig) -> None:
        self.source, self.codecs, self.config = source, (first, second), config
        self.truncated = 0

    def parts(
        self, pairs: Iterable[tuple[Pair, int, str]], names: Sequence[str]
    ) -> tuple[dict[str, Examples], dict[str, Longest]]:
        held = [_Part() for _ in names]
        longest = [Longest(0, "", 0, "") for _ in names]
        for row, (pair, number, kind) in enumerate(pairs):
            found = self._pair(pair)
            if found is None:
                continue
            source, target, ends = found
            held[number].add(source, target, row, ends)
            if names[number] != "train":
                held[number].keep(pair, kind)
            longest[number] = _longer(longest[number], len(source), len(target), pair.place)
        sections, furthest = {}, {}
        for number, part in sorted(enumerate(names), key=lambda each: [*PARTS, "all"].index(each[1])):
            if not held[number].rows:
                raise DataError(f"{self.source.name}: no pairs are left for the {part} split; give more data")
            sections[part], furthest[part] = held[number].examples(), longest[number]
        return sections, furthest

    def _pair(self, pair: Pair) -> tuple[NDArray[Any], NDArray[np.int32], bool] | None:
        source, target = (codec.encode(text) for codec, text in zip(self.codecs, (pair.source, pair.target)))
        target, vectors = target.astype(np.int32), source.ndim == 2
        source = source if vectors else source.astype(np.int32)
        limit = self.config.max_length
        if limit is None or ((vectors or len(source) <= limit) and len(target) <= limit):
            return source, target, True
        if self.config.too_long == "error":
            if self.source.reading.skip_bad:
                self.source.skip(f"{pair.place}: {len(source)} and {len(target)} tokens, more than {limit}")
                return None
            raise DataError(
                f"{pair.place}: this pair has {len(source)} and {len(target)} tokens, more than max_length = {limit}; "
                f"choose {option('too_long', 'truncate')}, {option('skip_bad', True)}, or a larger "
                f"{option('max_length')}"
            )
        self.truncated += 1
        return source if vectors else source[:limit], target[:limit], len(target) <= limit


def _longer(known: Longest, source: int, target: int, place: str) -> Longest:
    if source > known.source:
        known = known._replace(source=source, source_place=place)
    return known._replace(target=target, target_place=place) if target > known.target else known


class _Part:
    """The pairs of a split as they are encoded; of those that are not trained on, the texts too."""

    def __init__(self) -> None:
        self.source, self.target = Growing(), Growing()
        self.rows, self.ends = array("q"), bytearray()
        self.given: list[Any] = []
        self.references: list[str] = []
        self.kinds: list[str] = []

    def add(self, source: NDArray[Any], target: NDArray[np.int32], row: int, ends: bool) -> None:
        self.source.add(source)
        self.target.add(target)
        self.rows.append(row)
        self.ends.append(ends)

    def keep(self, pair: Pair, kind: str) -> None:
        self.given.append(pair.source)
        self.references.append(pair.target)
        self.kinds.append(kind)

    def examples(self) -> Examples:
        fields = {SOURCE: self.source.ragged(), TARGET: self.target.ragged()}
        columns: dict[str, Any] = {ROWS: np.array(self.rows, np.int64)}
        columns |= {} if all(self.ends) else {ENDS: np.frombuffer(self.ends, np.bool_)}
        if not self.given:
            return Examples(fields, columns)
        columns |= {REFERENCES: self.references} | ({KINDS: self.kinds} if any(self.kinds) else {})
        if isinstance(self.given[0], str):
            return Examples(fields, columns | {GIVEN: self.given})
        return Examples({**fields, GIVEN: ragged(self.given)}, columns)


def examples_of_pairs(sources: Sequence[NDArray[Any]], targets: Sequence[NDArray[Any]]) -> Examples:
    """Encoded pairs: sources [S] ids or [S, D] numbers, targets [T] ids; without targets, to write them."""
    return Examples({SOURCE: ragged(sources), TARGET: ragged(targets)}, {ROWS: np.arange(len(sources))})


# ---- what is told


def _part_facts(section: Examples) -> dict[str, Any]:
    source, target = section.values(SOURCE), section.values(TARGET)
    return {
        "pairs": section.n_examples,
        "source_tokens": len(source),
        "target_tokens": len(target),
        **({"unknown_source": count_of(UNKNOWN, source)} if source.ndim == 1 else {}),
        "unknown_target": count_of(UNKNOWN, target),
        **({"kinds": dict(Counter(section.columns[KINDS]))} if KINDS in section.columns else {}),
    }


def _more_notes(source: PairSource, truncated: int, config: DataConfig) -> Iterator[str]:
    if source.skipped:
        more = f" and {len(source.skipped) - LISTED} more" if len(source.skipped) > LISTED else ""
        n = len(source.skipped)
        yield f"{n} {'pair was' if n == 1 else 'pairs were'} skipped: {'; '.join(list(source.skipped)[:LISTED])}{more}"
    if truncated:
        yield f"{truncated} pairs were truncated to {config.max_length} tokens"


def _fingerprint(sections: Mapping[str, Examples], first: Any, second: Codec) -> str:
    digest = hashlib.sha256()
    for part, section in sections.items():
        digest.update(f"{part} {section.n_examples}\n".encode())
        for field in (section.fields[SOURCE], section.fields[TARGET]):
            digest.update(np.ascontiguousarray(field.values).reshape(-1).view(np.uint8).data)
            digest.update(field.offsets[0].view(np.uint8).data)
        for name, given in ((SOURCE, GIVEN), (TARGET, REFERENCES)):
            if given in section.columns and count_of(UNKNOWN, section.values(name)):  # ids do not tell texts apart
                digest.update(json.dumps(list(section.columns[given])).encode())
    for codec in (first, second):
        digest.update(codec.to_json().encode())
    return digest.hexdigest()[:32]
