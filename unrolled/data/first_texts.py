"""The first texts of some data, as they are read and as tokens."""

from __future__ import annotations

from itertools import islice
from typing import Any

from unrolled.data.codecs.text import Codec
from unrolled.data.config import DataConfig
from unrolled.data.sources.split_text import open_text

N_TOKENS = 24
N_CHARACTERS = 200


def first_texts(source: Any, config: DataConfig, codec: Codec, n: int) -> list[dict[str, Any]]:
    """The beginning of a stream, or the first n examples."""
    opened = next(iter(open_text(source, config).by_split().values()))
    first: list[tuple[Any, str | None, str | None]]
    if opened.is_stream:
        first = [(piece[:N_CHARACTERS], None, None) for piece in islice(opened.pieces(), 1)]
    else:
        first = [
            (each.text[:N_CHARACTERS], each.label, opened.place(each.number)) for each in islice(opened.examples(), n)
        ]
    return [
        {
            "text": text if isinstance(text, str) else " ".join(map(str, text)),
            "class": label,
            "place": place,
            "tokens": [codec.name(token) for token in codec.encode(text)[:N_TOKENS]],
        }
        for text, label, place in first
    ]
