"""What is known of a recording beforehand, as vectors that run beside its samples.

    class      0 and 1, one column for each class that training data has
    number     (x - mean) / deviation of training data
    features   frames of log-mel energies, or of pitch and loudness, in units of their deviation in training data

All of it stands side by side in each frame [M, C]; without features there is one frame for the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unrolled.core.config import Record
from unrolled.core.errors import DataError, UsageError, nearest, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_number
from unrolled.data.files.pitch import MIDDLE, pitch_frames
from unrolled.data.files.spectrum import Floats, log_mel

Features = Literal["none", "log-mel", "pitch"]
MOST_CLASSES = 20  # different numbers that are still taken for names of classes
WINDOW = 4  # hops of a frame
BLOCK = 1000  # frames that are computed at once
SMALL = 1e-6

Frames = NDArray[np.float32]


class Column(Record):
    """A condition of a whole recording: a class, or a number."""

    name: str
    classes: list[str] = []
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def width(self) -> int:
        return len(self.classes) or 1

    def vector(self, value: Any, place: str) -> Frames:
        """[width]"""
        if not self.classes:
            return np.array([(as_number(str(value), place) - self.mean) / self.deviation], np.float32)
        return np.array([str(value) == each for each in self.classes], np.float32)


class Conditions(Record):
    """All that is known of a recording."""

    columns: list[Column] = []
    features: Features = "none"
    hop: int = 1
    """samples of a frame of features"""
    bands: int = 0
    rate: int = 1
    mean: list[float] = []
    deviation: list[float] = []

    @property
    def width(self) -> int:
        return sum(each.width for each in self.columns) + len(self.mean)

    @property
    def window(self) -> int:
        """Samples of a frame of features; two periods of a low pitch must be in it."""
        return (2 * WINDOW if self.features == "pitch" else WINDOW) * self.hop

    def vectors(self, known: Mapping[str, Any], samples: Floats, place: str) -> Frames:
        """[M, C] of a recording."""
        local = None if self.features == "none" else self.scaled(features_of(self, samples))
        return self.joined(known, local, place)

    def scaled(self, found: Frames) -> Frames:
        return ((found - np.array(self.mean)) / np.array(self.deviation)).astype(np.float32)

    def joined(self, known: Mapping[str, Any], local: Frames | None, place: str) -> Frames:
        whole = [each.vector(_known(known, each.name, place), place) for each in self.columns]
        vector = np.concatenate([*whole, np.empty(0, np.float32)])  # [G]
        if local is None:
            return vector[None]
        return np.concatenate([np.tile(vector, (len(local), 1)), local], axis=1).astype(np.float32)

    # ---- asked for

    def asked(self, words: str | None, read: Any) -> Frames | None:
        """[M, C] of `digit=7,speaker=ann,pitch=220`; features are those of a file, which `read` reads, or a pitch."""
        if not self.width:
            if words:
                raise UsageError(f"this run was trained without {option('condition')}, so it takes none")
            return None
        given = self._parsed(words)
        local = None
        if self.features != "none":
            local = self._local(given.pop(self.features), read)
        for each in self.columns:
            value = given[each.name]
            if each.classes and value not in each.classes:
                raise UsageError(f"there is no {each.name} '{value}'; {nearest(value, each.classes)}")
        return self.joined(given, local, option("condition"))

    def of_input(self, words: str | None, samples: Floats) -> Frames:
        """[M, C] of a recording that is given: classes and numbers by `digit=7`, features from its samples."""
        alone = self.model_copy(update={"features": "none", "mean": [], "deviation": []})
        known = alone._parsed(words) if self.columns else {}
        return self.vectors(known, samples, option("condition"))

    def example(self) -> str:
        """Words that `asked` takes; empty: it takes none."""
        return ",".join(f"{name}={self._example(name)}" for name in self._names())

    def _names(self) -> list[str]:
        return [*(each.name for each in self.columns), *([] if self.features == "none" else [self.features])]

    def _parsed(self, words: str | None) -> dict[str, str]:
        names, usage = self._names(), self.example()
        parts = (words or "").split(",")
        if len(names) == 1 and words and "=" not in words:
            return {names[0]: words}
        given = dict(part.split("=", 1) for part in parts if "=" in part)
        if sorted(given) != sorted(names) or len(given) != len(parts):
            raise UsageError(f"this run needs {option('condition')} {usage}; found {words or 'nothing'}")
        return given

    def _example(self, name: str) -> str:
        column = next((each for each in self.columns if each.name == name), None)
        if column is None:
            return "FILE.wav" if name == "log-mel" else "220"
        return column.classes[0] if column.classes else f"{column.mean:.4g}"

    def _local(self, value: str, read: Any) -> Frames:
        try:
            hertz = float(value)
        except ValueError:
            return self.scaled(features_of(self, read(value)))
        if self.features != "pitch" or not hertz > 0:
            raise UsageError(f"invalid condition {self.features}={value}: expected the name of a sound file")
        octaves = (np.log2(hertz / MIDDLE) - self.mean[0]) / self.deviation[0]
        return np.array([[octaves, (1 - self.mean[1]) / self.deviation[1], 0.0]], np.float32)


def features_of(conditions: Conditions, samples: Floats) -> Frames:
    """[M, F] as computed; some frames at a time, so that long recordings need no more memory."""
    hop, window, rate = conditions.hop, conditions.window, conditions.rate
    n_frames = 1 + max(0, -(-(len(samples) - window) // hop))
    found = []
    for m in range(0, n_frames, BLOCK):
        some = samples[m * hop : (min(m + BLOCK, n_frames) - 1) * hop + window]
        if conditions.features == "pitch":
            found.append(pitch_frames(some, rate, window, hop))
        else:
            found.append(log_mel(some, window, hop, conditions.bands, rate))
    return np.concatenate(found)


def fitted(
    names: Sequence[str], known: Sequence[Mapping[str, Any]], features: Features, hop: int, bands: int, rate: int
) -> Conditions:
    """From what is known of the training recordings; the scale of features is fitted by `with_scale`."""
    columns = [_column(name, [_known(each, name.split(":")[0], "a training clip") for each in known]) for name in names]
    return Conditions(columns=columns, features=features, hop=hop, bands=bands, rate=rate)


def with_scale(conditions: Conditions, found: Sequence[Frames]) -> Conditions:
    """With mean and deviation of the features of training recordings."""
    if conditions.features == "none":
        return conditions
    every = np.concatenate(found).astype(np.float64)
    deviation = np.maximum(every.std(axis=0), SMALL)
    return conditions.model_copy(update={"mean": every.mean(axis=0).tolist(), "deviation": deviation.tolist()})


def _column(asked: str, values: Sequence[Any]) -> Column:
    name, _, kind = asked.partition(":")
    if kind not in ("", "class", "number"):
        raise UsageError(f"invalid condition {asked}: expected {name}:class or {name}:number")
    texts = sorted({str(each) for each in values})
    if kind == "number" or (not kind and len(texts) > MOST_CLASSES and all(map(_is_number, texts))):
        numbers = np.array([as_number(str(each), f"the column '{name}'") for each in values])
        return Column(name=name, mean=float(numbers.mean()), deviation=max(float(numbers.std()), SMALL))
    return Column(name=name, classes=sorted(texts, key=lambda text: (len(text), text) if text.isdigit() else (0, text)))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _known(known: Mapping[str, Any], name: str, place: str) -> Any:
    if name not in known:
        raise DataError(f"{place}: nothing called '{name}' is known of it; known are {some(known)}")
    return known[name]
