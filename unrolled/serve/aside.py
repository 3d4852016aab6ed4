"""Work that a server has done in a process of its own: one order as JSON on standard input, one answer as JSON.

    {"do": "describe", "data": PATH, "task": .., "settings": {..}}        what `unrolled data` shows
    {"do": "compare", "data": PATH, "out": FOLDER, ..}                    what `unrolled compare` does
    {"do": "resume", "data": PATH, "out": FOLDER}
    {"do": "targets", "run": PATH, "own_file": ..}                        where a run can be exported to
    {"do": "export", "run": PATH, "own_file": .., "target": .., "out": FILE}

`python -m unrolled.serve.aside`; the answer is {"done": ..} or {"error": a sentence, "code": the exit code}. SIGTERM
ends it: a comparison is saved first and can be resumed. What is traced for an export is traced here, because tracing
changes functions of torch that other threads of a server use at the same time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from unrolled.core.errors import Interrupted, UnrolledError
from unrolled.core.front import speak_to
from unrolled.core.outside import explained

Order = dict[str, Any]


def perform(order: Order, started: float) -> Any:
    """What an order comes to."""
    from unrolled.training.signals import stop_at_once

    with stop_at_once():
        return WAYS[order["do"]](order, started)


def _describe(order: Order, started: float) -> Any:
    from unrolled.runs.describe import describe
    from unrolled.serve.plain import plain

    return plain(describe(order["data"], order["task"], order["settings"]))


def _compare(order: Order, started: float) -> Any:
    from unrolled.comparison.api import compare
    from unrolled.comparison.view import Silent

    compare(order["data"], order["task"], out=order["out"], settings=order["settings"], view=Silent(), started=started)


def _resume(order: Order, started: float) -> Any:
    from unrolled.comparison.api import compare
    from unrolled.comparison.view import Silent

    compare(order["data"], resume=order["out"], view=Silent(), started=started)


def _targets(order: Order, started: float) -> Any:
    from unrolled.core import discover
    from unrolled.exports.tools.exporting import reasons

    specs = {name: discover.export(name) for name in discover.exports.names()}
    return [
        {"target": name, "summary": specs[name].summary, "suffix": specs[name].suffix, "why_not": why}
        for name, why in reasons(_run(order)).items()
    ]


def _export(order: Order, started: float) -> Any:
    from unrolled.exports.tools.exporting import export

    return [str(path) for path in export(_run(order), order["target"], order["out"]).files]


def _run(order: Order) -> Any:
    from unrolled.runs.run import load, own_file_for

    return load(order["run"], own_file=own_file_for(order["run"], order["own_file"]), device="cpu")


WAYS = {"describe": _describe, "compare": _compare, "resume": _resume, "targets": _targets, "export": _export}


def main() -> None:
    speak_to("page")
    started = time.monotonic()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no answer
    code, answer = 0, {}
    try:
        answer = {"done": perform(json.loads(sys.stdin.read()), started)}
    except KeyboardInterrupt:
        answer, code = {"error": "stopped", "code": Interrupted.exit_code}, Interrupted.exit_code
    except Exception as error:
        found = explained(error) or UnrolledError(f"internal error, please report it: {type(error).__name__}: {error}")
        answer, code = {"error": str(found), "code": found.exit_code}, found.exit_code
    out.write(json.dumps(answer, allow_nan=False))
    out.close()
    sys.exit(code)


if __name__ == "__main__":
    main()
