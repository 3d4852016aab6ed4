"""Labelled examples as arrays, in `.npz` files or in memory.

| array | shape | what it is |
|---|---|---|
| x | [n, T] or [n, T, D]; or a list of [T] or [T, D] | series; bytes [n, H, W] and all [n, H, W, C] are images |
| x | a list of texts, or of lists of words | texts, words |
| x with offsets | [N] or [N, D], and [n+1] | series of unequal lengths after each other |
| y | [n], [n, k], or like x | classes, numbers, sets of classes as zeros and ones, clean series, tags of words |
| rate | one number | x is sound at this many samples a second |
| what `bag` names | [n], or [m+1] | the bag of each of n instances; or offsets of m bags, with y [m] |
| | x itself | a list of bags, each a list of instances, with y [m] |

Names that end with _train, _valid and _test (x_train, y_train, ...) are parts. `column`, `target` and `group` name
other arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError, MissingColumn, Misused, UsageError, some
from unrolled.core.front import option
from unrolled.data.bags import in_bags, vector_or_series
from unrolled.data.files.cell_values import as_class, as_classes, as_number, as_words, shown
from unrolled.data.files.in_memory import as_array
from unrolled.data.files.missing_values import fill
from unrolled.data.files.npz import load_npz
from unrolled.data.given_splits import PARTS
from unrolled.data.labelled import Labelled, LabelledSource, join_parts
from unrolled.data.reading import Answers, ImageReading, Kind, Names, Reading, as_names, names_of

INPUT_ARRAYS = ("x", "X", "data", "inputs", "images")
ANSWER_ARRAYS = ("y", "Y", "labels", "label", "target", "targets")
_WRITTEN = {"text": lambda text, _place: str(text), "words": as_words}  # how inputs that are no numbers are read


def open_npz(files: Sequence[Path], _folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    return open_arrays(load_npz(files[0]), name, reading, answers)


def open_arrays(source: Any, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    """(x, y), (x,), or arrays by name."""
    if isinstance(source, tuple):
        if len(source) not in (1, 2):
            raise Misused(f"{name}: found {len(source)} arrays, expected (x, y)")
        whole = _open(dict(zip(("x", "y"), source)), name, reading, answers)
        whole.reading = reading  # places in a tuple are no names of arrays
        return whole
    parts = {part: _of_part(source, part) for part in PARTS}
    given = {part: arrays for part, arrays in parts.items() if arrays}
    if not given:
        return _open(dict(source), name, reading, answers)
    shared = {key: source[key] for key in ("rate",) if key in source}
    opened = {p: _open(arrays | shared, f"{name}, {p}", reading, answers) for p, arrays in given.items()}
    if reading.bag is not None:
        opened = {part: in_bags(each) for part, each in opened.items()}
    return join_parts(opened, name)


def _of_part(source: Mapping[str, Any], part: str) -> dict[str, Any]:
    """x_train or train_x as x."""
    found = {}
    for key, array in source.items():
        for name in (key.removesuffix(f"_{part}"), key.removeprefix(f"{part}_")):
            if name != key:
                found[name] = array
    return found


def _open(arrays: dict[str, Any], name: str, reading: Reading, answers: Answers) -> LabelledSource:
    usual = INPUT_ARRAYS if "offsets" not in arrays else (*INPUT_ARRAYS, *_cut_by(arrays))
    if answers == "none" and len(arrays) == 1:
        usual = tuple(arrays)
    x_name = _find(arrays, reading.column, usual, name, "column", "the inputs")
    bags = _bags(arrays, x_name, reading, name) if reading.bag is not None else None
    x = _cut(arrays[x_name], arrays.get("offsets"), f"{name}, array '{x_name}'") if bags is None else bags.x
    y: Any = None
    y_name: str | None = None
    if answers != "none":
        y_name = _find(arrays, reading.target, ANSWER_ARRAYS, name, "target", "the targets")
        y = arrays[y_name] if isinstance(arrays[y_name], list | tuple) else np.asarray(as_array(arrays[y_name]))
        if answers == "series" and "offsets" in arrays:
            y = _cut(y, arrays["offsets"], f"{name}, array '{y_name}'")
        if not isinstance(y, list | tuple) and np.ndim(y) == 0:
            raise DataError(f"{name}, array '{y_name}': found a single value, expected one for each of {len(x)} inputs")
        y = y if bags is None else bags.spread(y)
        if len(y) != len(x):
            raise DataError(f"{name}: found {len(x)} inputs and {len(y)} targets; give one target for each input")
    group = None if reading.group is None else arrays[_find(arrays, reading.group, (), name, "group", "the groups")]
    if len(x) == 0:
        raise DataError(f"{name}: there are no examples in it, so there is nothing to learn from")
    kind = _kind_of(x[0])
    view = _WRITTEN.get(kind) or _view(x, arrays.get("rate"), reading, name)
    view_answer = _view(y, arrays.get("rate"), reading, name) if answers == "series" else None

    def read() -> Iterator[Labelled]:
        for i, values in enumerate(x):
            place = f"{name}, array '{x_name}', example {i}"
            value = view(values, place)
            here = f"{name}, array '{y_name}', example {i}"
            answer = None if y is None else _answer(y[i], answers, reading, here, view_answer)
            own = None if group is None else str(group[i])
            yield Labelled(value, answer, place, own, bag=None if bags is None else bags.of[i])

    settled = reading.updated({"column": as_names([x_name])} | ({"target": as_names([y_name])} if y_name else {}))
    return LabelledSource(name, kind, answers, read, {}, settled, typed=True)


def _cut_by(arrays: Mapping[str, Any]) -> list[str]:
    """The array that is as long as the offsets say, where there is just one such."""
    offsets = np.asarray(arrays["offsets"])
    last = offsets[-1] if offsets.ndim == 1 and len(offsets) > 1 else None
    found = [key for key, array in arrays.items() if key != "offsets" and np.ndim(array) and len(array) == last]
    return found if len(found) == 1 else []


def _kind_of(first: Any) -> Kind:
    """What inputs are, by the first of them."""
    if isinstance(first, str):
        return "text"
    is_list = isinstance(first, list | tuple | np.ndarray) and len(first) > 0
    return "words" if is_list and isinstance(first[0], str) else "series"


def _find(
    arrays: Mapping[str, Any], asked: Names | None, usual: Sequence[str], name: str, setting: str, what: str
) -> str:
    wanted = None if asked is None else ",".join(names_of(asked, arrays))
    found = wanted if wanted is not None else next((key for key in usual if key in arrays), None)
    if found is None:
        raise UsageError(f"{name}: name the array of {what} with {option(setting)}; it has {some(arrays) or 'nothing'}")
    if found not in arrays:
        raise MissingColumn(name, found, option(setting), arrays, "array")
    return found


def _cut(array: Any, offsets: Any, place: str) -> Any:
    """Arrays that lie after each other as a list of them; a list and an array [n, ...] stay as they are."""
    if isinstance(array, list):
        return array
    array = np.asarray(as_array(array))
    if array.dtype.kind == "O":
        return list(array)
    if array.dtype.kind == "U":
        return array.tolist()
    if offsets is None:
        if array.ndim < 2:
            raise DataError(f"{place}: found shape {list(array.shape)}, expected [examples, time] or more")
        return array
    offsets, length = np.asarray(offsets), len(np.atleast_1d(array))
    whole = offsets.ndim == 1 and offsets.size > 0 and offsets.dtype.kind in "iu"
    if not whole or offsets[0] != 0 or offsets[-1] != length or (offsets[1:] < offsets[:-1]).any():
        raise DataError(
            f"{place}: the offsets must be integers that increase from 0 to {length}, the length of the array"
        )
    return [array[a:b] for a, b in pairwise(offsets)]


def rate_of(value: Any, name: str) -> int:
    """Samples a second, of an array `rate`."""
    from unrolled.data.readers.sound import FASTEST

    found = np.asarray(value)
    if found.size != 1 or found.dtype.kind not in "iuf" or not 1 <= found.item() <= FASTEST:
        raise DataError(f"{name}, array 'rate': found {shown(value)}, expected the number of samples per second")
    return int(found.item())


def _view(x: Any, rate: Any, reading: Reading, name: str) -> Any:
    """How one array becomes a series: as sound, as an image, or as it is."""
    try:
        first = np.asarray(x[0])
    except ValueError:  # lists of unequal lengths, refused with their place when they are read
        first = np.empty(0)
    if rate is not None and first.ndim == 1:
        from unrolled.data.readers.sound import features

        n = rate_of(rate, name)
        return lambda values, place: features(np.asarray(values), n, reading.sound, place)
    if _is_image(first, reading):
        from unrolled.data.readers.image import as_sequence

        return lambda values, place: as_sequence(np.asarray(values), reading.images, place)

    def plain(values: Any, place: str) -> NDArray[np.float64]:
        wide = reading.bag is None or reading.layout == "wide"
        return fill(vector_or_series(values, place, wide), reading.missing, place)

    return plain


class _Instances(NamedTuple):
    """The instances of all bags, and the name of the bag that each is in."""

    x: Any
    of: list[str]
    n: int  # bags, where their number is told otherwise than by their names

    def spread(self, y: Any) -> Any:
        """Targets of bags as targets of instances; those of instances as they are."""
        return y if len(y) != self.n or self.n == len(self.of) else [y[int(bag)] for bag in self.of]


def _bags(arrays: Mapping[str, Any], x_name: str, reading: Reading, name: str) -> _Instances:
    bag = _find(arrays, reading.bag, (), name, "bag", "the bags")
    here, x = f"{name}, array '{bag}'", arrays[x_name]
    if bag == x_name:
        sizes = [len(_as_bag(each, f"{here}, example {i}")) for i, each in enumerate(x)]
        return _Instances([value for each in x for value in each], _numbered(sizes), len(sizes))
    given = np.asarray(as_array(arrays[bag]))
    found = _cut(x, None, f"{name}, array '{x_name}'")
    if given.ndim == 1 and len(given) == len(found):
        return _Instances(found, [as_class(each, f"{here}, instance {i}") for i, each in enumerate(given)], -1)
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) < 2 or given[0] != 0 or given[-1] != len(found):
        raise DataError(
            f"{here}: expected the bag of each of the {len(found)} instances, or offsets from 0 to {len(found)}"
        )
    sizes = np.diff(given).tolist()
    if min(sizes) < 1:
        raise DataError(f"{here}: bag {int(np.argmin(sizes))} is empty or the offsets decrease; remove it")
    return _Instances(found, _numbered(sizes), len(sizes))


def _as_bag(value: Any, here: str) -> Any:
    if isinstance(value, str) or np.ndim(np.asarray(value, object)) == 0:
        raise DataError(f"{here}: found {shown(value)}, expected a list of instances")
    if len(value) == 0:
        raise DataError(f"{here}: the bag is empty; give it an instance or remove it")
    return value


def _numbered(sizes: Sequence[int]) -> list[str]:
    return [str(bag) for bag, size in enumerate(sizes) for _ in range(size)]


def _is_image(first: NDArray[Any], reading: Reading) -> bool:
    """Bytes with two axes, whatever has three, and what is asked to be read as an image."""
    if first.ndim == 3 or (first.ndim == 2 and first.dtype == np.uint8):
        return True
    return first.ndim == 2 and reading.images != ImageReading()


def _answer(value: Any, answers: Answers, reading: Reading, place: str, view: Any) -> Any:
    if answers == "class":
        return as_class(value, place)
    if answers == "classes":
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            return tuple(as_class(i, place) for i in np.flatnonzero(value))
        return as_classes(value, reading.class_separator, place)
    if answers == "numbers":
        return np.array([as_number(each, place) for each in np.atleast_1d(value)])
    if answers == "series":
        return view(value, place)
    if answers == "tags":
        return as_words(value, place)
    raise UsageError(f"{place}: arrays cannot hold {answers}")


READER = ReaderSpec(summary="arrays by name", suffixes=(".npz",), gives="examples", read=open_npz)
