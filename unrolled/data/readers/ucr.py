"""Series in `.ts` files, the format of the UCR and UEA archives (and of sktime and aeon).

    # comments
    @classLabel true 1 2              or @targetLabel true for numbers
    @data
    0.1,0.2,0.3:1.5,1.6,1.7:2         channels with colons between them, the label last

Series may be of unequal lengths; `?` is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError, UsageError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_class, as_number, is_gap, shown
from unrolled.data.files.missing_values import fill
from unrolled.data.files.text_file import TextFile
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Answers, Reading


def open_ts(files: Sequence[Path], _folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    path = files[0]
    if answers not in ("class", "numbers", "none"):
        raise UsageError(f"{path}: a .ts file can give a class or a number for each series, not {answers}")
    file = TextFile(path)
    return LabelledSource(name, "series", answers, lambda: _read(file, reading, answers), file.notes, reading)


def _read(file: TextFile, reading: Reading, answers: Answers) -> Iterator[Labelled]:
    header: dict[str, list[str]] = {}
    in_data = False
    for number, line in enumerate(file.lines(), start=1):
        text, place = line.strip(), f"{file.name}, line {number}"
        if not text or text.startswith("#"):
            continue
        if in_data:
            yield _case(text, header, reading, answers, place)
        elif text.lower() == "@data":
            in_data = True
            _check_header(header, answers, file.name)
        elif text.startswith("@"):
            word, *values = text[1:].split() or [""]
            header[word.lower()] = values
        else:
            raise DataError(f"{place}: found data before the line @data; this is not a .ts file of the UCR archive")
    if not in_data:
        raise DataError(f"{file.name}: there is no line @data; this is not a .ts file of the UCR archive")


def _has_label(header: dict[str, list[str]]) -> bool:
    return any(header.get(word, ["false"])[:1] == ["true"] for word in ("classlabel", "targetlabel"))


def _check_header(header: dict[str, list[str]], answers: Answers, name: str) -> None:
    if header.get("timestamps", ["false"])[:1] == ["true"]:
        raise DataError(f"{name}: time stamps (@timeStamps true) are not supported; write the file without them")
    wanted = {"class": "classlabel", "numbers": "targetlabel"}.get(answers)
    if wanted and header.get(wanted, ["false"])[:1] != ["true"]:
        there = next((w for w in ("@classLabel", "@targetLabel") if header.get(w[1:].lower(), [""])[0] == "true"), None)
        found = f"it has {there}" if there else "it has no labels"
        word = "@classLabel" if answers == "class" else "@targetLabel"
        raise DataError(f"{name}: the header does not say {word} true, so there is no {answers} to learn; {found}")


def _case(text: str, header: dict[str, list[str]], reading: Reading, answers: Answers, place: str) -> Labelled:
    channels = text.split(":")
    label = channels.pop() if _has_label(header) else None
    if not channels:
        raise DataError(f"{place}: found no ':' before the label; expected a series, a colon and its label")
    values = [_channel(cells, reading.missing, f"{place}, channel {i}") for i, cells in enumerate(channels, start=1)]
    if len({len(channel) for channel in values}) > 1:
        lengths = ", ".join(str(len(channel)) for channel in values)
        raise DataError(
            f"{place}: the channels of one series have different lengths ({lengths}); all need the same length"
        )
    answer: Any = None
    if answers == "numbers":
        answer = np.array([as_number(label, f"{place}, the label")])
    elif answers == "class":
        answer = as_class(label, f"{place}, the label")
        known = header["classlabel"][1:]
        if known and answer not in known:
            raise DataError(f"{place}: the label {shown(answer)} is not in the header, which has {some(known)}")
    return Labelled(fill(np.stack(values, axis=1), reading.missing, place), answer, place)  # [T, D]


def _channel(text: str, missing: str, place: str) -> NDArray[np.float64]:
    cells = text.split(",")
    try:
        values = np.array(cells, np.float64)
        if np.isfinite(values).all() and "_" not in text:
            return values
    except ValueError:
        pass
    result = []  # the slow way, which knows where the trouble is
    for step, cell in enumerate(cells, start=1):
        if is_gap(cell) and missing == "error":
            raise DataError(
                f"{place}, step {step}: found {shown(cell)}, a missing value; set {option('missing')} to zero, "
                "previous or line"
            )
        result.append(float("nan") if is_gap(cell) else as_number(cell, f"{place}, step {step}"))
    return np.array(result)


READER = ReaderSpec(
    summary="series with a class or a number (UCR, UEA)",
    suffixes=(".ts",),
    gives="examples",
    read=open_ts,
)
