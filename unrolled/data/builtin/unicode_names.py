"""Names of letters without their first word, which is the class: {'script': 'GREEK', 'text': 'SMALL ...'}."""

from __future__ import annotations

import unicodedata
from collections import Counter

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec


def read(_: Config) -> list[dict[str, str]]:
    hangul_syllables = range(0xAC00, 0xD7A4)  # eleven thousand names by one rule would drown the others
    rows = []
    for point in range(0x20000):
        script, space, rest = unicodedata.name(chr(point), "").partition(" ")
        is_letter = unicodedata.category(chr(point)).startswith("L") and point not in hangul_syllables
        if space and rest and is_letter and not any(c.isdigit() for c in rest):
            rows.append({"script": script, "text": rest})
    counts = Counter(row["script"] for row in rows)
    return [row for row in rows if counts[row["script"]] >= 100]


BUILTIN = BuiltinSpec(
    summary="names of Unicode letters with their script, which can be the condition",
    licence="Unicode (through Python's unicodedata)",
    size="about 10,000 rows",
    holds="rows",
    columns={"target": "script", "text": "text"},
    use="next-token or classify",
    read=read,
)
