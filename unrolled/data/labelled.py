"""Labelled examples: an input, its answer and its place, from whatever a user has.

| input | what it is |     | answer | what it is |
|---|---|---|---|---|
| text | a string | | class, classes | a name; a tuple of names, perhaps empty |
| words | a list of words | | numbers | an array [n] |
| series | an array [T, D] | | tags; series | a list, one tag a word; an array [T, D'] |

A source is read as often as needed, always in the same order, and every example is checked on the way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError, listed, some
from unrolled.core.front import option
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.cells import LARGEST
from unrolled.data.given_splits import ALL, PARTS, named_by_split, opened_alike, part_in, settled, sources_by_split
from unrolled.data.plain import TextFile, named_path, unpacked
from unrolled.data.reading import Answers, Kind, Reading
from unrolled.data.tables import ListTable

SOUNDS = (".wav", ".flac", ".ogg")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
CONLL = (".conll", ".conllu", ".iob", ".iob2", ".bio")


class Labelled(NamedTuple):
    """One example; `part` is train, valid or test where the source says so, and otherwise all."""

    input: Any
    answer: Any
    place: str
    group: str | None = None
    part: str = ALL
    id: str | None = None
    """of a series in a long table"""
    series: str | None = None
    """of a window: the place of the series that it was cut from"""


@dataclass
class LabelledSource:
    """Examples that can be read again and again: `for example in source`."""

    name: str
    kind: Kind
    answers: Answers
    read: Callable[[], Iterator[Labelled]]
    notes: dict[str, None] = field(default_factory=dict)
    """what was chosen, changed or left out while reading; complete after one pass"""
    reading: Reading = field(default_factory=Reading)
    """the settings with the columns that were chosen: a saved run reads other files with these"""
    typed: bool = False
    """whether texts and numbers are told apart, as in JSON or a data frame; in a .csv file and in names all is text"""

    def __iter__(self) -> Iterator[Labelled]:
        first: Labelled | None = None
        for example in self.read():
            check(example, self.kind, self.answers, first or example)
            first = first or example
            yield example
        if first is None:
            raise DataError(f"{self.name}: there is no example in it; there is nothing to learn from")


def check(example: Labelled, kind: Kind, answers: Answers, first: Labelled) -> None:
    """One example by itself and beside the first."""
    place = example.place
    if kind == "text" and not example.input.strip():
        raise DataError(f"{place}: the text is empty; fill it in or remove it")
    if kind == "words" and (not example.input or not all(example.input)):
        raise DataError(f"{place}: there is no word in it; fill it in or remove it")
    if kind == "series":
        check_series(example.input, place)
        if example.input.shape[1] != first.input.shape[1]:
            raise DataError(
                f"{place}: the series has {example.input.shape[1]} channels, but the first ({first.place}) has "
                f"{first.input.shape[1]}; all need the same"
            )
    if answers == "class" and not example.answer.strip():
        raise DataError(f"{place}: the class is empty; fill it in or remove the example")
    if answers == "numbers" and example.answer.shape != first.answer.shape:
        raise DataError(f"{place}: found {len(example.answer)} answers where {len(first.answer)} are expected")
    if answers == "tags" and len(example.answer) != len(example.input):
        raise DataError(
            f"{place}: found {len(example.answer)} tags for {len(example.input)} words; each word needs one"
        )
    if answers == "series":
        check_series(example.answer, place)
        if len(example.answer) != len(example.input) or example.answer.shape[1] != first.answer.shape[1]:
            raise DataError(
                f"{place}: the answer has shape {list(example.answer.shape)} and the input "
                f"{list(example.input.shape)}; both need the same number of steps"
            )


def check_series(values: NDArray[Any], place: str) -> None:
    """Numbers [T, D] without NaN or infinity, in single precision too."""
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{place}: found shape {list(values.shape)}, expected numbers [time, channels]; remove it")
    finite = np.abs(values) <= LARGEST  # False of NaN too
    if not finite.all():
        step, channel = np.argwhere(~finite)[0]
        raise DataError(
            f"{place}, step {step + 1}, channel {channel + 1}: found {values[step, channel]}, expected a number; fill "
            f"the gap, or set {option('missing')} to zero, previous or line"
        )


def ending_of(path: Path) -> str:
    """`.csv` of `a.csv` and of the packed `a.csv.gz`, in small letters."""
    return Path(unpacked(path.name.lower())).suffix


def open_labelled(source: Any, reading: Reading, answers: Answers) -> LabelledSource:
    """Whatever was handed over as a source of examples with answers of the wanted kind.

    `source` is a path (see the readers), `builtin:NAME`, a list of dicts, a data frame, arrays (x, y), a mapping of
    such arrays by name, or a mapping {"train": source, "test": source}. With `answers="none"` only inputs are read.
    Series with a series as the answer are cut into windows where the reading asks for it.
    """
    opened = _open(source, reading, answers)
    if answers != "series" or reading.window is None:
        return opened
    from unrolled.data.pieces import in_windows

    return in_windows(opened, reading.window)


def _open(source: Any, reading: Reading, answers: Answers) -> LabelledSource:
    if isinstance(source, str) and source.startswith(BUILTIN):
        return _open_builtin(source, answers)
    sources = sources_by_split(source)
    if sources is not None:
        name = str(source) if isinstance(source, str | os.PathLike) else "the data"
        parts = opened_alike(sources, lambda each: _open(each, reading, answers),
                             lambda each, first: _open(each, _as_in(first, each, reading), answers))  # fmt: skip
        return join_parts(parts, name)
    if isinstance(source, str | os.PathLike):
        return _open_path(named_path(source), reading, answers)
    if isinstance(source, Mapping | tuple):
        from unrolled.data.labelled_arrays import open_arrays

        return open_arrays(source, "the data", reading, answers)
    from unrolled.data.labelled_table import open_rows

    return open_rows(source, reading, answers)


def _open_builtin(source: str, answers: Answers) -> LabelledSource:
    found = asked(source, "labelled", "rows")
    spec = found.spec
    if spec.holds == "rows":
        from unrolled.data.labelled_table import open_columns

        reading = Reading(column=spec.columns["text"], target=spec.columns["target"])
        return open_columns(ListTable(found.read(), source), reading, answers)
    if answers not in (spec.answers, "none"):
        raise UsageError(f"{source}: the answers are {spec.answers}, not {answers}")

    def read() -> Iterator[Labelled]:
        for x, y, place, part, _ in found.read():
            yield Labelled(x, None if answers == "none" else y, f"{source}, {place}", None, part)

    return LabelledSource(source, "series", answers, read)


def _as_in(first: LabelledSource, source: Any, reading: Reading) -> Reading:
    """How the source of a split is read beside another: by the columns found there; arrays have names of their own."""
    has_columns = not isinstance(source, tuple | Mapping)
    return (first.reading if has_columns else reading).updated({"part": None})


def join_parts(parts: Mapping[str, LabelledSource], name: str) -> LabelledSource:
    """Sources that are a part each, as one."""
    kinds = {source.kind for source in parts.values()}
    if len(kinds) > 1:
        raise DataError(f"{name}: the parts hold different things, {listed(sorted(kinds))}; they must be alike")
    first = next(iter(parts.values()))
    result = LabelledSource(name, first.kind, first.answers, lambda: read(), {}, first.reading, first.typed)

    def read() -> Iterator[Labelled]:
        for part, source in parts.items():
            for example in source:
                yield example._replace(part=settled(example.part, part, parts, example.place))
            result.notes.update(source.notes)

    return result


def _open_path(path: Path, reading: Reading, answers: Answers) -> LabelledSource:
    if path.is_dir():
        return _open_folder(path, reading, answers)
    if not path.exists() and (pair := beside(path)):
        return join_parts({part: _open_path(file, reading, answers) for part, file in pair.items()}, str(path))
    TextFile(path).require()
    ending = ending_of(path)
    if ending == ".ts":
        from unrolled.data.ts import open_ts

        return open_ts(path, reading, answers)
    if ending == ".npz":
        from unrolled.data.labelled_arrays import open_npz

        return open_npz(path, reading, answers)
    if ending in (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet"):
        from unrolled.data.labelled_table import open_table_file

        return open_table_file(path, reading, answers)
    if ending in CONLL or answers == "tags":
        from unrolled.data.tagged import open_tagged

        return open_tagged([path], str(path), reading, answers)
    if ending in SOUNDS or ending in IMAGES:
        return _open_files([path], path.parent, str(path), reading, answers)
    from unrolled.data.labelled_text import open_lines

    return open_lines(path, reading, answers)


def beside(path: Path) -> dict[str, Path]:
    """`data/GunPoint` for data/GunPoint_TRAIN.ts and data/GunPoint_TEST.ts."""
    try:
        found = sorted(p for p in path.parent.iterdir() if re.fullmatch(re.escape(path.name) + r"[-_.]\w+\..+", p.name))
    except (OSError, ValueError):
        return {}
    pair = {part: file for file in found if (part := part_in(file.name[len(path.name) :].lstrip("-_.")))}
    return {part: pair[part] for part in PARTS if part in pair} if "train" in pair else {}


def _open_folder(folder: Path, reading: Reading, answers: Answers) -> LabelledSource:
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if any("-ubyte" in path.name for path in entries):
        from unrolled.data.images import open_idx

        return open_idx(folder, reading, answers)
    if named_by_split(folder):  # and not one file for each, which is a source by split
        raise UsageError(f"{folder}: several files are for one part; name one set, such as {_set_name(entries[0])}")
    files = sorted((p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")),
                   key=lambda path: path.relative_to(folder).as_posix())  # fmt: skip
    if not files:
        raise DataError(f"{folder}: there is no file in this folder; put examples into it")
    return _open_files(files, folder, str(folder), reading, answers)


def _set_name(path: Path) -> Path:
    return path.with_name(re.split(r"[-_.]", path.name)[0])


def most_of(files: Iterable[Path], texts: tuple[str, ...] = (".txt",)) -> tuple[str, list[Path]]:
    """What there is most of among files: sounds, images or texts, and which they are."""
    families = {"sound": SOUNDS, "image": IMAGES, "text": texts}
    held = {kind: [path for path in files if ending_of(path) in endings] for kind, endings in families.items()}
    kind = max(held, key=lambda each: len(held[each]))
    return kind, held[kind]


def _open_files(files: list[Path], folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    """Many files: sounds, images, or texts; what there is most of, and a note on the others."""
    kind, chosen = most_of(files, (".txt", *(CONLL if answers == "tags" else ())))
    if not chosen:
        found = some(sorted({path.suffix or "files without an ending" for path in files}))
        raise DataError(f"{folder}: found only {found}; name one of these files, or give .txt, .wav or .png files")
    if answers == "tags":
        from unrolled.data.tagged import open_tagged

        source = open_tagged(chosen, name, reading, answers)
    elif kind == "text":
        from unrolled.data.labelled_text import open_folder

        source = open_folder(chosen, folder, reading, answers)
    elif kind == "sound":
        from unrolled.data.sound import open_clips

        source = open_clips(chosen, folder, name, reading, answers)
    else:
        from unrolled.data.images import open_images

        source = open_images(chosen, folder, name, reading, answers)
    if len(chosen) < len(files):
        source.notes[f"{len(files) - len(chosen)} other files in {folder} were left out"] = None
    return source
