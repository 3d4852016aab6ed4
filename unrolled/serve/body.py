"""The body of a request, read with limits: JSON in UTF-8, not deep, with finite numbers. Imports no torch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any, Protocol

from unrolled.core.errors import DataError
from unrolled.core.opening import parse_json
from unrolled.serve.limits import Limits
from unrolled.serve.refused import Refused

DRAINED = 64 * 2**20  # bytes of a body that is too large which are still read, so that its sender reads the answer
WHERE = "the request"
LARGEST = 2**63


class Sent(Protocol):
    """What is asked of a request."""

    @property
    def headers(self) -> Any: ...
    def stream(self) -> AsyncIterator[bytes]: ...


async def read_body(request: Sent, limits: Limits) -> dict[str, Any]:
    """The JSON object that a request holds."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "expected a body of the type application/json", "content_type")
    try:
        async with asyncio.timeout(limits.seconds):
            return as_object(await _bytes(request, limits.body))
    except TimeoutError:
        raise Refused(408, "the body of the request did not arrive in time", "timeout") from None


async def _bytes(request: Sent, most: int) -> bytes:
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > max(most, DRAINED):
        raise _large(most)
    found, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            found += chunk
        elif size > DRAINED + most:
            raise _large(most)
    if size > most:
        raise _large(most)
    return bytes(found)


def _large(most: int) -> Refused:
    return Refused(413, f"the body of the request is larger than {most:,} bytes", "too_large")


def as_object(data: bytes | str) -> dict[str, Any]:
    """The JSON object in a text that a stranger sent.

    >>> as_object(b'{"prompt": "a"}')
    {'prompt': 'a'}
    """
    try:
        value = parse_json(data, WHERE)
    except DataError as error:
        raise Refused(400, str(error), "invalid_json") from None
    if not isinstance(value, dict):
        raise Refused(400, f"expected a JSON object, found {type(value).__name__}", "invalid_json")
    if (why := _odd(value)) is not None:
        raise Refused(400, f"{WHERE}: {why}", "invalid_json")
    return value


def _odd(value: Any) -> str | None:
    """What no verb takes: numbers beyond the range of a machine's, and halves of letters."""
    if isinstance(value, str):
        if value.isascii():
            return None
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return "a text has half of a surrogate pair, which is no letter"
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number is too large"
    if isinstance(value, int):
        return None if abs(value) < LARGEST else "a number is too large"
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return next((why for each in inner if (why := _odd(each)) is not None), None)
