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
    name, key = socket.path_params["run"], None
    await socket.accept()
    try:
        while True:
            async with asyncio.timeout(hosted.limits.session_seconds):
                text = await socket.receive_text()
            try:
                asked = as_object(text) if len(text) <= hosted.limits.body else _large()
                if key is None:
                    key = (await kept.begin(name, {"condition": asked.pop("condition", None)}))["id"]
                answer = await _answer(kept, name, key, asked)
            except Exception as error:
                answer = (refusal_of(error) or Refused(500, type(error).__name__)).as_json()
            await socket.send_json(answer)
    except (WebSocketDisconnect, KeyError, RuntimeError):  # KeyError: a message of bytes
        pass
    except TimeoutError:
        with suppress(RuntimeError):
            await socket.close(1001, "not used for too long")
    finally:
        if key is not None:
            with suppress(Refused):
                kept.close(name, key)


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
