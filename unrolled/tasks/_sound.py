"""Sound as examples: the base of tasks whose targets are samples, with what is known of a recording beside them.

A sample is an id (a level behind the special tokens); where a model reads numbers, the place of its level. What is
known beforehand are vectors, one for a whole piece or one for each frame, the `source` of a batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core import task
from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.opening import read_json
from unrolled.core.outside import write_new
from unrolled.core.tokens import SPECIALS
from unrolled.data.codecs.samples import Samples
from unrolled.data.collate import collate
from unrolled.data.config import DataConfig
from unrolled.data.examples import ENDS, Examples, ragged
from unrolled.data.prepared import kept, n_values, settings_of, used
from unrolled.data.sound_conditions import Conditions
from unrolled.data.sounds_prepare import prepare_sounds
from unrolled.data.sources.clips import SUFFIXES, Clip, clip_of, clips, one_clip
from unrolled.tasks import _next
from unrolled.tasks._sound_config import SoundConfig
from unrolled.tasks._sound_pictures import wav_bytes

CODEC = "sound.json"
USED = {"split", "seed", "fraction", "held_out", "condition"}  # of the settings of data; the others are about text


class SoundTask(_next.NextTask):
    """The base: data, codec, conditions, files."""

    config: SoundConfig

    def __init__(self, config: SoundConfig, data: DataConfig) -> None:
        super().__init__(config, data)
        self.codec = Samples(config.bits)
        self.rate = config.rate or 0
        self.conditions = Conditions()
        self._is_saved = False

    # ---- data

    def prepare(self, source: Any) -> None:
        plain = type(self.data)()
        unused = [n for n, value in self.data if n not in USED and value != dict(plain)[n]]
        if unused:
            raise UsageError(f"{unused[0]} is a setting for text; next-sample has {', '.join(sorted(USED))}")
        known = self.conditions if self._is_saved else None
        own = None if known is None else known.model_dump(mode="json")
        asked = {"task": type(self).__module__, "data": settings_of(self.data), "known": own}
        asked["sound"] = self.config.model_dump(mode="json", include=set(SoundConfig.model_fields))
        found = kept(source, asked, lambda: prepare_sounds(source, self.data, self.config.form(), known))
        self.prepared = replace(found, sections=used(found.sections, self.data, n_values))
        self.rate, self.conditions = found.told["rate"], Conditions.parse(found.told["conditions"])

    def save_codec(self, directory: Path) -> None:
        told = {"rate": self.rate, "bits": self.codec.bits, "conditions": self.conditions.model_dump(mode="json")}
        write_new(directory / CODEC, json.dumps(told).encode() + b"\n")

    def load_codec(self, directory: Path) -> None:
        try:
            told = read_json(directory / CODEC, within=directory)
            self.rate, self.conditions = int(told["rate"]), Conditions.parse(told["conditions"])
        except (ValueError, TypeError, KeyError, OverflowError, UsageError) as error:
            raise DataError(f"{directory / CODEC}: damaged, it does not say how sound was read ({error})") from None
        if not 1 <= self.rate <= 10_000_000:
            raise DataError(f"{directory / CODEC}: damaged, invalid rate {self.rate}: expected 1 to 10,000,000")
        self._is_saved = True

    def describe(self) -> dict[str, Any]:
        return {}

    def recall(self, facts: Mapping[str, Any]) -> None:
        pass

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        lengths = self.sections["train"].lengths(TARGET)
        return [{"samples": int(m), "seconds": round(int(m) / self.rate, 3), "split": "train"} for m in lengths[:n]]

    def size(self, split: str) -> int:
        return len(self.sections[split].values(TARGET))

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """Recordings with what is known of them; bare ones in a list are files, or samples at the rate of the run."""
        if isinstance(source, list | tuple):
            for i, each in enumerate(source):
                place = f"clip {i}"
                yield [self._given(clip_of(each, place), i) if isinstance(each, Mapping) else
                       task.Given(each, number=i, place=place)]  # fmt: skip
            return
        hearing = self.config.form().hearing
        rate, found = clips(source, hearing)
        if rate != self.rate:
            raise self._other_rate(source, rate)
        for number, clip in enumerate(found):
            yield [self._given(clip, number)._replace(names={"file": clip.place})]

    def _given(self, clip: Clip, number: int) -> task.Given:
        names = [each.name for each in self.conditions.columns]
        words = ",".join(f"{name}={clip.known[name]}" for name in names if name in clip.known)
        return task.Given(clip.samples, words or None, number=number, place=clip.place)

    def _other_rate(self, source: Any, rate: int) -> DataError:
        return DataError(f"{source}: has {rate:,} samples a second, but this run has {self.rate:,}; convert it first")

    # ---- as a model reads it

    @property
    def is_numbers(self) -> bool:
        """Whether samples are read as numbers, not as tokens."""
        return True

    def _require_aligned(self, batching: Any, carried: bool) -> None:
        """A chunk that stands alone would be read with the features of the beginning of its piece."""
        longest = int(self.sections["train"].lengths(TARGET).max(initial=0))
        if carried or self.conditions.features == "none" or batching.chunk is None or longest <= batching.chunk:
            return
        raise UsageError(
            "features run along with the samples, so pieces cannot be cut for a model whose state grows: give "
            f"{option('piece')} of at most {batching.chunk / self.rate:.3g} seconds, or a larger {option('chunk')}"
        )

    def as_read(self, batch: Batch) -> Batch:
        """A batch of ids as the model reads it: where it reads numbers, the places of their levels, 0 for <start>."""
        if not self.is_numbers:
            return batch
        y, real = self._places(batch.y), batch.y >= len(SPECIALS)
        return replace(batch, x=self._places(batch.x), targets={TARGET: y}, target_masks={TARGET: real})

    def _places(self, ids: Tensor) -> Tensor:
        u = (ids - len(SPECIALS)).double() * (2 / (self.codec.levels - 1)) - 1
        return u.masked_fill(ids < len(SPECIALS), 0.0).float().unsqueeze(-1)  # [B, T, 1]

    def _heard(self, choices: list[Any]) -> NDArray[np.float32]:
        """Samples [T] of what was chosen: ids, or places."""
        values = np.array(choices)
        return self.codec.heard(values[:, 0]) if self.is_numbers else self.codec.decode(values)

    def example(self, value: Any) -> tuple[Batch, list[str]]:
        """Samples, or a saved prediction with its condition; the names are places in milliseconds."""
        line = value if isinstance(value, Mapping) else {"samples": value}
        if "samples" not in line:
            raise DataError("the input: expected samples, or an object that has them under the name 'samples'")
        ids = self.codec.encode(one_clip(line["samples"], self.rate, "the input"))
        vectors = []
        if self.conditions.width:
            given = line.get("condition") or np.zeros((1, self.conditions.width)).tolist()
            vectors = [np.array(given, np.float32)]
        batch = self.as_read(collate(self._examples([ids], vectors), np.arange(1), self.form))
        return batch, [f"{1000 * t / self.rate:.4g} ms" for t in range(batch.x.shape[1])]

    def input_of(self, line: Mapping[str, Any]) -> Any:
        return {name: line[name] for name in ("samples", "condition") if name in line}

    def offered(self, value: Any) -> task.Offered:
        return task.Offered("sound", value["samples"], self.rate)

    def _examples(self, ids: Sequence[NDArray[Any]], vectors: Sequence[NDArray[Any]]) -> Examples:
        fields = {TARGET: ragged(ids), **({SOURCE: ragged(vectors)} if len(vectors) else {})}
        return Examples(fields, {ENDS: np.zeros(len(ids), bool)})

    def _vectors(self, given: task.Given, samples: NDArray[Any]) -> list[NDArray[Any]]:
        """What is known of an input: what its condition says, and features of its own samples."""
        if not self.conditions.width:
            if given.condition:
                self._asked(given.condition)  # refused
            return []
        return [self.conditions.of_input(given.condition, samples)]

    def _asked(self, words: str | None) -> NDArray[Any] | None:
        return self.conditions.asked(words, lambda file: one_clip(file, self.rate, file))

    # ---- files

    def files_of(self, made: list[dict[str, Any]], out: str | Path) -> dict[Path, bytes]:
        """OUT.wav, or OUT-0.wav, OUT-1.wav, ... the most probable first; with 16 bits."""
        base = Path(out).with_suffix("") if Path(out).suffix.lower() in SUFFIXES else Path(out)
        names = [f"{base.name}.wav" if len(made) == 1 else f"{base.name}-{i}.wav" for i in range(len(made))]
        return {base.with_name(name): wav_bytes(each["samples"], self.rate) for name, each in zip(names, made)}


class Numbered:
    """Training batches of ids, as numbers."""

    def __init__(self, inner: task.Sampler, read: Callable[[Batch], Batch]) -> None:
        self.inner, self._read = inner, read
        self.steps_per_epoch, self.tokens_per_step, self.notes = (
            inner.steps_per_epoch,
            inner.tokens_per_step,
            inner.notes,
        )

    def batch(self, step: int) -> Batch:
        return self._read(self.inner.batch(step))
