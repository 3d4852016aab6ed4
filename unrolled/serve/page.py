"""The page of a server: all its addresses, with nothing from elsewhere. Imports no torch."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from unrolled.core.opening import CODE, read_text

PAGE = Path(__file__).parent / "page.html"


@cache
def text() -> str:
    return read_text(PAGE, CODE, within=PAGE.parent)


@cache
def policy() -> str:
    """What a browser may load for the page: its own script and style, and answers of this server."""
    found = {tag: re.findall(rf"<{tag}>(.*?)</{tag}>", text(), re.DOTALL) for tag in ("script", "style")}
    allowed = {tag: " ".join(f"'sha256-{_digest(each)}'" for each in parts) for tag, parts in found.items()}
    return (
        f"default-src 'none'; connect-src 'self'; script-src {allowed['script']}; style-src {allowed['style']}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(part: str) -> str:
    return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
