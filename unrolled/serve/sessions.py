"""Sessions over HTTP: streams with their states, a bounded number of them, closed when they are not used."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from unrolled.core import discover
from unrolled.core.config import Record
from unrolled.core.errors import UsageError
from unrolled.runs.run import Run
from unrolled.runs.session import Session
from unrolled.serve.hosted import Hosted
from unrolled.serve.limits import require_bounded, require_short
from unrolled.serve.plain import plain
from unrolled.serve.refused import Refused, busy


class Opening(Record):
    """How a session is opened."""

    condition: str | None = None
    """The class that starts the series of a run that was trained with one."""


class Pushing(Record):
    """Rows that have arrived."""

    rows: list[Any] = Field(min_length=1)
    """In order; a row is what one tick has: the numbers of one step, a word, a piece of text."""


class Ahead(Record):
    """What a verb makes of the stream so far."""

    verb: str = "generate"
    request: dict[str, Any] = {}
    """The settings of the verb."""


class Kept:
    """A session, by the run that it belongs to."""

    def __init__(self, name: str) -> None:
        self.name, self.used = name, time.monotonic()
        self.session: Session | None = None
        self.working = self.n_bytes = 0


class Sessions:
    """All open sessions of a server."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted, self._limits = hosted, hosted.limits
        self._kept: dict[str, Kept] = {}
        self.sockets = 0  # that are open; each may have a session
        hosted.held = lambda name: sum(kept.name == name for kept in self._kept.values())
        hosted.counted.gauges["unrolled_sessions"] = lambda: len(self._kept)

    def sweep(self) -> None:
        """Close what was not used for long."""
        oldest = time.monotonic() - self._limits.session_seconds
        for key in [k for k, kept in self._kept.items() if kept.used < oldest and not kept.working]:
            del self._kept[key]

    async def begin(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        asked = Opening.parse(body)
        self._hosted.require(name)
        self.sweep()
        if len(self._kept) >= self._limits.sessions:
            raise busy(f"{len(self._kept)} sessions are open")
        key = secrets.token_urlsafe(18)
        kept = self._kept[key] = Kept(name)

        def start(run: Run) -> Iterator[Any]:
            kept.session = run.session(asked.condition)
            kept.n_bytes = kept.session.n_bytes
            yield {"max_ticks": kept.session.most, "grows": kept.session.grows, "results": []}

        try:
            self._require_room()
            found = await self._done(kept, start)
            return {"id": key, "run": name, "max_ticks": found["max_ticks"], "grows": found["grows"]}
        except BaseException:
            self._kept.pop(key, None)
            raise

    def require(self, name: str, key: str) -> Kept:
        self.sweep()
        kept = self._kept.get(key)
        if kept is None or kept.name != name:
            raise Refused(404, "there is no such session; it was closed, or not used for too long", "no_session")
        return kept

    def _require_room(self) -> None:
        held = sum(kept.n_bytes for kept in [*self._kept.values()])
        if held >= self._limits.session_bytes:
            raise busy(f"the states of all sessions have {held:,} bytes, as many as this server keeps; end some")

    def close(self, name: str, key: str) -> dict[str, Any]:
        self.require(name, key)
        del self._kept[key]
        return {"closed": True}

    async def push(self, name: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        kept, rows = self.require(name, key), Pushing.parse(body).rows
        require_short(rows, self._limits)
        if len(rows) > self._limits.inputs:
            raise UsageError(f"found {len(rows):,} rows: this server takes at most {self._limits.inputs:,} at once")

        def start(run: Run) -> Iterator[Any]:
            session = _of(kept)
            for i, row in enumerate(rows, start=1):
                if session.grows:
                    self._require_room()
                results = session.push(row, f"row {i}")
                kept.n_bytes = session.n_bytes
                yield {"results": plain(results), "ticks": session.n_read}

        return await self._done(kept, start)

    async def end(self, name: str, key: str) -> dict[str, Any]:
        """The end of a series; the next row begins another."""
        kept = self.require(name, key)

        def start(run: Run) -> Iterator[Any]:
            results, kept.n_bytes = _of(kept).end(), _of(kept).n_bytes
            yield {"results": plain(results), "ticks": 0}

        return await self._done(kept, start)

    async def ahead(self, name: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        kept, asked = self.require(name, key), Ahead.parse(body)
        require_bounded(discover.verb(asked.verb).request.parse(asked.request), self._limits)

        def start(run: Run) -> Iterator[Any]:
            spec = discover.verb(asked.verb).request.parse(asked.request)
            found = _of(kept).ahead(asked.verb, **spec.model_dump(exclude_unset=True))
            yield {"results": plain(found), "ticks": _of(kept).n_read}

        return await self._done(kept, start)

    async def _done(self, kept: Kept, start: Any) -> dict[str, Any]:
        """What the thread of the run finds; rows of two requests never reach a session at the same time."""
        if kept.working:
            raise Refused(409, "another request for this session is not finished; wait for it", "in_use")
        kept.used, kept.working = time.monotonic(), kept.working + 1
        job = None
        try:
            job = self._hosted.ask(kept.name, start)
            parts = await job.all()
            return parts[-1] | {"results": [each for part in parts for each in part["results"]]}
        finally:
            kept.working -= 1
            kept.used = time.monotonic()
            if job is not None:
                job.cancel()


def _of(kept: Kept) -> Session:
    if kept.session is None:
        raise UsageError("this session was not opened")
    return kept.session
