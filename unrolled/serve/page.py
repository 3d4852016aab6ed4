"""The files of the web page, read when the server starts: an address names one of them and no place.

Imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from unrolled.core.opening import CODE, read_text

FOLDER = Path(__file__).parent / "page"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
HTML = {"/": "index.html", "/addresses": "addresses.html", "/docs": "addresses.html"}
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)  # what a browser may load for the page: files and answers of this server, and pictures that the page itself makes


class PageFile(NamedTuple):
    """A file of the page as it is sent."""

    kind: str
    text: str


@cache
def files() -> Mapping[str, PageFile]:
    """The files of the page by their names, such as rooms/data.js."""
    found = {
        path.relative_to(FOLDER).as_posix(): PageFile(KINDS[path.suffix], read_text(path, CODE, within=FOLDER))
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in KINDS
    }
    assert set(HTML.values()) <= set(found)
    return found
