"""Orders that a process beside the server carries out (`aside.py`): begun, awaited, ended. Imports no torch."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from unrolled.core.errors import DataError, OutOfMemory, UsageError
from unrolled.core.opening import ONLY_IN
from unrolled.serve.refused import Refused, shortened, too_late

Process = asyncio.subprocess.Process
Answer = dict[str, Any]
STATUS = {UsageError.exit_code: 400, DataError.exit_code: 422, OutOfMemory.exit_code: 413}
KILLED = -signal.SIGKILL

_under_way: WeakKeyDictionary[asyncio.AbstractEventLoop, set[Process]] = WeakKeyDictionary()


async def begin(order: Mapping[str, Any], only: Path | None = None) -> Process:
    """A process at work on an order; with `only` it opens files of that folder alone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "unrolled.serve.aside", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        env=os.environ | ({} if only is None else {ONLY_IN: str(only.resolve())}),
    )  # fmt: skip
    _under_way.setdefault(asyncio.get_running_loop(), set()).add(process)
    assert process.stdin is not None
    try:
        with suppress(ConnectionError):
            process.stdin.write(json.dumps(order).encode())
            await process.stdin.drain()
            process.stdin.close()
    except BaseException:
        await _end(process)
        raise
    return process


async def answer_of(process: Process) -> Answer:
    """What it answers when it ends: {"done": ..}, or {"error": .., "code": ..}."""
    assert process.stdout is not None
    data = await process.stdout.read()
    code = await process.wait()
    _under_way.get(asyncio.get_running_loop(), set()).discard(process)
    try:
        return dict(json.loads(data))
    except ValueError:
        killed = "its process was killed, most likely because it ran out of memory"
        return {"error": killed if code == KILLED else f"its process ended with exit code {code}", "code": code}


async def done(order: Mapping[str, Any], seconds: float, only: Path | None = None) -> Answer:
    """The answer to an order that takes at most so long; it is given up when nobody waits for it any longer."""
    process = await begin(order, only)
    try:
        async with asyncio.timeout(seconds):
            return await answer_of(process)
    except TimeoutError:
        raise too_late(seconds) from None
    finally:
        await _end(process)


async def end_all() -> None:
    """End what is still under way when the server ends."""
    for process in list(_under_way.get(asyncio.get_running_loop(), ())):
        await _end(process)


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
    assert process.stdout is not None
    with suppress(RuntimeError):  # somebody else reads it to its end
        await process.stdout.read()
    await process.wait()
    _under_way.get(asyncio.get_running_loop(), set()).discard(process)


def refusal(answer: Answer, text: str) -> Refused:
    """The error of an answer, in words for a client."""
    return Refused(STATUS.get(answer["code"], 500), shortened(text))
