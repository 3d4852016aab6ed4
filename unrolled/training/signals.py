"""Ctrl-C, SIGTERM and SIGHUP: the first only sets a flag, so that the step is finished and saved; a second Ctrl-C
leaves at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from unrolled.core.errors import UnrolledError

AGAIN = 0.01  # seconds until a signal is sent again that was dropped


def _hear(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Let a function hear the signals that ask to stop; what heard them before. `nohup` lets nobody hear SIGHUP."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # a terminal that is closed
        numbers.append(signal.SIGHUP)
    return {number: signal.signal(number, handler) for number in numbers}


@contextmanager
def stop_at_once() -> Iterator[None]:
    """Outside the loop nothing is in the middle of a step: each of them ends the block like Ctrl-C, by an exception.

    It may be raised inside of a library that turns it into an error of its own, as matplotlib does while it draws, or
    inside of a destructor, where Python drops it: then it is sent once more.
    """
    heard: list[int] = []
    dropped: list[threading.Timer] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    def unraisable(found: sys.UnraisableHookArgs) -> None:
        if not heard or not isinstance(found.exc_value, KeyboardInterrupt):
            reported(found)
            return
        dropped.append(threading.Timer(AGAIN, os.kill, (os.getpid(), heard[-1])))
        dropped[-1].start()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, reported = _hear(interrupt), sys.unraisablehook
    sys.unraisablehook = unraisable
    try:
        yield
        if dropped:
            raise KeyboardInterrupt
    except UnrolledError:
        raise
    except Exception as error:
        if not heard:
            raise
        raise KeyboardInterrupt from error
    finally:
        for timer in dropped:
            timer.cancel()
        sys.unraisablehook = reported
        for number, handler in before.items():
            signal.signal(number, handler)


class StopFlag:
    """`with StopFlag() as stop:` ... `if stop.asked:`. Outside the main thread it never fires."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = _hear(self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            os._exit(130)
        self.asked = True
