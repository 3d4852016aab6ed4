"""The processes of a comparison, forked from a process that has loaded everything instead of begun anew.

They are workers like others: a session of their own, their own streams and signals, nothing else open. Only the first
of a trial is disturbed, so that the one that takes its place gets further.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from typing import Any

from tests.faults.calls import Calls
from unrolled.comparison import engine, worker


def fork_instead(calls: Calls) -> None:
    """Let the engine of this process fork its workers."""
    numbers = itertools.count()

    class Forked(subprocess.Popen[str]):
        """Its pipes are those of any other process; only how it begins differs."""

        def _execute_child(self, words: list[str], *given: Any) -> None:
            number = next(numbers)
            theirs = given[9], given[12], given[14]  # the worker's ends of the pipes
            self.pid = os.fork()
            if self.pid == 0:
                _be_worker(words, given[5], theirs, calls, number)
            self._child_created = True
            for descriptor in theirs:
                os.close(descriptor)

    engine.subprocess = type("forking", (), {**vars(subprocess), "Popen": Forked})  # type: ignore[assignment]


def _be_worker(words: list[str], env: dict[str, str], streams: tuple[int, ...], calls: Calls, number: int) -> None:
    code = 1
    try:
        os.setsid()
        for wanted, descriptor in enumerate(streams):
            os.dup2(descriptor, wanted)
        os.closerange(3, calls.told)
        os.closerange(calls.told + 1, 1024)
        os.environ.update(env)
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        calls.begin_worker()
        if number > 0:
            calls.fault = None
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.argv = words[2:]
        worker.main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        os._exit(code)
