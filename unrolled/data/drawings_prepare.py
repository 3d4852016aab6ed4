"""From drawings to examples by split: moves in units of the typical move of the training data, and texts as tokens."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError, some
from unrolled.data.codecs.text import CharCodec
from unrolled.data.config import DataConfig
from unrolled.data.examples import Examples, lengths_of, ragged
from unrolled.data.given_splits import ALL, PARTS, given_among, how_split, notes_on, own_shares
from unrolled.data.prepared import Prepared
from unrolled.data.sources.drawings import read_drawings
from unrolled.data.sources.pen_moves import Drawing, scaled
from unrolled.data.split import row_key, split_rows

TEXT = "text"  # the codec of the texts


def examples_of(drawings: Sequence[Drawing], scale: float, texts: CharCodec | None) -> Examples:
    fields = {TARGET: ragged([scaled(each.moves, scale) for each in drawings], np.empty((0, 5), np.float32))}
    if texts is not None:
        fields[SOURCE] = ragged([texts.encode(each.text or "") for each in drawings])
    return Examples(fields)


def prepare_drawings(source: Any, config: DataConfig, with_text: bool) -> Prepared:
    """Read and check a source; its own splits are kept, those that it does not give are cut by `config`."""
    name, shares = str(source) if isinstance(source, str | os.PathLike) else "the data", config.shares()
    drawings: dict[str, list[Drawing]] = {}
    for found in read_drawings(source):
        if with_text and not found.text:
            raise DataError(f"{found.place}: the drawing has no text; give each one a text, or train without texts")
        drawings.setdefault(found.part, []).append(found)
    if not drawings:
        raise DataError(f"{name}: there are no drawings in it")
    given = given_among({part: len(found) for part, found in drawings.items()}, name)
    own = own_shares(shares, given)
    if len(own) > 1:
        drawings |= _split(drawings.pop("train" if given else ALL), own, config, name)
    drawings = {part: drawings[part] for part in PARTS if part in drawings}
    scale = scale_of(drawings["train"], name)
    codec = CharCodec.fit((each.text for each in drawings["train"]), config) if with_text else None
    assert codec is None or isinstance(codec, CharCodec)
    sections = {part: examples_of(found, scale, codec) for part, found in drawings.items()}
    facts = {"source": name, "scale": scale, "split_is": how_split(shares, given, config.split), **_facts(drawings)}
    facts["notes"] += [*notes_on(shares, given), *_unseen(drawings, codec)]
    codecs = {} if codec is None else {TEXT: codec}
    texts = all(each.text for found in drawings.values() for each in found)
    return Prepared(sections, codecs, facts, _fingerprint(sections), {"scale": scale, "texts": texts})


def scale_of(drawings: Sequence[Drawing], name: str) -> float:
    """The root of the mean square of dx and dy."""
    ways = np.concatenate([each.moves[:, :2] for each in drawings]).astype(np.float64)
    scale = float(np.sqrt(np.mean(ways**2)))
    if not scale > 0:
        raise DataError(f"{name}: the pen never moves, every (dx, dy) is 0")
    return scale


def _split(
    drawings: list[Drawing], shares: Mapping[str, float], config: DataConfig, name: str
) -> dict[str, list[Drawing]]:
    """Equal drawings are on one side, whatever their texts."""
    keys = np.array([row_key(each.moves, None, config.seed) for each in drawings], np.uint64)
    side = split_rows(keys, shares, name)
    return {part: [each for each, s in zip(drawings, side) if s == i] for i, part in enumerate(shares)}


def _facts(drawings: Mapping[str, list[Drawing]]) -> dict[str, Any]:
    lengths = {part: np.array([len(each.moves) for each in found]) for part, found in drawings.items()}
    seen = {each.moves.tobytes() for each in drawings["train"]}
    again = {part: sum(each.moves.tobytes() in seen for each in found) for part, found in drawings.items()}
    return {
        "drawings": sum(map(len, drawings.values())),
        "points": int(sum(n.sum() for n in lengths.values())),
        "lengths": lengths_of(list(lengths.values())),
        "split": {part: {"examples": len(n), "points": int(n.sum())} for part, n in lengths.items()},
        "notes": [f"{n} drawings of {part} are in train too" for part, n in again.items() if n and part != "train"],
    }


def _unseen(drawings: Mapping[str, list[Drawing]], codec: CharCodec | None) -> Iterator[str]:
    if codec is None:
        return
    for part, found in drawings.items():
        unknown = dict.fromkeys(c for each in found for c in codec.unknown(each.text or ""))
        if unknown:
            yield f"characters in the texts of {part} that are not in train: {some(list(unknown))}"


def _fingerprint(sections: Mapping[str, Examples]) -> str:
    digest = hashlib.sha256()
    for part, section in sections.items():
        for name, field in section.fields.items():
            digest.update(f"{part} {name} {field.values.shape}".encode())
            digest.update(field.offsets[0].tobytes())
            digest.update(np.ascontiguousarray(field.values).tobytes())
    return digest.hexdigest()[:32]
