"""Strokes in InkML and SVG files: places of the pen, y downwards, and the text of a drawing where the file has it.

| file | strokes | text |
|---|---|---|
| InkML | each `<trace>`, its first two channels | `<annotation type="truth">`, or transcription, label |
| SVG | each subpath of `<path>`, `<polyline>`, `<polygon>`, `<line>`; curves become short lines | `<title>` |

Of SVG the commands M L H V C S Q T Z are read; circles, arcs and transforms are refused, because a drawing without them
would be another one.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.opening import shortened
from unrolled.data.files.text_file import TextFile

Places = NDArray[np.float64]  # [T, 2]

TRUTH = ("truth", "transcription", "label", "normalizedlabel")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
COMMAND = re.compile(r"([A-Za-z])([^A-DF-Za-df-z]*)")  # e is part of a number
LENGTHS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "Z": 0}
FINE = 8  # lines that a curve becomes


class Ink(NamedTuple):
    """A drawing of a file."""

    strokes: list[Places]
    text: str | None


def read_ink(path: Path) -> Ink:
    """The drawing of an .inkml or .svg file."""
    text = TextFile(path).text()
    if "<!DOCTYPE" in text and "<!ENTITY" in text:
        raise DataError(f"{path}: defines entities, which are not expanded; save it without them")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{path}: not XML ({shortened(str(error))}); save it again") from None
    read = {"ink": _inkml, "svg": _svg}.get(_tag(root))
    if read is None:
        raise DataError(f"{path}: found <{shortened(_tag(root))}>, expected <ink> (InkML) or <svg>")
    ink = read(root, str(path))
    if not ink.strokes:
        raise DataError(f"{path}: there are no strokes in it")
    return ink


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rsplit("}", 1)[-1]


def _inkml(root: ElementTree.Element, place: str) -> Ink:
    strokes = []
    for i, trace in enumerate(each for each in root.iter() if _tag(each) == "trace"):
        points = [point.split() for point in (trace.text or "").strip().split(",") if point.strip()]
        try:
            strokes.append(np.array([(float(x), float(y)) for x, y, *_ in points], np.float64).reshape(-1, 2))
        except ValueError:
            raise DataError(f"{place}, trace {i}: expected points 'x y, x y, ..' of numbers") from None
    notes = [each for each in root.iter() if _tag(each) == "annotation" and (each.text or "").strip()]
    truth = [each for each in notes if each.get("type", "").lower() in TRUTH]
    return Ink([stroke for stroke in strokes if len(stroke)], (truth[0].text or "").strip() if truth else None)


def _svg(root: ElementTree.Element, place: str) -> Ink:
    strokes: list[Places] = []
    title = None
    for element in root.iter():
        tag = _tag(element)
        if tag == "title" and title is None:
            title = (element.text or "").strip() or None
        if element.get("transform"):
            raise DataError(f"{place}: <{tag}> has a transform; apply it to the points (flatten it) and save again")
        if tag in ("circle", "ellipse"):
            raise DataError(f"{place}: found <{tag}>, expected paths; convert shapes to paths and save again")
        if tag == "path":
            strokes += subpaths(element.get("d", ""), place)
        elif tag in ("polyline", "polygon"):
            points = _numbers(element.get("points", ""), place)
            if len(points) % 2:
                raise DataError(f"{place}: <{tag}> has {len(points)} numbers, expected pairs x,y")
            along = np.array(points).reshape(-1, 2)
            strokes.append(np.concatenate([along, along[:1]]) if tag == "polygon" else along)
        elif tag == "line":
            ends = [each for name in ("x1", "y1", "x2", "y2") for each in _numbers(element.get(name, "0"), place)]
            if len(ends) != 4:
                raise DataError(f"{place}: <line> has {len(ends)} numbers, expected x1, y1, x2 and y2")
            strokes.append(np.array(ends).reshape(2, 2))
    return Ink([stroke for stroke in strokes if len(stroke)], title)


def _numbers(words: str, place: str) -> list[float]:
    rest = NUMBER.sub("", words).replace(",", " ").strip()
    if rest:
        raise DataError(f"{place}: expected numbers in a path, found '{shortened(rest)}'")
    return [float(word) for word in NUMBER.findall(words)]


def subpaths(d: str, place: str) -> list[Places]:
    """The strokes of the `d` of a path.

    >>> [stroke.tolist() for stroke in subpaths("M0 0 h2 v1 z m5,5 l1-1", "a.svg")]
    [[[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 0.0]], [[5.0, 5.0], [6.0, 4.0]]]
    """
    strokes: list[list[Places]] = []
    at, control, before = np.zeros(2), np.zeros(2), ""
    if lead := re.split(r"[A-DF-Za-df-z]", d, maxsplit=1)[0].strip():
        raise DataError(f"{place}: a path starts with {shortened(lead, 40)}, expected M")
    for letter, words in COMMAND.findall(d):
        kind, numbers = letter.upper(), _numbers(words, place)
        n = LENGTHS.get(kind)
        if n is None:
            raise DataError(f"{place}: the path command {letter} is not read; convert arcs to curves and save again")
        if (n == 0) != (not numbers) or (n and len(numbers) % n):
            raise DataError(
                f"{place}: the path command {letter} has {len(numbers)} numbers, expected {n} or a multiple"
            )
        if kind != "M" and not strokes:
            raise DataError(f"{place}: a path starts with {letter}, expected M")
        if kind == "Z":
            strokes[-1].append(strokes[-1][0])
            at = strokes[-1][0]
        for i in range(0, len(numbers), n or 1):
            to = _ends(kind, numbers[i : i + n], at, letter.islower())
            if kind == "M" and i == 0:
                strokes.append([to[-1]])
            else:
                smooth = 2 * at - control if before in {"S": "CS", "T": "QT"}.get(kind, "") and before else at
                bend = [smooth, *to] if kind in "ST" else to
                strokes[-1] += _curve(at, bend) if kind in "CSQT" else to
                control = bend[-2] if kind in "CSQT" else to[-1]
            at, before = to[-1], kind
        before = kind
    return [np.array(stroke, np.float64).reshape(-1, 2) for stroke in strokes]


def _ends(kind: str, numbers: list[float], at: Places, relative: bool) -> list[Places]:
    """The points that a command names."""
    origin = at if relative else np.zeros(2)
    if kind == "H":
        return [np.array([origin[0] + numbers[0], at[1]])]
    if kind == "V":
        return [np.array([at[0], origin[1] + numbers[0]])]
    return [origin + np.array(numbers[i : i + 2]) for i in range(0, len(numbers), 2)]


def _curve(at: Places, bend: list[Places]) -> list[Places]:
    """A Bezier curve from `at` over its control points to its last one, as lines (de Casteljau)."""
    found = []
    for t in np.arange(1, FINE + 1) / FINE:
        points = [at, *bend]
        while len(points) > 1:
            points = [(1 - t) * a + t * b for a, b in itertools.pairwise(points)]
        found.append(points[0])
    return found
