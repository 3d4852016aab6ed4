"""Sheets of drawings, and their strokes, as files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import UsageError
from unrolled.pictures.kinds import Drawings

SUFFIXES = (".svg", ".png", ".json", ".npz")
Strokes = list[list[tuple[float, float]]]


def rounded(strokes: Sequence[NDArray[Any]], scale: float) -> Strokes:
    """Places with as many digits as matter."""
    return [[(float(f"{x:.6g}"), float(f"{y:.6g}")) for x, y in (scale * stroke).tolist()] for stroke in strokes]


def files(made: Sequence[dict[str, Any]], out: Path) -> dict[Path, bytes]:
    """One file of all drawings, by how its name ends; .svg where it does not."""
    if out.suffix and out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{out}: expected a file name that ends with {', '.join(SUFFIXES)}")
    path = out if out.suffix else out.with_name(f"{out.name}.svg")
    if path.suffix.lower() == ".json":
        return {path: json.dumps([_told(each) for each in made]).encode() + b"\n"}
    if path.suffix.lower() == ".npz":
        return {path: _npz([_rows(each["strokes"]) for each in made])}
    from unrolled.pictures import draw

    picture = sheet(made)
    return {path: draw.png(picture) if path.suffix.lower() == ".png" else draw.svg(picture).encode()}


def sheet(made: Sequence[dict[str, Any]]) -> Drawings:
    texts = list(dict.fromkeys(each["text"] for each in made if each.get("text")))
    strokes = [rounded([np.array(stroke) for stroke in each["strokes"]], 1.0) for each in made]
    return Drawings(
        title=", ".join(texts) or f"{len(made)} drawing{'s' * (len(made) > 1)}",
        captions=[], drawings=strokes, across=1 if texts else 4,
        alt=f"{len(made)} drawings of a model; colours go from the first point to the last.",
    )  # fmt: skip


def _told(each: dict[str, Any]) -> dict[str, Any]:
    strokes = rounded([np.array(stroke) for stroke in each["strokes"]], 1.0)
    text = {"text": each["text"]} if each.get("text") else {}
    return {"strokes": strokes, **text, "logp": each["logp"], "finished": each["finished"]}


def _rows(strokes: Sequence[Sequence[Sequence[float]]]) -> NDArray[np.float32]:
    """Stroke-3: [dx, dy, up] of each point."""
    places = np.concatenate([np.asarray(stroke, np.float64).reshape(-1, 2) for stroke in strokes])
    up = np.zeros(len(places))
    up[np.cumsum([len(stroke) for stroke in strokes]) - 1] = 1
    return np.column_stack([np.diff(places, axis=0, prepend=places[:1]), up]).astype(np.float32)


def _npz(drawings: Sequence[NDArray[np.float32]]) -> bytes:
    """drawing_0, drawing_1, ..; the same drawings give the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, rows in enumerate(drawings):
            array = io.BytesIO()
            np.lib.format.write_array(array, rows, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"drawing_{i}.npy"), array.getvalue(), zipfile.ZIP_DEFLATED)
    return file.getvalue()
