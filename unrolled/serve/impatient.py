"""Connections that send the head of a request slowly, or none, are closed: uvicorn waits for it without a limit."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # between two looks; what is between two requests at both is closed


class Impatient(H11Protocol):
    """HTTP/1.1 of uvicorn; what is sent after the head of a request has limits of its own (`body.py`, `guard.py`)."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(SECONDS, self._look, None)

    def _look(self, before: tuple[Any] | None) -> None:
        if self not in self.connections:  # closed, or a websocket by now
            return
        between = self.cycle is None or self.cycle.response_complete
        if between and before is not None and before[0] is self.cycle:
            self.transport.close()
        else:
            self.loop.call_later(SECONDS, self._look, (self.cycle,) if between else None)
