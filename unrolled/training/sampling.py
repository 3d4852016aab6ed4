"""What a model writes while it is trained: a few words, from nothing."""

from __future__ import annotations

from contextlib import suppress

from unrolled.core.errors import UnrolledError
from unrolled.core.task import Given, Model, Task
from unrolled.core.verb import Generates, Streams
from unrolled.decode.config import Decoding

TOKENS = 60
SEED = 1


def written(task: Task, model: Model) -> str | None:
    """A short text; None: models of this task write none by themselves. The same noise each time."""
    if not isinstance(task, Streams) or not isinstance(task, Generates):
        return None
    with suppress(UnrolledError):  # such as a class that every text begins with
        made = task.generate(model, Given(""), Decoding(max_tokens=TOKENS, seed=SEED))
        return str(made[0]["text"])
    return None
