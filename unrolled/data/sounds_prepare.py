"""From recordings to examples: levels of samples in pieces of a second or so, with what is known beside them.

A long recording is cut into pieces that are separate examples, so that a batch never holds more than a piece of each
row, whatever the length of the files. Recordings are split at random; where there are few, each of them by time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError
from unrolled.data.codecs.samples import Samples
from unrolled.data.config import DataConfig
from unrolled.data.examples import ENDS, Examples, Ragged, lengths_of, offsets_of, ragged
from unrolled.data.files.spectrum import Floats
from unrolled.data.given_splits import ALL, PARTS, given_among, how_split, notes_on, own_shares
from unrolled.data.prepared import Prepared
from unrolled.data.sound_conditions import Conditions, Features, Frames, features_of, fitted, with_scale
from unrolled.data.sources.clips import Clip, Hearing, clips, name_of
from unrolled.data.split import row_key, split_rows

FEW = 10  # recordings, below which each is split by time
SHORTEST = 2  # samples of a recording


@dataclass(frozen=True)
class SoundForm:
    """How recordings become examples."""

    hearing: Hearing
    bits: int
    piece: float  # seconds
    features: Features
    frame: float  # seconds from one frame of features to the next
    bands: int


class Encoded(NamedTuple):
    """A recording, or a span of one."""

    ids: NDArray[Any]  # [T]
    known: dict[str, Any]
    part: str
    place: str
    channels: int = 1  # that were averaged


def prepare_sounds(source: Any, config: DataConfig, form: SoundForm, known: Conditions | None = None) -> Prepared:
    """All recordings by split; `known` are the conditions of a saved run, otherwise they are fitted to training."""
    codec = Samples(form.bits)
    rate, found = clips(source, form.hearing)
    recordings = [_encoded(clip, codec) for clip in found]
    name = name_of(source)
    given = given_among({part: sum(each.part == part for each in recordings) for part in _parts(recordings)}, name)
    sections, by = _split(recordings, given, config, name)
    hop = max(1, round(form.frame * rate))
    names = [each.strip() for each in (config.condition or "").split(",") if each.strip()]
    length = max(hop, round(form.piece * rate) // hop * hop)
    if known is None:
        known = fitted(names, [each.known for each in sections["train"]], form.features, hop, form.bands, rate)
        if known.features != "none":
            pieces = (piece for each in sections["train"] for piece in _pieces(each, known, codec, length))
            known = with_scale(known, [features_of(known, sound)[:n] for sound, n in pieces])
    examples = {part: examples_of(some, known, codec, length) for part, some in sections.items()}
    shares = config.shares()
    how = "by time" if by else how_split(shares, given, config.split)
    facts = {"source": name, "rate": rate, "bits": form.bits, "split_is": how, **_facts(examples, recordings, rate)}
    facts["notes"] = [*_notes(recordings), *(notes_on(shares, given) if not by else [])]
    told = {"rate": rate, "conditions": known.model_dump(mode="json")}
    return Prepared(examples, {}, facts, _fingerprint(examples), told)


def _pieces(each: Encoded, known: Conditions, codec: Samples, length: int) -> Iterator[tuple[Floats, int]]:
    """The sound of each piece and how many frames of features it has; a frame may end in what follows the piece."""
    ahead = known.window if known.features != "none" else 0
    for at in range(0, len(each.ids), length):
        n = min(length, len(each.ids) - at)
        yield codec.decode(each.ids[at : at + n + ahead]), max(1, -(-n // known.hop))


def _parts(recordings: Sequence[Encoded]) -> list[str]:
    return [part for part in (*PARTS, ALL) if any(each.part == part for each in recordings)]


def _encoded(clip: Clip, codec: Samples) -> Encoded:
    if len(clip.samples) < SHORTEST:
        raise DataError(f"{clip.place}: has {len(clip.samples)} samples, expected at least {SHORTEST}; remove it")
    return Encoded(codec.encode(clip.samples), dict(clip.known), clip.part, clip.place, clip.channels)


def _split(
    recordings: list[Encoded], given: Sequence[str], config: DataConfig, name: str
) -> tuple[dict[str, list[Encoded]], bool]:
    """Recordings by part, and whether each was cut by time."""
    sections = {part: [each for each in recordings if each.part == part] for part in PARTS}
    if not given:
        sections["train"] = recordings
    shares, pool = own_shares(config.shares(), given), sections["train"]
    by_time = len(shares) > 1 and len(pool) < FEW
    if by_time:
        sections |= {part: [] for part in shares}
        for each in pool:
            for part, ids in _spans(each, shares):
                sections[part].append(each._replace(ids=ids))
    elif len(shares) > 1:
        keys = np.array([row_key(each.ids, None, config.seed) for each in pool], np.uint64)
        side = split_rows(keys, shares, name)
        sections |= {part: [e for e, s in zip(pool, side) if s == i] for i, part in enumerate(shares)}
    return {part: sections[part] for part in PARTS if sections.get(part)}, by_time


def _spans(each: Encoded, shares: dict[str, float]) -> list[tuple[str, NDArray[Any]]]:
    n = len(each.ids)
    if n < SHORTEST * len(shares):
        raise DataError(f"{each.place}: has {n} samples, too few to split them; give more sound")
    rest = {part: max(SHORTEST, round(n * share)) for part, share in shares.items() if part != "train"}
    cuts = np.cumsum([0, n - sum(rest.values()), *rest.values()])
    return [(part, each.ids[a:b]) for part, a, b in zip(shares, cuts[:-1], cuts[1:])]


def examples_of(recordings: Sequence[Encoded], known: Conditions, codec: Samples, length: int) -> Examples:
    """Pieces of at most `length` samples: views of one array of ids, and the vectors of what is known of each."""
    ids = ragged([each.ids for each in recordings]).values
    lengths: list[int] = []
    vectors: list[Frames] = []
    for each in recordings:
        lengths += [min(length, len(each.ids) - at) for at in range(0, len(each.ids), length)]
        if known.features != "none":
            pieces = _pieces(each, known, codec, length)
            vectors += [known.vectors(each.known, sound, each.place)[:n] for sound, n in pieces]
        elif known.width:
            whole = known.vectors(each.known, np.empty(0), each.place)
            vectors += [whole] * -(-len(each.ids) // length)
    fields = {TARGET: Ragged(ids, (offsets_of(lengths),))}
    if known.width:
        fields[SOURCE] = ragged(vectors)
    return Examples(fields, {ENDS: np.zeros(len(lengths), bool)})


def _notes(recordings: Sequence[Encoded]) -> list[str]:
    mixed = [each for each in recordings if each.channels > 1]
    if not mixed:
        return []
    what = "1 recording has" if len(mixed) == 1 else f"{len(mixed):,} recordings have"
    return [f"{what} more than one channel ({mixed[0].place}: {mixed[0].channels}); the channels were averaged"]


def _facts(sections: dict[str, Examples], recordings: Sequence[Encoded], rate: int) -> dict[str, Any]:
    lengths = [np.array([len(each.ids) for each in recordings])]
    return {
        "recordings": len(recordings),
        "seconds": round(sum(len(each.ids) for each in recordings) / rate, 2),
        "lengths": lengths_of(lengths),
        "split": {
            part: {"examples": section.n_examples, "samples": len(section.values(TARGET))}
            for part, section in sections.items()
        },
    }


def _fingerprint(sections: dict[str, Examples]) -> str:
    digest = hashlib.sha256()
    for part, section in sections.items():
        for name, field in section.fields.items():
            digest.update(f"{part} {name} {field.values.shape}".encode())
            digest.update(field.offsets[0].tobytes())
            digest.update(np.ascontiguousarray(field.values).data)
    return digest.hexdigest()[:32]
