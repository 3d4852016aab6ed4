"""Examples for `predict` and `score`: read some at a time, so that a file of any size passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice

from unrolled.data.config import DataConfig
from unrolled.data.tables import Example

AT_ONCE = 256


def read_examples(source: str, config: DataConfig) -> Iterator[list[Example]]:
    """Lines of a text file or of standard input (`-`), rows of a table."""
    from unrolled.data.text import open_source

    found: Iterator[Example]
    if source == "-":
        found = (Example(line.rstrip("\n"), None, number) for number, line in enumerate(sys.stdin, 1))
    else:
        is_table = config.examples == "rows" or config.column is not None
        found = open_source(source, config.updated({"examples": "auto" if is_table else "lines"})).examples()
    while some := list(islice(found, AT_ONCE)):
        yield some
