"""`/runs/RUN/live`: a session over a websocket, one JSON object each way at a time.

{"push": ROW} or {"rows": [..]} -> {"results": [..], "ticks": n};  {"end": true};  {"ahead": {"verb": ..}}
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from unrolled.core.errors import UsageError
from unrolled.serve.body import as_object
from unrolled.serve.hosted import Hosted
from unrolled.serve.refused import Refused, refusal_of
from unrolled.serve.sessions import Sessions


async def talk(socket: WebSocket, hosted: Hosted, kept: Sessions) -> None:
    """Open a session when the first message arrives, which may name a condition, and close it with the socket."""
    if kept.sockets >= hosted.limits.sessions:
        return await socket.close(1013, "too many are open")
    kept.sockets += 1
    talking = _Talking(socket, hosted, kept)
    try:
        await socket.accept()
        await talking.until_it_ends()
    except (WebSocketDisconnect, KeyError, RuntimeError):  # KeyError: a message of bytes
        pass
    except TimeoutError:
        with suppress(RuntimeError):
            await socket.close(1001, "not used for too long")
    finally:
        kept.sockets -= 1
        talking.close()


class _Talking:
    """One socket and its session. The next message is awaited while one is answered, so that work for a client that
    has gone is stopped."""

    def __init__(self, socket: WebSocket, hosted: Hosted, kept: Sessions) -> None:
        self._socket, self._limits, self._kept = socket, hosted.limits, kept
        self._name, self._key = str(socket.path_params["run"]), ""
        self._next: asyncio.Future[str] | None = None

    async def until_it_ends(self) -> None:
        while True:
            self._next = self._next or asyncio.ensure_future(self._socket.receive_text())
            async with asyncio.timeout(self._limits.session_seconds):
                text = await self._next
            self._next = asyncio.ensure_future(self._socket.receive_text())
            answering = asyncio.ensure_future(self._answer(text))
            try:
                await asyncio.wait({answering, self._next}, return_when=asyncio.FIRST_COMPLETED)
                if self._next.done():
                    self._next.result()  # raises when the client has gone
                answer = await answering
            finally:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)
            await self._socket.send_json(answer)

    async def _answer(self, text: str) -> dict[str, Any]:
        try:
            asked = as_object(text) if len(text) <= self._limits.body else _large()
            if not self._key:
                self._key = (await self._kept.begin(self._name, {"condition": asked.pop("condition", None)}))["id"]
            return await _answer(self._kept, self._name, self._key, asked)
        except Exception as error:
            return (refusal_of(error) or Refused(500, type(error).__name__)).as_json()

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
        if self._key:
            with suppress(Refused):
                self._kept.close(self._name, self._key)


def _large() -> Any:
    raise Refused(413, "the message is too large", "too_large")


async def _answer(kept: Sessions, name: str, key: str, asked: dict[str, Any]) -> dict[str, Any]:
    if "push" in asked:
        return await kept.push(name, key, {"rows": [asked["push"]]})
    if "rows" in asked:
        return await kept.push(name, key, {"rows": asked["rows"]})
    if "end" in asked:
        return await kept.end(name, key)
    if "ahead" in asked:
        more = asked["ahead"]
        if not isinstance(more, dict):
            raise UsageError("invalid value of ahead: expected an object with verb and request")
        return await kept.ahead(name, key, more)
    if asked:
        raise UsageError("expected one of push, rows, end and ahead")
    return {"session": key}
