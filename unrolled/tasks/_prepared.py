"""The base of all tasks: data that was read once, by split, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrolled.core import config, task
from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import UsageError
from unrolled.core.tokens import UNKNOWN
from unrolled.data.examples import INPUT, Examples
from unrolled.data.prepared import Prepared


class PreparedTask(task.Task):
    """A task adds what its data is prepared from, and keeps the result as `prepared`."""

    def __init__(self, config: config.Config, data: config.Config) -> None:
        super().__init__(config, data)
        self.prepared: Prepared | None = None

    def found(self) -> Prepared:
        """The data that was read."""
        if self.prepared is None:
            raise UsageError("no data has been read yet: call prepare(source) first")
        return self.prepared

    @property
    def sections(self) -> Mapping[str, Examples]:
        """The data that was read, by split."""
        return self.found().sections

    def unknown_share(self) -> float:
        train = self.sections["train"]
        found = next((train.values(name) for name in (INPUT, SOURCE, TARGET) if name in train.fields), None)
        known = next((each for part, each in self.vocabularies().items() if part.endswith("embedding")), None)
        if found is None or known is None or found.dtype.kind not in "iu":
            return 0.0
        ids = found if found.ndim == 1 else found[:, 0]
        unknown, others = int((ids == UNKNOWN).sum()), int((ids >= known.specials).sum())
        return unknown / max(unknown + others, 1)

    def facts(self) -> dict[str, Any]:
        found = self.found()
        return {**found.facts, "fingerprint": found.fingerprint}

    def splits(self) -> tuple[str, ...]:
        return tuple(self.sections)

    def size(self, split: str) -> int:
        return self.sections[split].n_examples
