"""What the processes of a run beside its first one do: prepare the same data, train along, and write nothing.

python -m unrolled.training.following READER      started by the first process, which says the rest
follow(processes, order)                          the same, where torchrun has started them all
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from unrolled.core import discover
from unrolled.core.errors import DataError, Interrupted
from unrolled.core.front import speak_to
from unrolled.core.outside import explained
from unrolled.data.files.file_form import files_as
from unrolled.data.prepared import shared
from unrolled.runs import build, parts
from unrolled.runs.config import RunConfig
from unrolled.runs.run import prepare_again
from unrolled.runs.trust import own_file_of
from unrolled.training import finishing, starting
from unrolled.training.loop import Loop
from unrolled.training.processes import LostProcess, Order, Processes
from unrolled.training.progress import Quiet
from unrolled.training.signals import stop_at_once
from unrolled.training.writers import Unwritten

LEAVING = 30.0  # seconds after the end of the first process in which another may end by itself


def follow(processes: Processes, order: Order) -> None:
    """Train along with the first process to the end."""
    config, run = RunConfig.parse(order["config"]), Unwritten(order["path"])
    torch.set_num_threads(config.threads or 1)
    own_file_of(Path(order["path"]), config.own_file, config.own_file_sha256, order["own_file"])
    with stop_at_once(), shared(), discover.models.own_mistakes(), files_as(config.files.form()):
        task = build.make_task(config)
        starting.teach(task, config)
        if config.from_vocabularies:
            starting.offer_own(run, config, task)
        if not prepare_again(run, config, task, order["data"]):
            raise DataError(f"{run.path}: its data is not the same for process {processes.rank} of {processes.n}")
        model = build.make_model(config, task)
        frozen = parts.freeze(model, config.start.freeze)
        task.look_at_training(model)
        loop = Loop(config, task, model, frozen, run, Quiet(), 0.0, processes)
        if order["resuming"]:
            loop.resume()
        loop.train()
        processes.wait()  # until the weights that were best are written
        model = build.make_model(config, task) if config.optimiser.shard else model
        model.load_state_dict(run.read_tensors("model.safetensors"))
        finishing.measured(config, task, model, processes)


def main() -> None:
    """Wait for what to train, which comes on standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until then nobody needs to be told to leave: the pipe is closed
    speak_to("command line" if sys.argv[1:] == ["command line"] else "python")
    from unrolled.training.distributed import (  # loads lightning-fabric while the first prepares
        Here,
        connected,
        of_order,
    )

    try:
        rank, n, port, order = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):
        sys.exit(0)  # there is nothing to do
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_leave_with_the_first, daemon=True).start()
    sys.exit(ended(lambda: follow(of_order(order, connected(Here(rank, n, port), order["config"]["device"])), order)))


def _leave_with_the_first() -> None:
    """End where the first process has ended, whatever this one waits for; by itself it would notice only in a step."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    time.sleep(LEAVING)
    os._exit(Interrupted.exit_code)


def ended(work: Callable[[], None]) -> int:
    """Do the work of a process that is not the first; the exit code, which says what the first one tells."""
    try:
        work()
    except (LostProcess, KeyboardInterrupt, Interrupted):
        return Interrupted.exit_code  # the first process says it
    except Exception as error:
        if (known := explained(error)) is None or os.environ.get("UNROLLED_TRACEBACK"):
            raise
        print(f"unrolled: {known}", file=sys.stderr)
        return known.exit_code
    return 0


if __name__ == "__main__":
    main()
