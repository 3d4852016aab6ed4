"""A process that trains one run after another: orders come in as JSON lines, what happens goes out as JSON lines.

`python -m unrolled.comparison.worker READER`; the reader is whom messages are for (core/front.py). When nobody listens
any more the run is saved and the process ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from unrolled.core.errors import DataError, Interrupted, NotTrained, UnrolledError
from unrolled.core.front import speak_to
from unrolled.core.outside import explained

Event = dict[str, Any]
ENDS = ("done", "paused", "failed", "untrained", "none better", "stopped")  # the last event of an order is one of these
LEAST = 1.0  # seconds of a run, however late it is
OFTEN = 0.2  # seconds between two reports of progress
LEAVING = 60.0  # seconds that a worker of a comparison that was killed may need to save and leave


class Reporter:
    """The progress of a run as events."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self.tell, self.told = tell, 0.0
        self.made, self.preparing = time.monotonic(), 0.0

    def begin(self, total: float | None) -> None:
        self.preparing = self.preparing or time.monotonic() - self.made

    def step(self, share: float, loss: float, tokens_per_second: float, left: float | None) -> None:
        if time.monotonic() - self.told > OFTEN:
            self.told = time.monotonic()
            self.tell({"event": "step", "share": share, "loss": loss, "speed": tokens_per_second})

    def evaluation(self, step: int, figures: dict[str, float], best: bool) -> None:
        self.tell({"event": "evaluation", "step": step, "figures": figures})

    def say(self, text: str) -> None:
        self.tell({"event": "said", "text": text})

    def end(self) -> None:
        self.tell({"event": "closing"})


def seconds_of(budget: Event, now: float) -> float:
    """The time of a run that begins now: its share, or an equal part of what is left where others took longer.

    `rest` is what is done after the figures: examples, pictures, costs, the report of the run.

    >>> budget = {"share": 20.0, "deadline": 100.0, "rounds": 3, "rest": 2.0}
    >>> seconds_of(budget, now=40.0), seconds_of(budget, now=70.0), seconds_of(budget, now=200.0)
    (18.0, 8.0, 1.0)
    """
    return max(LEAST, min(budget["share"], (budget["deadline"] - now) / budget["rounds"]) - budget["rest"])


def with_rest(budget: Event, rest: float) -> Event:
    """The budget of a run where an earlier one in this process needed so many seconds after its figures.

    >>> with_rest({"share": 20.0, "rest": 2.0}, 3.5), with_rest({"share": 20.0, "rest": 2.0}, 30.0)
    ({'share': 20.0, 'rest': 3.5}, {'share': 20.0, 'rest': 10.0})
    """
    return {**budget, "rest": min(max(budget["rest"], rest), budget["share"] / 2)}


def perform(order: Event, data: Any, tell: Callable[[Event], None]) -> None:
    """Train the run of an order, or resume it; whatever goes wrong is reported, and stops no other run."""
    from unrolled.data.prepared import shared
    from unrolled.training.ensemble import NoneBetter
    from unrolled.training.rungs import Paused
    from unrolled.training.signals import stop_at_once

    shown = Reporter(tell)
    try:
        with stop_at_once(), shared():
            rest = _perform(order, data, shown)
    except (Interrupted, KeyboardInterrupt):
        tell({"event": "stopped"})
        raise Interrupted(f"{order['folder']} was stopped") from None
    except Paused:
        tell({"event": "paused", "preparing": shown.preparing})
    except NotTrained as error:
        tell({"event": "untrained", "needs": error.needs})
    except NoneBetter as error:
        tell({"event": "none better", "why": str(error)})
    except Exception as error:
        found = explained(error) or UnrolledError(f"internal error: {type(error).__name__}: {error}")
        tell({"event": "failed", "why": str(found), "code": found.exit_code})
    else:
        tell({"event": "done", "rest": rest})


def _perform(order: Event, data: Any, shown: Reporter) -> float:
    """The seconds that were needed after the figures."""
    from unrolled.report.page import write_report
    from unrolled.runs.storage.locks import wait_until_idle
    from unrolled.training.ensemble import combine
    from unrolled.training.rungs import until
    from unrolled.training.together import join

    out = Path(order["out"])
    wait_until_idle(out, LEAVING)
    if order.get("members"):
        missing = [member for member in order["members"] if not (Path(member) / "result.json").exists()]
        if missing:
            raise DataError(f"{len(missing)} of its {len(order['members'])} folds did not finish")
        source = order["data"] if data is None else data
        run = join(order["members"], source, out, own_file=order["own_file"], baselines=order["baselines"])
    elif found := order.get("candidates"):
        given = {"own_file": order["own_file"], "baselines": order["baselines"], "seconds": found["seconds"]}
        folds = found["folds"] if all(found["folds"]) else ()
        run = combine(found["runs"], order["data"] if data is None else data, out, folds=folds, **given)
    else:
        rung = order.get("rung") or {}
        with until(rung.get("until"), rung.get("steps")):
            run = _train(order, data, shown)
    begun = time.monotonic()
    write_report([run.path])
    closing: float = run.result.get("closing_seconds", 0.0)
    return closing + time.monotonic() - begun


def _train(order: Event, data: Any, shown: Reporter) -> Any:
    """A new run, or one that continues: where it was stopped, or behind a rung of a race."""
    from unrolled.runs.trust import is_path
    from unrolled.training.api import train

    out, rung, budget = Path(order["out"]), order.get("rung"), order.get("budget")
    if (out / "config.json").exists():
        if rung is not None and "time" in rung:
            _extend(out, rung, budget)
        again = {key: value for key, value in order["settings"].items() if is_path(key)}
        return train(resume=out, data=data, own_file=order["own_file"], settings=again, progress=shown)
    settings = dict(order["settings"])
    if budget:
        settings["budget.time"] = round(seconds_of(budget, time.time()), 2)
    elif rung is not None and "time" in rung:
        settings["budget.time"] = rung["time"]
    return train(
        data, order["task"], order["model"], out=out, settings=settings,
        own_file=order["own_file"], progress=shown, baselines=order["baselines"],
    )  # fmt: skip


def _extend(out: Path, rung: Event, budget: Event | None) -> None:
    """The time that a run of a race has from now on."""
    from unrolled.training import rungs

    if rung["end"] is not None:
        rungs.end(out, rung["end"])
    elif budget is None:
        rungs.extend(out, rung["time"])
    elif (at := rungs.reached(out)) is not None:  # without it, what it began with stays
        more = max(LEAST, seconds_of(budget, time.time()) - rung["preparing"])
        whole = min(rung["time"], at.seconds + more)
        rungs.extend(out, whole, f"came to the end of the race of models, with {whole:.3g} s")


def main() -> None:
    speak_to("command line" if sys.argv[1:] == ["command line"] else "python")
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is not an event
    orders: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            orders.put(line)
        orders.put("")
        os.kill(os.getpid(), signal.SIGTERM)  # whoever gave orders is gone

    threading.Thread(target=listen, daemon=True).start()

    rests = [0.0]

    def tell(event: Event) -> None:
        rests[0] = max(rests[0], event.get("rest", 0.0))
        with suppress(BrokenPipeError):  # whoever gave orders is gone: there is still a run to save
            out.write(json.dumps(event) + "\n")
            out.flush()

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, by SIGTERM
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
    while line := orders.get():
        order = json.loads(line)
        if order.get("budget"):
            order["budget"] = with_rest(order["budget"], rests[0])
        try:
            perform(order, order["data"], tell)
        except Interrupted:
            sys.exit(75)


if __name__ == "__main__":
    main()
