"""Work that a server has done in a process of its own: one order as JSON on standard input, one answer as JSON.

    {"do": "describe", "data": PATH, "task": .., "settings": {..}}        what `unrolled data` shows
    {"do": "compare", "data": PATH, "out": FOLDER, ..}                    what `unrolled compare` does
    {"do": "resume", "data": PATH, "out": FOLDER}

`python -m unrolled.serve.aside`; the answer is {"done": ..} or {"error": a sentence, "code": the exit code}. SIGTERM
ends it: a comparison is saved first and can be resumed.
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
        if order["do"] == "describe":
            from unrolled.runs.describe import describe
            from unrolled.serve.plain import plain

            return plain(describe(order["data"], order["task"], order["settings"]))
        from unrolled.comparison.api import compare
        from unrolled.comparison.view import Silent

        if order["do"] == "resume":
            found = compare(order["data"], resume=order["out"], view=Silent(), started=started)
        else:
            found = compare(order["data"], order["task"], out=order["out"], settings=order["settings"], view=Silent(),
                            started=started)  # fmt: skip
        return {"selected": found.table.get("selected")}


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
