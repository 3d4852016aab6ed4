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
    concurrent: int = Field(64, ge=1, le=10_000)
    """Requests that are handled at the same time."""
    waiting: int = Field(32, ge=1, le=10_000)
    """Requests for one run that wait or are worked on."""
    loaded: int = Field(8, ge=1, le=1000)
    """Runs that are kept in memory."""
    sessions: int = Field(64, ge=0, le=10_000)
    """Open sessions."""
    session_ticks: int = Field(10_000, ge=1)
    """Ticks of a series in a session whose state grows."""
    session_seconds: float = Field(600.0, gt=0)
    """Seconds after which a session that is not used is closed."""


def require_bounded(request: Config, limits: Limits) -> None:
    """Refuse a request that asks for more work than allowed."""
    for name, most in _most(request, limits):
        value = dict(request)[name]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > most:
            raise UsageError(f"invalid value {name} = {value}: this server allows at most {most}")


def _most(request: Config, limits: Limits) -> Iterator[tuple[str, int]]:
    own: dict[str, Any] = {}
    if isinstance(request, Decoding):
        own = {"seed": 2**63, "max_tokens": limits.tokens}
        own |= {"n": MOST_CHOICES, "best_of": MOST_CHOICES, "beam": MOST_CHOICES}
    for name in type(request).model_fields:
        yield name, own.get(name, MOST_SETTING)
