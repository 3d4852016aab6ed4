"""What was understood of some data, before any training: rows, lengths, tokens, split, duplicates, first examples."""

from __future__ import annotations

from itertools import islice
from typing import Any

from unrolled.data.config import DataConfig
from unrolled.data.prepare import prepare
from unrolled.data.sources.split_text import open_text

N_EXAMPLES = 3
N_TOKENS = 24
N_CHARACTERS = 200


def describe(source: Any, config: DataConfig) -> dict[str, Any]:
    """The facts of `prepare`, which training will find again, and the first examples as text and as tokens."""
    data = prepare(source, config)
    opened = next(iter(open_text(source, config).by_split().values()))
    first: list[tuple[Any, str | None, str | None]]
    if opened.is_stream:
        first = [(piece[:N_CHARACTERS], None, None) for piece in islice(opened.pieces(), 1)]
    else:
        first = [
            (each.text[:N_CHARACTERS], each.label, opened.place(each.number))
            for each in islice(opened.examples(), N_EXAMPLES)
        ]
    shown = [
        {
            "text": text if isinstance(text, str) else " ".join(map(str, text)),
            "class": label,
            "place": place,
            "tokens": [data.codecs["text"].name(token) for token in data.codecs["text"].encode(text)[:N_TOKENS]],
        }
        for text, label, place in first
    ]
    return {**data.facts, "labels": data.told["labels"], "fingerprint": data.fingerprint, "first": shown}
