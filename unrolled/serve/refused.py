"""What a server answers when it does not do what it was asked: a status and one sentence. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError, OutOfMemory, UnrolledError, UsageError
from unrolled.core.outside import explained
from unrolled.pictures.letters import clean

LONGEST = 1200  # letters of a sentence, so that an answer stays below 4 kB
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
}


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, code: str | None = None, headers: Mapping[str, str] = {}) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, shortened(message), code, dict(headers)

    def as_json(self) -> dict[str, Any]:
        kind = KINDS.get(self.status, KINDS[500] if self.status >= 500 else KINDS[400])
        return {"error": {"message": self.message, "type": kind, "param": None, "code": self.code}}


def shortened(text: str) -> str:
    """Without half letters and control characters, and not long."""
    text = clean(text.encode("utf-8", "replace").decode())
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def busy(what: str) -> Refused:
    return Refused(429, f"{what}; try again later", "busy", {"Retry-After": "1"})


def too_late(seconds: float) -> Refused:
    return Refused(504, f"the request took longer than {seconds:g} seconds; ask for less", "timeout")


def refusal_of(error: BaseException, paths: Iterable[Path] = (), name: str = "") -> Refused | None:
    """How an error of the library is answered; None: it is none that a client can cause.

    The places of a run on the server are replaced by its name.
    """
    if isinstance(error, Refused):
        return error
    known: UnrolledError | None = explained(error)
    if known is None:
        return None
    status = 400 if isinstance(known, UsageError) else 422 if isinstance(known, DataError) else 500
    if isinstance(known, OutOfMemory):
        status = 413
    text = str(known)
    for path in paths:
        text = text.replace(str(path), name)
    return Refused(status, text)
