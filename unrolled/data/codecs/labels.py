"""Codecs of answers and of series: fitted on the training split only, saved as JSON, loaded back.

| codec | answer | encoded |
|---|---|---|
| ClassCodec | a class | its number, classes sorted by name |
| SetCodec | a tuple of classes | [C] zeros and ones |
| NumberScaler | numbers [n] | (y - mean) / std, each by itself |
| TagCodec | a tag a word | [T] their numbers |
| SeriesScaler | [T, D] | (y - mean) / std, each channel by itself |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, nearest
from unrolled.core.opening import JSON, json_text, parse_json, read_text
from unrolled.core.outside import write_new
from unrolled.data.files.cell_values import Typed, narrowed, shown
from unrolled.data.labelled import Labelled
from unrolled.data.reading import Answers

FILE = "answers.json"
Label = str | bool | int | float
TYPES: dict[str, type] = {"text": str, "integer": int, "float": float, "boolean": bool}


class AnswerCodec:
    """The base: answers to arrays and back."""

    kind: ClassVar[Answers]

    @property
    def size(self) -> int:
        """How many outputs a model needs."""
        raise NotImplementedError

    def encode(self, answer: Any, place: str) -> Any:
        """An answer as a number or array; `place` says in an error where it stands."""
        raise NotImplementedError

    def decode(self, values: Any) -> Any:
        """The answer again, as a user writes it."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        raise NotImplementedError

    def save(self, directory: str | Path, file: str = FILE) -> None:
        write_new(Path(directory) / file, self.to_json().encode())

    def to_json(self) -> str:
        return json_text({"answers": self.kind, **self.values()}) + "\n"


class ClassCodec(AnswerCodec):
    """One class of several.

    A model has an output for each class of the training split, and for no other. Classes that only held-out data has
    (`unseen`) are numbered behind those: no model can predict them, so they are wrong whatever is predicted.
    """

    kind: ClassVar[Answers] = "class"
    word: ClassVar[str] = "class"

    def __init__(
        self,
        names: Sequence[str],
        counts: Sequence[int] | None = None,
        labels: str = "text",
        unseen: Sequence[str] = (),
    ) -> None:
        if list(names) != sorted(set(names)):
            raise ValueError("the classes are not sorted, or one occurs twice")
        if labels not in TYPES:
            raise ValueError(f"invalid labels {labels}")
        self.names, self.unseen, self.labels = list(names), list(unseen), labels
        self.counts = np.array([0] * len(names) if counts is None else counts, np.int64)  # [C] in the training split
        if len(self.counts) != len(self.names):
            raise ValueError("the number of counts differs from the number of classes")
        self._number_of = {name: i for i, name in enumerate(self.all_names)}
        self._label_of = [_label(name, labels) for name in self.all_names]

    @classmethod
    def count(cls, answers: Iterable[Any], name: str, typed: bool = True) -> Self:
        """From the answers of the training split; where these are not `typed`, integers are recognised by their
        digits."""
        counts: Counter[str] = Counter()
        types: set[str] = set()
        for answer in answers:
            parts = cls.parts(answer)
            counts.update(parts)
            types.update(_type_of(part) for part in parts)
        if not counts:
            raise DataError(f"{name}: no example has a {cls.word}, so there is nothing to learn")
        if len(counts) == 1 and cls.kind != "classes":
            raise DataError(f"{name}: found a single {cls.word}, {shown(next(iter(counts)))}; at least two are needed")
        names = sorted(map(str, counts))
        if not typed and all(_is_integer(each) for each in names):
            types = {"integer"}
        return cls(names, [counts[each] for each in names], types.pop() if len(types) == 1 else "text")

    def with_unseen(self, found: Iterable[str]) -> Self:
        """The same with those of the found classes that training did not show, behind the ones that it has already."""
        more = sorted({str(name) for name in found} - set(self.all_names))
        return type(self)(self.names, self.counts.tolist(), self.labels, [*self.unseen, *more])

    def with_classes_of(self, examples: Iterable[Labelled]) -> Self:
        """The same with the classes of other examples."""
        return self.with_unseen(name for example in examples for name in self.parts(example.answer))

    @staticmethod
    def parts(answer: Any) -> Sequence[str]:
        return (answer,)

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def all_names(self) -> list[str]:
        """Of the classes of training, and behind them of those that only held-out data has."""
        return [*self.names, *self.unseen]

    def number(self, name: str, place: str) -> int:
        if name not in self._number_of:
            raise DataError(
                f"{place}: the {self.word} {shown(name)} is not in the training split; {nearest(name, self.names[:50])}"
            )
        return self._number_of[name]

    def label(self, number: int) -> Label:
        """A class as the user writes it: 3 where classes are integers."""
        return self._label_of[number]

    def encode(self, answer: Any, place: str) -> Any:
        return np.int64(self.number(answer, place))

    def decode(self, values: Any) -> Any:
        return self.label(int(values))

    def values(self) -> dict[str, Any]:
        return {"names": self.names, "counts": self.counts.tolist(), "labels": self.labels}


def _type_of(name: str) -> str:
    if not isinstance(name, Typed):
        return "text"
    return next(word for word, kind in TYPES.items() if type(name.value) is kind)


def _is_integer(name: str) -> bool:
    """Whether a text is an integer as Python writes it, so that nothing is lost: 1 and -1, not 01 or +1."""
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(name)) == name


def _label(name: str, labels: str) -> Label:
    if labels == "text" or (labels != "boolean" and not _is_integer(name)):
        return name
    return {"true": True, "false": False}.get(name, name) if labels == "boolean" else TYPES[labels](name)


class SetCodec(ClassCodec):
    """Any number of classes at once."""

    kind: ClassVar[Answers] = "classes"

    @staticmethod
    def parts(answer: Any) -> Sequence[str]:
        return tuple(answer)

    def encode(self, answer: Any, place: str) -> NDArray[np.float32]:
        result = np.zeros(len(self._number_of), np.float32)  # [C + U], those that training never showed last
        for name in answer:
            result[self.number(name, place)] = 1
        return result

    def decode(self, values: Any) -> tuple[Label, ...]:
        """The classes whose value (0 or 1, or a probability) is above one half."""
        return tuple(self.label(i) for i, value in enumerate(values) if value > 0.5)


class TagCodec(ClassCodec):
    """A tag for each word."""

    kind: ClassVar[Answers] = "tags"
    word: ClassVar[str] = "tag"

    @staticmethod
    def parts(answer: Any) -> Sequence[str]:
        return answer

    def encode(self, answer: Any, place: str) -> NDArray[np.int64]:
        return np.array([self.number(tag, place) for tag in answer], np.int64)  # [T]

    def decode(self, values: Any) -> list[Label]:
        return [self.label(int(value)) for value in values]


CLASS_CODECS: dict[str, type[ClassCodec]] = {"class": ClassCodec, "classes": SetCodec, "tags": TagCodec}


class NumberScaler(AnswerCodec):
    """Numbers brought to mean 0 and standard deviation 1."""

    kind: ClassVar[Answers] = "numbers"

    def __init__(self, mean: Sequence[float] | NDArray[Any], std: Sequence[float] | NDArray[Any]) -> None:
        self.mean, self.std = np.array(mean, np.float64), np.array(std, np.float64)  # [n]
        if self.mean.ndim != 1 or self.mean.shape != self.std.shape or not len(self.mean):
            raise ValueError("the numbers of means and standard deviations differ")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all() and (self.std > 0).all()):
            raise ValueError("a mean or standard deviation is not valid")

    @property
    def size(self) -> int:
        return len(self.mean)

    def encode(self, answer: Any, place: str) -> NDArray[np.float32]:
        if np.shape(answer)[-1] != self.size:
            raise DataError(f"{place}: found {np.shape(answer)[-1]} numbers, expected {self.size}")
        return narrowed((answer - self.mean) / self.std, place)

    def decode(self, values: Any) -> NDArray[np.float64]:
        return np.asarray(values, np.float64) * self.std + self.mean

    def values(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}


class SeriesScaler(NumberScaler):
    """[T, D] with each channel brought to mean 0 and standard deviation 1 over all steps of the training split."""

    kind: ClassVar[Answers] = "series"


def fit_scaler(kind: type[NumberScaler], arrays: Iterable[NDArray[Any]], name: str) -> NumberScaler:
    """Mean and standard deviation of rows [.., n], gathered array by array (Chan, Golub & LeVeque 1983).

    An answer that never varies is refused; a channel of a series that never varies is only shifted.
    """
    n, mean, squares = 0, np.zeros(1), np.zeros(1)
    for array in arrays:
        rows = np.atleast_2d(np.asarray(array, np.float64))  # [m, n]
        m, own = len(rows), rows.mean(axis=0)
        step = own - mean
        squares = squares + ((rows - own) ** 2).sum(axis=0) + step**2 * (n * m / (n + m))
        mean = mean + step * (m / (n + m))
        n += m
    if n == 0:
        raise DataError(f"{name}: there are no numbers to learn from")
    std = np.sqrt(squares / n)
    constant = std <= 1e-12 * np.maximum(1.0, np.abs(mean))
    if constant.any() and kind is NumberScaler:
        number = int(np.flatnonzero(constant)[0])
        raise DataError(
            f"{name}: target {number + 1} is {mean[number]:g} in every example of the training split; give "
            "examples with different targets"
        )
    return kind(mean, np.where(constant, 1.0, std))


def fit_answers(kind: Answers, examples: Iterable[Labelled], name: str, typed: bool = True) -> AnswerCodec:
    """The codec of some answers, from the examples of the training split."""
    answers = (example.answer for example in examples)
    if kind in CLASS_CODECS:
        return CLASS_CODECS[kind].count(answers, name, typed)
    return fit_scaler(SeriesScaler if kind == "series" else NumberScaler, answers, name)


def answers_from_json(text: str) -> AnswerCodec:
    """A codec from what `to_json` gave; ValueError, KeyError or TypeError when that is damaged."""
    values: Mapping[str, Any] = parse_json(text, "the codec of targets")
    if values["answers"] in ("numbers", "series"):
        return {"numbers": NumberScaler, "series": SeriesScaler}[values["answers"]](values["mean"], values["std"])
    codec = CLASS_CODECS[values["answers"]]
    names = values["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names are not a list of strings")
    return codec(names, values["counts"], values.get("labels", "text"))


def load_answers(directory: str | Path, file: str = FILE) -> AnswerCodec:
    """Read what `save` wrote; a damaged file is a DataError."""
    path = Path(directory) / file
    text = read_text(path, JSON, within=Path(directory))
    try:
        return answers_from_json(text)
    except (DataError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: damaged, or not written by unrolled ({error}); restore the file") from None
