"""An answer as files: its numbers as JSON, its arrays as one .npz, its pictures as drawings and pages."""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path
from typing import Any

from unrolled.pictures.answer import Answer
from unrolled.pictures.letters import clean
from unrolled.runs.storage import atomic

NUMBERS, ARRAYS = "numbers.json", "arrays.npz"
PICTURE = re.compile(r"picture-\d+\.(svg|html)")


def save_answer(answer: Answer, folder: str | Path) -> list[Path]:
    """Write numbers.json, arrays.npz and picture-1.svg (words: .html) and so on; pictures of an older answer go.

    numbers.json holds the reading and the pictures as values too, so that they can be drawn again.
    """
    folder = Path(folder)
    files: dict[str, bytes] = {NUMBERS: _json(answer, folder)}
    if answer.arrays:
        files[ARRAYS] = _npz(answer)
    for number, picture in enumerate(answer.pictures, 1):
        ending, text = _drawn(picture)
        files[f"picture-{number}.{ending}"] = text.encode("utf-8")
    atomic.make_directory(folder)
    for old in folder.iterdir():
        if PICTURE.fullmatch(old.name) or old.name == ARRAYS:
            atomic.discard(old)
    for name, content in files.items():
        atomic.write_bytes(folder / name, content)
    return [folder / name for name in files]


def _json(answer: Answer, folder: Path) -> bytes:
    from unrolled.runs.storage.formats import json_text

    pictures = [picture.model_dump(mode="json") for picture in answer.pictures]
    whole = {"reading": answer.reading, "numbers": answer.numbers, "pictures": pictures}
    return json_text(whole, str(folder / NUMBERS)).encode("utf-8")


def _npz(answer: Answer) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: tensor.detach().cpu().numpy() for name, tensor in answer.arrays.items()}
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _drawn(picture: Any) -> tuple[str, str]:
    from unrolled.pictures.draw import STYLE, html, is_drawn, svg

    if is_drawn(picture):
        return "svg", svg(picture)
    head = f'<meta charset="utf-8"><title>{escape(clean(picture.title))}</title><style>{STYLE}</style>'
    return "html", f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{html(picture)}\n</body></html>\n'
