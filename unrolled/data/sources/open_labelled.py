"""Whatever a user hands over as examples with targets: opened by what it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError, some
from unrolled.data.bags import in_bags
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.files.folders import is_about, without_lists
from unrolled.data.files.tables import ListTable
from unrolled.data.files.text_file import TextFile, named_path, unpacked
from unrolled.data.formats import ending_of, reader_of, suffixes_giving, suffixes_of
from unrolled.data.given_splits import PARTS, opened_alike, part_in, require_one_for_each, sources_by_split
from unrolled.data.labelled import Bag, Labelled, LabelledSource, join_parts
from unrolled.data.readers.arrays import open_arrays
from unrolled.data.readers.conll import open_tagged
from unrolled.data.readers.image import open_idx, open_images
from unrolled.data.readers.sound import open_clips
from unrolled.data.reading import Answers, Reading
from unrolled.data.sources.folder_table import folder_table
from unrolled.data.sources.labelled_table import open_columns, open_rows, table_in
from unrolled.data.sources.labelled_text import open_folder, open_lines
from unrolled.data.sources.pairs_files import LANGUAGES, SOURCES, TABBED, TARGETS
from unrolled.data.sources.pieces import in_windows
from unrolled.data.sources.series_files import open_series_files

NO_CLASSES = frozenset({
    "data", "dat", "info", "names", "doc", "docs", "log", "py", "c", "h", "sh", "bin", "idx", "vocab", "model", "cfg",
    "conf", "ini", "yaml", "yml", "toml", "xml", "zip", "tar", "train", "valid", "val", "dev", "test",
})  # fmt: skip


def open_labelled(source: Any, reading: Reading, answers: Answers) -> LabelledSource:
    """Whatever was handed over as a source of examples with answers of the wanted kind.

    `source` is a path (see the readers), `builtin:NAME`, a list of dicts, a data frame, arrays (x, y), a mapping of
    such arrays by name, or a mapping {"train": source, "test": source}. With `answers="none"` only inputs are read.
    Series with a series as the answer are cut into windows where the reading asks for it.
    """
    opened = _open(source, reading, answers)
    if answers != "series" or reading.window is None:
        return opened
    return in_windows(opened, reading.window)


def _open(source: Any, reading: Reading, answers: Answers) -> LabelledSource:
    if isinstance(source, str) and source.startswith(BUILTIN):
        return _open_builtin(source, answers)
    sources = sources_by_split(source)
    if sources is not None:
        named = source if isinstance(source, str | os.PathLike) else sources.get("train")
        name = str(named) if isinstance(named, str | os.PathLike) else "the data"
        parts = opened_alike(sources, lambda each: _open(each, reading, answers),
                             lambda each, first: _open(each, _as_in(first, each, reading), answers))  # fmt: skip
        return join_parts(parts, name)
    alone = _open_one(source, reading, answers)
    return alone if reading.bag is None else in_bags(alone)


def _open_one(source: Any, reading: Reading, answers: Answers) -> LabelledSource:
    if isinstance(source, str | os.PathLike):
        return _open_path(named_path(source), reading, answers)
    if isinstance(source, Mapping | tuple):
        return open_arrays(source, "the data", reading, answers)
    return open_rows(source, reading, answers)


def _open_builtin(source: str, answers: Answers) -> LabelledSource:
    found = asked(source, "labelled", "rows", "bags")
    spec = found.spec
    if spec.holds == "rows":
        reading = Reading(column=spec.columns["text"], target=spec.columns["target"])
        return open_columns(ListTable(found.read(), source), reading, answers)
    if answers not in (spec.answers, "none"):
        raise UsageError(f"{source}: the targets are {spec.answers}, not {answers}")

    bags = spec.holds == "bags"

    def read() -> Iterator[Labelled]:
        for x, y, place, part, _ in found.read():
            value = Bag(x) if bags else x
            yield Labelled(value, None if answers == "none" else y, f"{source}, {place}", None, part)

    if not bags:
        return LabelledSource(source, "series", answers, read)
    named = Reading(bag=spec.columns["bag"], column=spec.columns["text"], target=spec.columns["target"])
    return LabelledSource(source, "text", answers, read, {}, named, bags=True)


def _as_in(first: LabelledSource, source: Any, reading: Reading) -> Reading:
    """How the source of a split is read beside another: by the columns found there; arrays have names of their own."""
    has_columns = not isinstance(source, tuple | Mapping)
    return (first.reading if has_columns else reading).updated({"part": None})


def _open_path(path: Path, reading: Reading, answers: Answers) -> LabelledSource:
    if path.is_dir():
        joined = None if reading.pattern or reading.layout == "file" else folder_table(path)
        return _open_folder(path, reading, answers) if joined is None else open_columns(joined, reading, answers)
    if not path.exists() and (pair := beside(path)):
        return join_parts({part: _open_path(file, reading, answers) for part, file in pair.items()}, str(path))
    TextFile(path).require()
    reader = reader_of(path)
    table = table_in(path) if reader is None or reader.gives == "table" else None
    if table is not None and reading.layout == "file":
        return open_series_files([path], path.parent, str(path), reading, answers)
    if table is not None:
        return open_columns(table, reading, answers)
    if answers == "tags" and (reader is None or reader.many):
        return open_tagged([path], path.parent, str(path), reading, answers)
    if reader is not None:
        with discover.readers.own_mistakes():
            opened: LabelledSource = reader.read([path], path.parent, str(path), reading, answers)
        return opened
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
        return open_idx(folder, reading, answers)
    require_one_for_each(folder)
    files = sorted((p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")),
                   key=lambda path: path.relative_to(folder).as_posix())  # fmt: skip
    if not files:
        raise DataError(f"{folder}: there is no file in this folder; put examples into it")
    return _open_files(files, folder, str(folder), reading, answers)


def most_of(files: Iterable[Path], texts: tuple[str, ...] = (".txt",)) -> tuple[str, list[Path]]:
    """What there is most of among files: sounds, images, texts or tables, and which they are."""
    families = {"sound": suffixes_of("sound"), "image": suffixes_of("image"), "text": texts,
                "table": suffixes_giving("table")}  # fmt: skip
    held = {kind: [path for path in files if ending_of(path) in endings] for kind, endings in families.items()}
    kind = max(held, key=lambda each: len(held[each]))
    return kind, held[kind]


def by_ending(files: Iterable[Path]) -> list[Path]:
    """Files of one name whose endings are classes, such as reviews.pos and reviews.neg; none: there are no such."""
    found = [path for path in files if not is_about(path)]
    stems = {unpacked(path.name).rpartition(".")[0] for path in found}
    endings = {ending_of(path).removeprefix(".") for path in found}
    known = any(reader_of(path) is not None or ending_of(path) in ("", ".txt", *TABBED) for path in found)
    alone = len(stems) == 1 and "" not in stems and len(endings) == len(found) > 1 and part_in(min(stems)) is None
    return found if alone and not known and not endings & {*LANGUAGES, *SOURCES, *TARGETS, *NO_CLASSES} else []


def _open_files(files: list[Path], folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    """Many files: sounds, images, texts or tables; what there is most of, and a note on the others."""
    kind, chosen = most_of(files, (".txt", *(suffixes_of("conll") if answers == "tags" else ())))
    own = [path for path in chosen if not is_about(path)]
    if kind == "text" and own and all(path.parent == folder for path in chosen):
        chosen = own
    if kind == "text":
        chosen = without_lists(chosen)
    if answers in ("class", "none") and (classes := by_ending(path for path in files if path.parent == folder)):
        kind, chosen = "text", classes
    loose = kind == "table" and reading.pattern is None and all(path.parent == folder for path in chosen)
    if not chosen or (loose and answers != "none"):
        found = some(sorted({path.suffix or "files without a suffix" for path in files}))
        raise DataError(f"{folder}: found only {found}; name one of these files, or give .txt, .wav or .png files")
    if answers == "tags":
        source = open_tagged(chosen, folder, name, reading, answers)
    elif kind == "text":
        source = open_folder(chosen, folder, reading, answers)
    elif kind == "table":
        source = open_series_files(chosen, folder, name, reading, answers)
    elif kind == "sound":
        source = open_clips(chosen, folder, name, reading, answers)
    else:
        source = open_images(chosen, folder, name, reading, answers)
    if len(chosen) < len(files):
        source.notes[f"{len(files) - len(chosen)} other files in {folder} were skipped"] = None
    return source
