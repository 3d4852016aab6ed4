"""What a server does at most, for each request and in all. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from unrolled.core.config import Config, Record
from unrolled.core.errors import UsageError
from unrolled.decode.config import Decoding

MOST_SETTING = 10_000  # of a whole number in a request that no other limit is for
MOST_CHOICES = 16  # texts of a prompt, beams, samples of which the best is kept


class Limits(Record):
    """The limits of a server."""

    body: int = Field(2**20, ge=1000, le=2**30)
    """Bytes of a request."""
    seconds: float = Field(60.0, gt=0, le=86_400)
    """Seconds that a request may take."""
    tokens: int = Field(2048, ge=1, le=1_000_000)
    """Tokens that a prompt or a generated text may have."""
    inputs: int = Field(1000, ge=1, le=1_000_000)
    """Examples of a request."""
    length: int = Field(20_000, ge=100, le=10_000_000)
    """Characters of a text, and entries of a list, in a request of a verb or session."""
    concurrent: int = Field(64, ge=1, le=10_000)
    """Requests that are handled at the same time."""
    waiting: int = Field(32, ge=1, le=10_000)
    """Requests for one run that wait or are worked on."""
    loaded: int = Field(8, ge=1, le=1000)
    """Runs that are kept in memory."""
    memory: int = Field(2**32, ge=2**20)
    """Bytes that the weights of these runs may have together."""
    sessions: int = Field(64, ge=0, le=10_000)
    """Open sessions."""
    session_bytes: int = Field(2**28, ge=1000)
    """Bytes that the states of all sessions may have together."""
    session_seconds: float = Field(600.0, gt=0)
    """Seconds after which a session that is not used is closed."""
    upload: int = Field(100 * 2**20, ge=1000, le=2**34)
    """Bytes of a file that is uploaded."""
    uploads: int = Field(2**30, ge=1000)
    """Bytes that all uploaded files may have together; the oldest are removed."""
    training: float = Field(3600.0, ge=1, le=7 * 86_400)
    """Seconds that a comparison started on the page may take."""


def require_bounded(request: Config, limits: Limits) -> None:
    """Refuse a request that asks for more work than allowed."""
    for name, most in _most(request, limits):
        value = dict(request)[name]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > most:
            raise UsageError(f"invalid value {name} = {value}: this server allows at most {most}")


def require_short(values: Any, limits: Limits) -> None:
    """Refuse texts and lists that are longer than allowed, wherever they stand: a model may look at all at once."""
    if isinstance(values, str | list) and len(values) > limits.length:
        what = "characters" if isinstance(values, str) else "entries"
        raise UsageError(f"found {len(values):,} {what} at once: this server takes at most {limits.length:,}")
    if isinstance(values, dict | list):
        for each in values.values() if isinstance(values, dict) else values:
            require_short(each, limits)


def _most(request: Config, limits: Limits) -> Iterator[tuple[str, int]]:
    own: dict[str, Any] = {}
    if isinstance(request, Decoding):
        own = {"seed": 2**63, "max_tokens": limits.tokens}
        own |= {"n": MOST_CHOICES, "best_of": MOST_CHOICES, "beam": MOST_CHOICES}
    for name in type(request).model_fields:
        yield name, own.get(name, MOST_SETTING)
