"""Who is let in, and for how long: the outermost layer of a server. Imports no torch.

A page in a browser on the same machine can send requests to a loopback address. So the `Host` must be one that this
server is known by (against names that are made to point here), a request from a page (`Origin`) must come from the
server's own, and bodies are JSON, which pages cannot send elsewhere unasked (`body.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from unrolled.serve.counted import Counted
from unrolled.serve.limits import Limits
from unrolled.serve.log import write
from unrolled.serve.refused import Refused, busy, too_late

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

GRACE = 5.0  # seconds beyond the limit of a request, for its answer to be read
ENDPOINT = "unrolled.endpoint"  # in a scope: the address that answers, as it is declared
OPEN = frozenset({"/health", "/", "/docs", "/addresses"})  # need no token, and neither do the files of the page
FILES = "/page/"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)


class Guard:
    """An ASGI application around another."""

    def __init__(self, inner: App, hosts: Collection[str], token: str | None, limits: Limits, counted: Counted) -> None:
        self._inner, self._hosts, self._token = inner, frozenset(host.lower() for host in hosts), token
        self._limits, self._counted = limits, counted
        self.busy = 0
        counted.gauges["unrolled_requests_in_progress"] = lambda: self.busy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            try:
                self._admit(scope)
            except Refused:
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
                return
            await self._inner(scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.monotonic(), 0

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        try:
            self._admit(scope)
            if self.busy >= self._limits.concurrent:
                raise busy(f"{self.busy} requests are in progress")
            self.busy += 1
            try:
                async with asyncio.timeout(self._limits.seconds + GRACE):
                    await self._inner(scope, receive, sent)
            finally:
                self.busy -= 1
        except Refused as refused:
            await _answer(sent, refused)
        except TimeoutError:
            if not status:
                await _answer(sent, too_late(self._limits.seconds))
        finally:
            self._note(scope, status, time.monotonic() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope.get(ENDPOINT, "other")
        self._counted.add("unrolled_requests_total", labels={"endpoint": path, "status": str(status)})
        self._counted.took(seconds)
        run = scope.get("path_params", {}).get("run")
        write("request", method=str(scope["method"])[:20], endpoint=path, status=status,
              milliseconds=round(seconds * 1000, 2), **({"run": str(run)[:100]} if run else {}))  # fmt: skip

    def _admit(self, scope: Scope) -> None:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        host = host_of(headers.get("host", ""))
        if host not in self._hosts and "*" not in self._hosts:
            raise Refused(403, "this server does not serve that host name; start it with --allow-host", "host")
        origin = headers.get("origin")
        if origin is not None and host_of(urlsplit(origin).netloc) != host:
            raise Refused(403, "requests from pages of other sites are refused", "origin")
        if self._token is None or scope["path"] in OPEN or scope["path"].startswith(FILES):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            raise Refused(
                401, "a token is needed: Authorization: Bearer TOKEN", "token", {"WWW-Authenticate": "Bearer"}
            )


def host_of(netloc: str) -> str:
    """A host without its port.

    >>> host_of("localhost:8000"), host_of("[::1]:80"), host_of("Example.org")
    ('localhost', '[::1]', 'example.org')
    """
    netloc = netloc.lower()
    if netloc.startswith("["):
        return netloc[: netloc.find("]") + 1]
    return netloc.rpartition(":")[0] if ":" in netloc else netloc


async def _answer(send: Send, refused: Refused) -> None:
    body = json.dumps(refused.as_json()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(key.lower().encode(), value.encode()) for key, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
